//! Does the program that boots an AL2023 node take what we write for it?

use std::{fs, path::Path};

use mailparse::parse_mail;
use nodemolt_rig::nodeadm::check;

const MEDIA_TYPE: &str = "application/node.eks.aws";

/// The goldens of user data: of the command line, and of what stands behind it.
const GOLDENS: [(&str, &str); 2] = [
    ("crates/app/tests/goldens/userdata", "expected.txt"),
    ("crates/core/tests/bootstrap", "out.txt"),
];

/// The MIME document in a golden, if there is one. The command line's have the command above it and the exit code
/// below.
fn document(golden: &str) -> Option<&str> {
    let text = if golden.starts_with("$ ") { golden.split_once('\n')?.1 } else { golden };
    let document = text.split_once("\n── exit 0").map_or(text, |it| it.0);
    document.starts_with("MIME-Version:").then_some(document)
}

/// The bodies of its parts of nodeadm's type, by another reader of MIME than nodeadm's own.
fn node_configs(document: &str) -> Vec<String> {
    let mail = parse_mail(document.as_bytes()).unwrap();
    let parts = mail.subparts.iter().filter(|it| it.ctype.mimetype == MEDIA_TYPE);
    parts.map(|it| it.get_body().unwrap()).collect()
}

#[test]
fn nodeadm_takes_every_node_config_of_the_goldens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for (folder, file) in GOLDENS {
        let mut taken = 0;
        for case in fs::read_dir(root.join(folder)).unwrap() {
            let path = case.unwrap().path().join(file);
            // A case that is refused may have another file instead.
            let text = fs::read_to_string(&path).unwrap_or_default();
            let Some(document) = document(&text) else { continue };
            let configs = node_configs(document);
            if configs.is_empty() {
                continue;
            }
            // The whole document as the instance would find it: nodeadm finds the parts and merges them.
            assert_eq!(check(document).unwrap(), Ok(()), "{}", path.display());
            // And what we wrote says enough by itself; the user's part may be anything.
            let own = configs.last().unwrap();
            assert_eq!(check(own).unwrap(), Ok(()), "{}", path.display());
            taken += 1;
        }
        // Fewer would mean that this test no longer finds them.
        assert!(taken >= 5, "only {taken} found in {folder}");
    }
}

const GOOD: &str = "apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster:
    name: blue
    apiServerEndpoint: https://example.com
    certificateAuthority: Y2EtYnVuZGxlCg==
    cidr: 10.100.0.0/16
";

#[test]
fn nodeadm_refuses_what_is_broken() {
    assert_eq!(check(GOOD).unwrap(), Ok(()));
    let broken = [
        ("    name: blue\n", "", "Name is missing"),
        ("v1alpha1", "v9", "is registered for version"),
        ("kind: NodeConfig", "kind: Nodes", "is registered for version"),
        ("Y2EtYnVuZGxlCg==", "'%'", "illegal base64"),
        ("name: blue", "name: [blue]", "cannot unmarshal array"),
        ("spec:", "spec: {", "yaml"),
    ];
    for (good, bad, because) in broken {
        let said = check(&GOOD.replace(good, bad)).unwrap().unwrap_err();
        assert!(said.contains(because), "{bad:?}: {said}");
    }
}
