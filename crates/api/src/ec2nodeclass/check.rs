//! What has to hold between the fields of a class?
//!
//! Karpenter's admission rules on images, with its messages, so that who knows the one knows the
//! other. Where we are stricter or wider the comment says why. Rules on roles, subnets and security
//! groups matter when nodes are launched, not when images are chosen: they do not stop anyone here.

use std::collections::BTreeMap;

use crate::{
    owner,
    problem::{Finding, nearest, quoted},
    requirement,
};

use super::{AmiSelectorTerm, EC2NodeClass, EC2NodeClassSpec, FAMILIES};

const TERMS_MAX: usize = 30;
const TAGS_MAX: usize = 20;
const REQUIREMENTS_MAX: usize = 100;
const ALIAS_BYTES_MAX: usize = 30;

const AMI_FAMILIES: [&str; 7] =
    ["AL2", "AL2023", "Bottlerocket", "Custom", "Windows2019", "Windows2022", "Windows2025"];

pub fn check(class: &EC2NodeClass) -> Vec<Finding> {
    let spec = &class.spec;
    let mut found = Vec::new();
    found.extend(spec.ami_family.as_deref().and_then(family));
    found.extend(images_are_said(spec));

    let terms = spec.terms();
    if terms.len() > TERMS_MAX {
        let message = format!("has {} terms, must have at most {TERMS_MAX}", terms.len());
        found.push(Finding::error("spec.amiSelectorTerms", message));
    }
    // Beyond the limit each term would only repeat what is wrong with the list.
    for (index, it) in terms.iter().take(TERMS_MAX).enumerate() {
        found.extend(term(&format!("spec.amiSelectorTerms[{index}]"), it));
    }
    if let Some(index) = terms.iter().position(|it| it.alias.is_some())
        && terms.len() > 1
    {
        let message = "'alias' is mutually exclusive, cannot be set with a combination of other \
                       amiSelectorTerms";
        let field = format!("spec.amiSelectorTerms[{index}].alias");
        found.push(Finding::error(field, message).hint("keep the alias or the other terms"));
    }
    // The map is open, for AL2023 passes on what it does not know; a slip of the pen it is not open to.
    for key in spec.kubelet.iter().flat_map(|it| it.rest.keys()) {
        if let Some(near) = misspelt(key) {
            let message = format!("{} is no setting of a kubelet", quoted(key));
            let finding = Finding::error(format!("spec.kubelet.{key}"), message);
            found.push(finding.hint(format!("did you mean `{near}`?")));
        }
    }
    if spec.role.is_some() && spec.instance_profile.is_some() {
        let message = "must specify exactly one of ['role', 'instanceProfile']";
        found.push(Finding::note("spec.role", message));
    }
    found
}

/// The managed setting of which this differs by the case of its letters, or by hardly more.
fn misspelt(key: &str) -> Option<&'static str> {
    const MANAGED: [&str; 12] = [
        "clusterDNS",
        "maxPods",
        "podsPerCore",
        "systemReserved",
        "kubeReserved",
        "evictionHard",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "evictionMaxPodGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "cpuCFSQuota",
    ];
    // These are settings of their own, and near to none by mistake.
    const OTHERS: [&str; 2] = ["cpuCFSQuotaPeriod", "reservedSystemCPUs"];
    if OTHERS.contains(&key) {
        return None;
    }
    MANAGED.into_iter().find(|it| {
        it.eq_ignore_ascii_case(key) || (key.len() > 5 && strsim::damerau_levenshtein(it, key) == 1)
    })
}

fn family(family: &str) -> Option<Finding> {
    if AMI_FAMILIES.contains(&family) {
        return None;
    }
    let field = "spec.amiFamily";
    if family == "Ubuntu" {
        let message = "the family `Ubuntu` was removed in v1";
        return Some(Finding::error(field, message).hint(
            "write `amiFamily: AL2`, whose bootstrap Ubuntu's images understand, and select them \
             in amiSelectorTerms by `owner: \"099720109477\"` and `name`",
        ));
    }
    let hint = match nearest(family, &AMI_FAMILIES) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}", AMI_FAMILIES.join(", ")),
    };
    let message = format!("{} is not a family", quoted(family));
    Some(Finding::error(field, message).hint(hint))
}

