//! Do Karpenter's own definitions and ours mean the same?

use std::fmt::Write as _;

use nodemolt_api::{
    admission::cases,
    crd::{self, digest::Digest},
};
use nodemolt_rig::{Parts, Rig, karpenter};
use tokio::sync::OnceCell;

use super::{
    as_written,
    cases::{ask_all, tables},
    repository,
    server::Server,
};

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

#[test]
fn the_facts_that_we_keep_of_karpenters_definitions_are_those_it_published() {
    let published = karpenter::crds().unwrap();
    for (plural, group, exactly) in [
        ("nodepools", "karpenter.sh", true),
        ("nodeclaims", "karpenter.sh", true),
        // Ours says more. What, is on its page, and a test of the door compares that with the kept facts.
        ("ec2nodeclasses", "karpenter.k8s.aws", false),
    ] {
        let file = format!("{group}_{plural}.yaml");
        let yaml = &published.iter().find(|it| it.file == file).unwrap().yaml;
        let theirs = Digest::of_yaml(yaml).unwrap();
        let kept = repository().join(format!("crates/api/tests/karpenter/{plural}.digest"));
        let kept = Digest::from_text(&std::fs::read_to_string(kept).unwrap());
        assert_eq!(told(&theirs, &kept), "", "{file}, published → kept");

        let name = format!("{plural}.{group}");
        let ours = crd::all().into_iter().find(|it| it.name == name).unwrap();
        let ours = Digest::of(&crd::to_value(&(ours.definition)()).unwrap());
        let differences = told(&theirs, &ours);
        assert_eq!(differences.is_empty(), exactly, "{file}, published → ours\n{differences}");
    }
}

fn told(theirs: &Digest, ours: &Digest) -> String {
    let mut text = String::new();
    for it in Digest::differences(theirs, ours) {
        let _ = writeln!(text, "{it}");
    }
    text
}

#[tokio::test]
async fn karpenters_own_pools_and_claims_take_and_refuse_what_ours_do() {
    let server = Server::of(with_karpenter().await).await;
    let (mut wrong, mut asked) = (String::new(), 0);
    let kinds = ["nodepools.karpenter.sh", "nodeclaims.karpenter.sh"];
    for crd in crd::all().iter().filter(|it| kinds.contains(&it.name)) {
        for table in tables(crd) {
            let answers = ask_all(&server, &table.resource, &table.cases).await;
            asked += answers.len();
            for (case, theirs) in table.cases.iter().zip(answers) {
                let ours = cases::ask(&table.validator, case);
                let outcome = match (&ours, &theirs) {
                    (Ok(ours), Ok(theirs)) => {
                        let same = as_written(ours.clone()) == as_written(theirs.clone());
                        if same { Ok(()) } else { Err(format!("{ours}\n  theirs {theirs}")) }
                    }
                    _ => cases::agree(&ours, &theirs),
                };
                if let Err(why) = outcome {
                    let _ = writeln!(wrong, "{} `{}` {why}", crd.name, case.name);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "of {asked}:\n{wrong}");
    assert!(asked > 100, "{asked}");
}
