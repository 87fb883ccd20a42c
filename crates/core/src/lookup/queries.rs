//! What has to be asked before an ask can be answered?
//!
//! `ask × Kubernetes → queries`, and then `what parameters name → more queries`
//!
//! One query for each term, so that each answer speaks for exactly what its term would find. For releases
//! the whole line is listed, and not only what the pointer names: a release that is too young leaves the
//! one before it.

use std::collections::BTreeSet;

use super::{Flavour, Minor, flavours};
use crate::ask::{Ask, Owner, Term};
use crate::catalog::{Catalog, ImageQuery, ParameterQuery, ParameterValue, Query};
use crate::image::{AccountId, ImageId, NamePattern};
use nodemolt_fit::Family;

/// EC2's name for the accounts of AWS itself, which publish the releases of all families.
const AMAZON: &str = "amazon";

/// All that a class's terms need.
pub fn queries(ask: &Ask, kubernetes: Option<Minor>, region: &str) -> BTreeSet<Query> {
    ask.terms.iter().flat_map(|it| of_term(it, kubernetes, region)).collect()
}

fn of_term(term: &Term, kubernetes: Option<Minor>, region: &str) -> Vec<Query> {
    let images = ImageQuery { region: Some(region.to_owned()), ..everything() };
    let parameters =
        ParameterQuery { region: Some(region.to_owned()), ..ParameterQuery::default() };
    if let Some(alias) = &term.alias {
        let lines: Vec<Flavour> =
            kubernetes.into_iter().flat_map(|it| flavours(alias.family, it)).collect();
        if lines.is_empty() {
            return Vec::new();
        }
        let pointers = lines.iter().map(|it| match &alias.version {
            crate::ask::AliasVersion::Latest { .. } => Some(it.pointer()),
            crate::ask::AliasVersion::Pinned(version) => it.pinned(version),
        });
        let names = lines.iter().filter_map(|it| it.names()).collect();
        let owners = [Owner::Group(AMAZON.to_owned())].into();
        return vec![
            Query::Parameters(ParameterQuery { names: pointers.flatten().collect(), ..parameters }),
            Query::Images(ImageQuery { owners, names, ..images }),
        ];
    }
    if let Some(parameter) = &term.parameter {
        // Somebody else's parameter is asked for by its ARN: its name may be another thing here.
        let name = match parameter.account() {
            Some(_) => parameter.to_string(),
            None => parameter.name().to_owned(),
        };
        return vec![Query::Parameters(ParameterQuery { names: [name].into(), ..parameters })];
    }
    if let Some(id) = &term.id {
        return vec![Query::Images(ImageQuery { ids: [id.clone()].into(), ..images })];
    }
    let owners = match (&term.owner, &term.name) {
        (Some(owner), _) => [owner.clone()].into(),
        // Whoever names no owner means these two; nobody else's images would be taken.
        (None, Some(_)) => [Owner::Own, Owner::Group(AMAZON.to_owned())].into(),
        (None, None) => BTreeSet::new(),
    };
    let names = term.name.iter().cloned().collect();
    vec![Query::Images(ImageQuery { owners, names, tags: term.tags.clone(), ..images })]
}

/// What was deprecated or disabled is to be known as that, and not as absent.
fn everything() -> ImageQuery {
    ImageQuery { include_deprecated: true, include_disabled: true, ..ImageQuery::default() }
}

/// One query for each of these images that none of the others would list: those that nodes run.
pub fn queries_for<'a>(
    ids: impl IntoIterator<Item = &'a ImageId>,
    catalog: &Catalog,
    others: &BTreeSet<Query>,
    account: Option<&AccountId>,
    region: &str,
) -> BTreeSet<Query> {
    let listed = |id: &ImageId| {
        let known = catalog.images.get(id);
        others.iter().any(|it| match it {
            Query::Images(query) => {
                query.ids.contains(id) || known.is_some_and(|it| query.asks_for(&it.image, account))
            }
            Query::Parameters(_) | Query::Untold => false,
        })
    };
    ids.into_iter()
        .filter(|it| !listed(it))
        .map(|it| {
            let region = Some(region.to_owned());
            Query::Images(ImageQuery { region, ids: [it.clone()].into(), ..everything() })
        })
        .collect()
}

