//! What would AWS answer in a region with some history?
//!
//! `seed → catalog files`: a few hundred images of every family as `aws ec2 describe-images` and
//! `aws ssm get-parameters` print them, with every oddity that resolving must survive. Byte for
//! byte the same on every machine: `cargo verify` compares the files with what this would write.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Serializer, ser::PrettyFormatter};

mod dice;
mod wire;
mod public;
mod private;
mod strange;
mod pointer;

use wire::{HistoryAnswer, Image, ImagesAnswer, ParametersAnswer};

/// The path whose moves are shipped as a history: the one most people follow.
const HISTORY_OF: &str =
    "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/x86_64/standard/recommended/image_id";

/// Each generated file, by its path from the root.
pub(crate) fn render() -> BTreeMap<&'static str, String> {
    let published = public::published();
    let pointers = pointer::pointers(&published);

    let mut images: Vec<Image> = published.into_iter().map(|it| it.image).collect();
    images.extend(private::images());
    images.extend(strange::images());
    // By name, for whoever reads the file; AWS promises no order.
    images.sort_by(|one, other| (&one.name, &one.image_id).cmp(&(&other.name, &other.image_id)));

    let history = pointer::history(&pointers, HISTORY_OF);
    let mut parameters = pointer::parameters(&pointers);
    parameters.extend(pointer::custom());
    parameters.sort_by(|one, other| one.name.cmp(&other.name));

    BTreeMap::from([
        ("examples/catalog/images.json", pretty(&ImagesAnswer { images })),
        (
            "examples/catalog/parameters.json",
            pretty(&ParametersAnswer { parameters, invalid_parameters: Vec::new() }),
        ),
        ("examples/catalog/history.json", pretty(&HistoryAnswer { parameters: history })),
    ])
}

/// Four spaces, as the AWS command line prints.
fn pretty(answer: &impl Serialize) -> String {
    let mut bytes = Vec::new();
    let mut serializer =
        Serializer::with_formatter(&mut bytes, PrettyFormatter::with_indent(b"    "));
    answer.serialize(&mut serializer).expect("plain structs of text are always valid JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is text")
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, fs, path::Path};

    use nodemolt_api::{
        file::{Source, read},
        problem::Severity,
    };
    use serde_json::Value;

    use super::*;

    fn answer(path: &str, list: &str) -> Vec<Value> {
        let whole: Value = serde_json::from_str(&render()[path]).unwrap();
        whole[list].as_array().unwrap().clone()
    }

    fn images() -> Vec<Value> {
        answer("examples/catalog/images.json", "Images")
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        assert_eq!(render(), render());
    }

    #[test]
    fn there_are_a_few_hundred_images_with_ids_of_their_own() {
        let images = images();
        let ids: BTreeSet<&str> = images.iter().map(|it| it["ImageId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), images.len());
        assert!((300..=450).contains(&images.len()), "{} images", images.len());
        assert!(ids.iter().all(|it| it.len() == "ami-".len() + 17));
    }

    #[test]
    fn no_account_has_two_images_of_one_name() {
        let images = images();
        let names: BTreeSet<_> =
            images.iter().map(|it| (it["OwnerId"].as_str(), it["Name"].as_str())).collect();
        assert_eq!(names.len(), images.len());
    }

    #[test]
    fn what_people_wrote_names_images_of_the_catalog() {
        let catalog = &render()["examples/catalog/images.json"];
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        for file in ["policies/prod.yaml", "policies/quarantine.yaml"] {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            let ids: Vec<&str> =
                text.split_whitespace().filter(|it| it.starts_with("ami-")).collect();
            assert!(!ids.is_empty(), "{file} names no image");
            assert!(ids.iter().all(|it| catalog.contains(it)), "{file} names {ids:?}");
        }
    }

    #[test]
    fn what_people_wrote_is_read_without_an_error() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples");
        let mut objects_read = 0;
        for folder in ["classes", "pools", "policies"] {
            for entry in fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                let source =
                    Source::from_bytes(path.display().to_string(), &fs::read(&path).unwrap());
                let (objects, problems) = read(&source.unwrap());
                let errors: Vec<_> =
                    problems.iter().filter(|it| matches!(it.severity, Severity::Error)).collect();
                assert!(errors.is_empty(), "{errors:#?}");
                objects_read += objects.len();
            }
        }
        assert_eq!(objects_read, 6 + 2 + 5, "classes, pools, two policies and three quarantines");
    }

    #[test]
    fn every_pointer_leads_to_an_image() {
        let images = images();
        let ids: BTreeSet<&str> = images.iter().map(|it| it["ImageId"].as_str().unwrap()).collect();
        let files = ["examples/catalog/parameters.json", "examples/catalog/history.json"];
        for pointer in files.iter().flat_map(|it| answer(it, "Parameters")) {
            let value = pointer["Value"].as_str().unwrap();
            let id = &value[value.find("ami-").unwrap()..][.."ami-".len() + 17];
            assert!(ids.contains(id), "{pointer}");
        }
    }

    #[test]
    fn the_pointer_moved_back_from_the_recalled_release_and_then_on() {
        let history = answer("examples/catalog/history.json", "Parameters");
        let images = images();
        let release = |it: &Value| {
            let image = images.iter().find(|image| image["ImageId"] == it["Value"]).unwrap();
            image["Name"].as_str().unwrap().rsplit('-').next().unwrap().to_owned()
        };
        let moves: Vec<String> = history.iter().rev().take(4).map(release).collect();
        assert_eq!(moves, ["v20261112", "v20261103", "v20261107", "v20261103"]);
    }
}