/// A class says its images by terms, by its family, or by both if they agree.
fn images_are_said(spec: &EC2NodeClassSpec) -> Option<Finding> {
    let field = "spec.amiFamily";
    if spec.ami_selector_terms.as_ref().is_some_and(Vec::is_empty) {
        let finding = Finding::error("spec.amiSelectorTerms", "cannot be empty");
        return Some(finding.hint("remove it to let amiFamily choose, or write a term"));
    }
    let alias = spec.terms().iter().find_map(|it| it.alias.as_deref());
    match (spec.ami_family.as_deref(), alias) {
        (None, None) => {
            let message = "must specify amiFamily if amiSelectorTerms does not contain an alias";
            Some(
                Finding::error(field, message)
                    .hint(format!("write one of {}", AMI_FAMILIES.join(", "))),
            )
        }
        (Some("Custom"), None) if spec.terms().is_empty() => {
            let message = "amiSelectorTerms is required when amiFamily == 'Custom'";
            Some(Finding::error(field, message))
        }
        (Some(family), Some(alias)) => {
            let word = alias.split('@').next().unwrap_or_default();
            let (_, expected) = FAMILIES.iter().find(|(it, _)| *it == word)?;
            if family == *expected || family == "Custom" {
                return None;
            }
            let message = format!(
                "if set, amiFamily must be '{expected}' or 'Custom' when using {} {expected} alias",
                if expected.starts_with("AL") { "an" } else { "a" },
            );
            Some(Finding::error(field, message).hint(format!("the alias is `{alias}`")))
        }
        (None, Some(_)) | (Some(_), None) => None,
    }
}

fn term(field: &str, term: &AmiSelectorTerm) -> Vec<Finding> {
    let AmiSelectorTerm { alias, tags, id, name, owner, ssm_parameter, requirements } = term;
    let mut found = Vec::new();
    let at = |name: &str| format!("{field}.{name}");

    let selects = alias.is_some()
        || tags.is_some()
        || id.is_some()
        || name.is_some()
        || ssm_parameter.is_some();
    if !selects {
        let message =
            "expected at least one, got none, ['tags', 'id', 'name', 'alias', 'ssmParameter']";
        let finding = Finding::error(field, message);
        found.push(if owner.is_some() {
            finding.hint("an owner alone would select all their images: add a name or tags")
        } else {
            finding
        });
    }
    // Together with `ssmParameter` Karpenter admits an id and ignores the parameter. Here both must
    // name the image.
    if id.is_some() && (alias.is_some() || tags.is_some() || name.is_some() || owner.is_some()) {
        let message = "'id' is mutually exclusive, cannot be set with a combination of other \
                       fields in amiSelectorTerms";
        found.push(
            Finding::error(at("id"), message).hint("an id names one image: it needs no more"),
        );
    }
    if alias.is_some() && (id.is_some() || tags.is_some() || name.is_some() || owner.is_some()) {
        let message = "'alias' is mutually exclusive, cannot be set with a combination of other \
                       fields in amiSelectorTerms";
        found.push(Finding::error(at("alias"), message));
    } else if alias.is_some() && ssm_parameter.is_some() {
        // Karpenter admits this and ignores the parameter, and so do we; but nobody can have meant it.
        let message = "is ignored beside 'alias': an alias already names its parameters";
        found.push(Finding::warning(at("ssmParameter"), message).hint("keep one of the two"));
    }

    found.extend(alias.as_deref().and_then(|it| self::alias(&at("alias"), it)));
    found.extend(tags.as_ref().map(|it| self::tags(&at("tags"), it)).into_iter().flatten());
    found.extend(id.as_deref().and_then(|it| image_id(&at("id"), it)));
    let said = owner.as_deref().filter(|it| !it.is_empty());
    found.extend(said.and_then(|it| owner::check(&at("owner"), it)));
    // For Karpenter what is empty is not there. Beside something else that is harmless; alone it would
    // match every image there is.
    let empty = |it: &Option<String>| it.as_deref().is_some_and(str::is_empty);
    let empty = [
        ("name", empty(name)),
        ("ssmParameter", empty(ssm_parameter)),
        ("owner", empty(owner)),
        ("tags", tags.as_ref().is_some_and(BTreeMap::is_empty)),
    ];
    let says = alias.is_some()
        || id.is_some()
        || [("name", name.is_some()), ("ssmParameter", ssm_parameter.is_some())]
            .into_iter()
            .chain([("owner", owner.is_some()), ("tags", tags.is_some())])
            .any(|(field, present)| present && !empty.contains(&(field, true)));
    for (field, _) in empty.into_iter().filter(|(_, empty)| *empty) {
        found.push(if says {
            Finding::warning(at(field), "is empty and counts as absent")
                .hint("give it a value or remove it")
        } else {
            Finding::error(at(field), "cannot be empty").hint("give it a value or remove it")
        });
    }
    if requirements.len() > REQUIREMENTS_MAX {
        let message =
            format!("has {} items, must have at most {REQUIREMENTS_MAX}", requirements.len());
        found.push(Finding::error(at("requirements"), message));
    }
    for (index, it) in requirements.iter().take(REQUIREMENTS_MAX).enumerate() {
        found.extend(requirement::check(&format!("{field}.requirements[{index}]"), it));
    }
    found
}

