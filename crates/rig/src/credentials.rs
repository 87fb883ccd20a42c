//! How do the parts of a control plane trust each other?
//!
//! One authority, one server certificate for loopback, one key pair that signs service accounts, and a token per
//! user. They live as long as the rig's folder and are worth nothing outside it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use sha2::{Digest, Sha256};

use crate::{error::RigError, tools::hex};

/// Who asks, and in which group. The names are those that Kubernetes' own roles are bound to.
const ADMIN: (&str, &str) = ("admin", "system:masters");
const CONTROLLER_MANAGER: (&str, &str) = ("system:kube-controller-manager", "");
const SCHEDULER: (&str, &str) = ("system:kube-scheduler", "");

#[derive(Debug)]
pub(crate) struct Credentials {
    folder: PathBuf,
}

impl Credentials {
    /// Writes everything but the kubeconfigs, which need the server's port.
    pub(crate) fn write(folder: &Path) -> Result<Self, RigError> {
        let this = Self { folder: folder.to_owned() };
        let authority_key = KeyPair::generate()?;
        let authority = authority()?;
        let server_key = KeyPair::generate()?;
        let server =
            server()?.signed_by(&server_key, &Issuer::from_params(&authority, &authority_key))?;
        let accounts_key = KeyPair::generate()?;

        let texts = [
            (this.authority(), authority.self_signed(&authority_key)?.pem()),
            (this.authority_key(), authority_key.serialize_pem()),
            (this.server(), server.pem()),
            (this.server_key(), server_key.serialize_pem()),
            (this.accounts(), accounts_key.public_key_pem()),
            (this.accounts_key(), accounts_key.serialize_pem()),
            (this.tokens(), tokens()?),
        ];
        for (path, text) in texts {
            fs::write(&path, text).map_err(RigError::file("write", &path))?;
        }
        Ok(this)
    }

    pub(crate) fn write_kubeconfigs(&self, port: u16) -> Result<(), RigError> {
        let tokens =
            fs::read_to_string(self.tokens()).map_err(RigError::file("read", self.tokens()))?;
        let files = [
            (ADMIN, self.admin()),
            (CONTROLLER_MANAGER, self.controller_manager()),
            (SCHEDULER, self.scheduler()),
        ];
        for (token, ((user, _), path)) in
            tokens.lines().filter_map(|it| it.split(',').next()).zip(files)
        {
            let text = kubeconfig(port, &self.authority(), user, token);
            fs::write(&path, text).map_err(RigError::file("write", &path))?;
        }
        Ok(())
    }

    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.join("ca.crt")
    }
    pub(crate) fn authority_key(&self) -> PathBuf {
        self.folder.join("ca.key")
    }
    pub(crate) fn server(&self) -> PathBuf {
        self.folder.join("server.crt")
    }
    pub(crate) fn server_key(&self) -> PathBuf {
        self.folder.join("server.key")
    }
    pub(crate) fn accounts(&self) -> PathBuf {
        self.folder.join("accounts.pub")
    }
    pub(crate) fn accounts_key(&self) -> PathBuf {
        self.folder.join("accounts.key")
    }
    pub(crate) fn tokens(&self) -> PathBuf {
        self.folder.join("tokens.csv")
    }
    pub(crate) fn admin(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }
    pub(crate) fn controller_manager(&self) -> PathBuf {
        self.folder.join("controller-manager.kubeconfig")
    }
    pub(crate) fn scheduler(&self) -> PathBuf {
        self.folder.join("scheduler.kubeconfig")
    }
}

fn authority() -> Result<CertificateParams, RigError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params.distinguished_name.push(DnType::CommonName, "nodemolt rig");
    Ok(params)
}

fn server() -> Result<CertificateParams, RigError> {
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"].map(str::to_owned);
    let mut params = CertificateParams::new(names.to_vec())?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
    Ok(params)
}

/// `token,user,uid,"group"`, one line each, in the order of the kubeconfigs.
fn tokens() -> Result<String, RigError> {
    let line = |(user, group): (&str, &str)| {
        let group = if group.is_empty() { String::new() } else { format!(",\"{group}\"") };
        Ok(format!("{},{user},{user}{group}\n", secret()?))
    };
    [ADMIN, CONTROLLER_MANAGER, SCHEDULER].into_iter().map(line).collect()
}

/// Any process of this machine can reach loopback: a token must not be guessable. A fresh key's fingerprint isn't.
fn secret() -> Result<String, RigError> {
    Ok(hex(&Sha256::digest(KeyPair::generate()?.serialized_der())))
}

fn kubeconfig(port: u16, authority: &Path, user: &str, token: &str) -> String {
    // JSON is YAML, and serde_json quotes whatever stands in a path.
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": "rig",
            "cluster": {
                "server": format!("https://127.0.0.1:{port}"),
                "certificate-authority": authority,
            },
        }],
        "users": [{ "name": user, "user": { "token": token } }],
        "contexts": [{ "name": "rig", "context": { "cluster": "rig", "user": user } }],
        "current-context": "rig",
    });
    format!("{config:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_user_has_a_token_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = Credentials::write(folder.path()).unwrap();
        credentials.write_kubeconfigs(6443).unwrap();
        let tokens = fs::read_to_string(credentials.tokens()).unwrap();
        let lines: Vec<Vec<&str>> = tokens.lines().map(|it| it.split(',').collect()).collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0][1..], ["admin", "admin", "\"system:masters\""]);
        let files =
            [credentials.admin(), credentials.controller_manager(), credentials.scheduler()];
        for (line, file) in lines.iter().zip(files) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(text.contains(line[0]) && text.contains(line[1]), "{}", file.display());
            assert!(line[0].len() == 64, "{}", line[0]);
        }
        assert_ne!(lines[0][0], lines[1][0]);
    }
}
