//! Do Karpenter's own definitions and ours mean the same?

use nodemolt_rig::{Parts, Rig, karpenter};
use tokio::sync::OnceCell;

/// A control plane on which Karpenter was installed before us.
pub(super) async fn with_karpenter() -> &'static Rig {
    static RIG: OnceCell<Rig> = OnceCell::const_new();
    RIG.get_or_init(async || {
        let rig = Rig::start(Parts::default()).unwrap();
        let theirs = karpenter::crds().unwrap();
        let yaml: Vec<&str> = theirs.iter().map(|it| it.yaml.as_str()).collect();
        rig.apply_crds(&yaml.join("\n---\n")).unwrap();
        rig
    })
    .await
}