/// `family@version`. Ours beside Karpenter's: `latest~2` is the second release before the newest.
fn alias(field: &str, alias: &str) -> Option<Finding> {
    if alias.len() > ALIAS_BYTES_MAX {
        let message = format!("Too long: may not be more than {ALIAS_BYTES_MAX} bytes");
        return Some(Finding::error(field, message));
    }
    let parts = alias.split_once('@').filter(|(family, version)| {
        !family.is_empty()
            && family.bytes().all(|it| it.is_ascii_alphanumeric())
            && !version.is_empty()
            && !version.contains('\n')
    });
    let Some((family, version)) = parts else {
        let message = "'alias' is improperly formatted, must match the format 'family@version'";
        let hint = match FAMILIES.iter().find(|(it, _)| it.eq_ignore_ascii_case(alias)) {
            Some((family, _)) => format!("write `{family}@latest`"),
            None => "write for example `al2023@latest`".to_owned(),
        };
        return Some(Finding::error(field, message).hint(hint));
    };
    let words = FAMILIES.map(|(word, _)| word);
    if !words.contains(&family) {
        let message = "family is not supported, must be one of the following: 'al2', 'al2023', \
                       'bottlerocket', 'windows2019', 'windows2022', 'windows2025'";
        let finding = Finding::error(field, message);
        return Some(match nearest(family, &words) {
            Some(near) => finding.hint(format!("did you mean `{near}@{version}`?")),
            None => finding,
        });
    }
    match version.strip_prefix("latest") {
        Some("") => None,
        Some(back) if back.strip_prefix('~').is_some_and(small_number) => None,
        Some(_) => {
            let message = format!("{} is not a version", quoted(version));
            let hint = "write `latest`, or `latest~1` for the release before it";
            Some(Finding::error(field, message).hint(hint))
        }
        None if family.starts_with("windows") => {
            let message = "windows families may only specify version 'latest'";
            Some(
                Finding::error(field, message)
                    .hint("write `latest`, or `latest~1` for the release before it"),
            )
        }
        None => None,
    }
}

fn small_number(text: &str) -> bool {
    text.bytes().all(|it| it.is_ascii_digit()) && text.parse::<u8>().is_ok()
}

fn tags(field: &str, tags: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut found = Vec::new();
    if tags.len() > TAGS_MAX {
        let message = format!("has {} tags, must have at most {TAGS_MAX}", tags.len());
        found.push(Finding::error(field, message));
    }
    let empty = tags.iter().find(|(key, value)| key.is_empty() || value.is_empty());
    if let Some((key, _)) = empty {
        let message = "empty tag keys or values aren't supported";
        let finding = Finding::error(field, message);
        found.push(if key.is_empty() {
            finding
        } else {
            finding.hint(format!("write `*` to match any value of {}", quoted(key)))
        });
    }
    found
}

/// Stricter than Karpenter's unanchored pattern, as EC2 is.
fn image_id(field: &str, id: &str) -> Option<Finding> {
    let digits = id.strip_prefix("ami-").unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'z')) {
        return None;
    }
    let message = format!("{} is not the id of an image", quoted(id));
    Some(Finding::error(field, message).hint("an id is `ami-` and then hexadecimal digits"))
}
