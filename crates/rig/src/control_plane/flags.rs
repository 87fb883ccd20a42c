//! What is each server told?
//!
//! Everything by flags: loopback only, our own authority, and nothing that would need a machine of its own.

use std::path::Path;

use super::Rig;

impl Rig {
    pub(super) fn etcd_flags(&self) -> Vec<String> {
        let clients = format!("http://127.0.0.1:{}", self.ports.etcd);
        let peers = format!("http://127.0.0.1:{}", self.ports.etcd_peers);
        vec![
            "--name=rig".to_owned(),
            format!("--data-dir={}", self.folder().join("etcd").display()),
            format!("--listen-client-urls={clients}"),
            format!("--advertise-client-urls={clients}"),
            format!("--listen-peer-urls={peers}"),
            format!("--initial-advertise-peer-urls={peers}"),
            format!("--initial-cluster=rig={peers}"),
            // Nothing here has to survive a power cut.
            "--unsafe-no-fsync".to_owned(),
        ]
    }

    pub(super) fn api_server_flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            // A loopback address is no valid endpoint.
            "--endpoint-reconciler-type=none".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", self.credentials.server().display()),
            format!("--tls-private-key-file={}", self.credentials.server_key().display()),
            format!("--client-ca-file={}", self.credentials.authority().display()),
            format!("--token-auth-file={}", self.credentials.tokens().display()),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.credentials.accounts().display()),
            format!(
                "--service-account-signing-key-file={}",
                self.credentials.accounts_key().display()
            ),
            "--allow-privileged=true".to_owned(),
            "--profiling=false".to_owned(),
        ];
        if !self.parts.controller_manager {
            // Nobody makes the default account, and without one no pod could be created. Nobody would ever take the
            // taint from a new node, nor let go of a volume that was deleted.
            let leave_out = "ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection";
            flags.push(format!("--disable-admission-plugins={leave_out}"));
        }
        flags
    }

    pub(super) fn controller_manager_flags(&self) -> Vec<String> {
        let mut flags = self.client_flags(&self.credentials.controller_manager());
        flags.extend([
            format!("--secure-port={}", self.ports.controller_manager),
            "--use-service-account-credentials=true".to_owned(),
            format!(
                "--service-account-private-key-file={}",
                self.credentials.accounts_key().display()
            ),
            format!("--root-ca-file={}", self.credentials.authority().display()),
            format!("--cluster-signing-cert-file={}", self.credentials.authority().display()),
            format!("--cluster-signing-key-file={}", self.credentials.authority_key().display()),
            // A node whose lease is not renewed is lost after 11 s instead of 45. Renewals come every 10 s.
            "--node-monitor-grace-period=16s".to_owned(),
            "--node-monitor-period=1s".to_owned(),
        ]);
        flags
    }

    pub(super) fn scheduler_flags(&self) -> Vec<String> {
        let mut flags = self.client_flags(&self.credentials.scheduler());
        flags.push(format!("--secure-port={}", self.ports.scheduler));
        flags
    }

    /// What controller manager and scheduler have in common.
    fn client_flags(&self, kubeconfig: &Path) -> Vec<String> {
        let kubeconfig = kubeconfig.display();
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--tls-cert-file={}", self.credentials.server().display()),
            format!("--tls-private-key-file={}", self.credentials.server_key().display()),
            "--leader-elect=false".to_owned(),
            "--profiling=false".to_owned(),
        ]
    }
}