/// The images that the parameters among these queries name now.
pub fn pointed(catalog: &Catalog, queries: &BTreeSet<Query>) -> BTreeSet<ImageId> {
    let asked = |it: &Query| match it {
        Query::Parameters(query) => query.names.clone(),
        Query::Images(_) | Query::Untold => BTreeSet::new(),
    };
    let names: BTreeSet<String> = queries.iter().flat_map(asked).collect();
    let parameters = catalog.parameters.values().filter(|it| {
        names.contains(&it.name) || it.arn.as_ref().is_some_and(|arn| names.contains(arn))
    });
    parameters.flat_map(|it| it.values().filter_map(ParameterValue::image)).collect()
}

impl Flavour {
    /// What the names of all its releases look like.
    fn names(self) -> Option<NamePattern> {
        let (k, cpu, track) = (self.kubernetes, self.processor.in_path(), self.track.as_str());
        let text = match self.family {
            Family::Al2 => format!("{}v*", self.al2_name_stem()),
            Family::Al2023 => format!("amazon-eks-node-al2023-{cpu}-{track}-{k}-v*"),
            Family::Bottlerocket => {
                let nvidia = if self.track == super::Track::Nvidia { "-nvidia" } else { "" };
                // Its names say `aarch64` where its paths say `arm64`.
                let cpu = match self.processor {
                    super::Processor::Amd64 => "x86_64",
                    super::Processor::Arm64 => "aarch64",
                };
                format!("bottlerocket-aws-k8s-{k}{nvidia}-{cpu}-v*")
            }
            Family::Windows2019 | Family::Windows2022 | Family::Windows2025 => {
                let year = super::windows_year(self.family);
                format!("Windows_Server-{year}-English-Core-EKS_Optimized-{k}-*")
            }
            Family::Custom => return None,
        };
        Some(NamePattern::new(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Age, Alias};
    use crate::lookup::read_name;

    fn ask(terms: Vec<Term>) -> Ask {
        Ask {
            class: "general".to_owned(),
            labels: std::collections::BTreeMap::new(),
            family: Family::Al2023,
            terms,
            minimum_age: Age::NONE,
        }
    }

    #[test]
    fn every_release_name_of_a_family_is_listed() {
        let k = Minor { major: 1, minor: 35 };
        for (family, name) in [
            (Family::Al2, "amazon-eks-node-1.35-v20260801"),
            (Family::Al2, "amazon-eks-gpu-node-1.35-v20260801"),
            (Family::Al2023, "amazon-eks-node-al2023-arm64-nvidia-1.35-v20260801"),
            (Family::Bottlerocket, "bottlerocket-aws-k8s-1.35-nvidia-aarch64-v1.40.0-abcdef12"),
            (Family::Windows2022, "Windows_Server-2022-English-Core-EKS_Optimized-1.35-2026.08.11"),
        ] {
            let (flavour, _) = read_name(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(flavour.family, family);
            let listed: Vec<bool> =
                flavours(family, k).filter_map(Flavour::names).map(|it| it.matches(name)).collect();
            assert_eq!(listed.iter().filter(|it| **it).count(), 1, "{name}");
            assert!(flavour.names().is_some_and(|it| it.matches(name)), "{name}");
        }
    }

    #[test]
    fn each_way_of_asking_has_its_query() {
        let k = Some(Minor { major: 1, minor: 35 });
        let texts = |term: Term| -> Vec<String> {
            queries(&ask(vec![term]), k, "eu-central-1").iter().map(ToString::to_string).collect()
        };
        let alias = texts(Term::of_alias(Alias::latest(Family::Windows2022)));
        assert_eq!(alias.len(), 2, "{alias:?}");
        assert!(alias.iter().any(|it| it.contains("owner=amazon,name=Windows_Server-2022")));
        assert!(alias.iter().any(|it| it.contains("parameter=/aws/service/ami-windows-latest/")));
        let id: ImageId = "ami-0123456789abcdef0".parse().unwrap_or_else(|_| panic!("an id"));
        let by_id = texts(Term { id: Some(id), ..Term::default() });
        assert!(by_id[0].contains("id=ami-0123456789abcdef0"), "{by_id:?}");
        let by_name = texts(Term { name: Some("golden-*".into()), ..Term::default() });
        assert!(by_name[0].contains("owner=self,owner=amazon,name=golden-*"), "{by_name:?}");
        assert!(
            queries(&ask(vec![Term::of_alias(Alias::latest(Family::Al2))]), None, "x").is_empty()
        );
    }
}
