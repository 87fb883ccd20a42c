//! What do the wire types mean?
//!
//! `wire → core`, the only way there. Nothing fails silently: what cannot be understood is a finding with
//! the field's path, and the file door adds the line to it.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use nodemolt_core::ask::{Age, Alias, Ask, Owner, ParameterName, Term};
use nodemolt_core::catalog::check_image_requirement;
use nodemolt_core::image::{ImageId, NamePattern};
use nodemolt_core::policy::{
    AgeFrom, AllowedImages, DeprecatedImages, Exception, LabelExpression, LabelSelector, PinnedIds,
    Quarantine, Rule, Which,
};
use nodemolt_core::resolve::Pool;
use nodemolt_fit::{Family, Operator, Written};

use crate::ec2nodeclass::{AmiSelectorTerm, EC2NodeClass};
use crate::imagepolicy::{self, ImagePolicy};
use crate::imagequarantine::ImageQuarantine;
use crate::meta::{self, WireRequirement};
use crate::nodepool::NodePool;
use crate::problem::Finding;

/// Reads a field, and notes where it cannot be read.
pub(crate) struct Reader {
    pub(crate) found: Vec<Finding>,
}

impl Reader {
    pub(crate) fn new() -> Self {
        Self { found: Vec::new() }
    }

    pub(crate) fn parse<T>(&mut self, field: &str, text: &str) -> Option<T>
    where
        T: std::str::FromStr,
        T::Err: std::fmt::Display,
    {
        text.parse()
            .map_err(|error| self.found.push(Finding::error(field, format!("{error}"))))
            .ok()
    }

    pub(crate) fn time(&mut self, field: &str, text: &str) -> Option<Timestamp> {
        let read = read_time(text);
        if read.is_none() {
            let message = format!("`{text}` is not a date or a time with its zone");
            let hint = "write it as `2026-08-01` or `2026-08-01T12:00:00Z`";
            self.found.push(Finding::error(field, message).hint(hint));
        }
        read
    }

    pub(crate) fn requirement(&mut self, field: &str, wire: &WireRequirement) -> Option<Written> {
        let operator: Operator = self.parse(&format!("{field}.operator"), &wire.operator)?;
        let min_values = match wire.min_values {
            None => None,
            Some(number) => {
                let Ok(small) = u32::try_from(number) else {
                    let message = format!("{number} is not between 1 and 50");
                    self.found.push(Finding::error(format!("{field}.minValues"), message));
                    return None;
                };
                Some(small)
            }
        };
        // Karpenter admits values that mean nothing here; the door has warned of them.
        let values = match operator {
            Operator::Exists | Operator::DoesNotExist => Vec::new(),
            Operator::In
            | Operator::NotIn
            | Operator::Gt
            | Operator::Lt
            | Operator::Gte
            | Operator::Lte => wire.values.clone(),
        };
        let written = Written { key: wire.key.clone(), operator, values, min_values };
        match written.check() {
            Ok(()) => Some(written),
            Err(error) => {
                self.found.push(Finding::error(field, error.to_string()));
                None
            }
        }
    }

    /// What has to be there.
    pub(crate) fn present<T>(&mut self, field: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.found.push(Finding::error(field, "is missing"));
        }
        value
    }

    pub(crate) fn finish<T>(self, value: Option<T>) -> Result<T, Vec<Finding>> {
        match value {
            Some(value) if self.found.is_empty() => Ok(value),
            _ => Err(self.found),
        }
    }
}

/// A time with its zone, or a date, whose start in UTC is meant.
pub fn read_time(text: &str) -> Option<Timestamp> {
    if let Ok(at) = text.parse() {
        return Some(at);
    }
    let date: Date = text.parse().ok().filter(|_| text.len() == 10)?;
    date.to_zoned(TimeZone::UTC).ok().map(|it| it.timestamp())
}

impl TryFrom<&EC2NodeClass> for Ask {
    type Error = Vec<Finding>;

    fn try_from(class: &EC2NodeClass) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let spec = &class.spec;
        let minimum_age = match &spec.ami_minimum_age {
            None => Age::NONE,
            Some(text) => reader.parse("spec.amiMinimumAge", text).unwrap_or_default(),
        };
        let mut terms = Vec::new();
        for (at, wire) in spec.terms().iter().enumerate() {
            terms.push(read_term(&mut reader, &format!("spec.amiSelectorTerms[{at}]"), wire));
        }
        let written: Option<Family> =
            spec.ami_family.as_ref().and_then(|it| reader.parse("spec.amiFamily", it));
        let aliased = terms.iter().find_map(|it| it.alias.as_ref()).map(|it| it.family);
        // The family alone means its newest release.
        if terms.is_empty()
            && spec.ami_selector_terms.is_none()
            && let Some(family) = written.filter(|it| it.alias_name().is_some())
        {
            terms.push(Term::of_alias(Alias::latest(family)));
        }
        if terms.is_empty() && reader.found.is_empty() {
            let message = match written {
                Some(Family::Custom) => "the family Custom has no images of its own",
                _ => "neither amiSelectorTerms nor amiFamily says which images",
            };
            let hint = "write amiSelectorTerms, for example `- alias: al2023@latest`";
            reader.found.push(Finding::error("spec.amiSelectorTerms", message).hint(hint));
        }
        let ask = Self {
            class: class.metadata.name.clone(),
            labels: class.metadata.labels.clone(),
            family: written.or(aliased).unwrap_or(Family::Custom),
            terms,
            minimum_age,
        };
        reader.finish(Some(ask))
    }
}

fn read_term(reader: &mut Reader, field: &str, wire: &AmiSelectorTerm) -> Term {
    let AmiSelectorTerm { alias, tags, id, name, owner, ssm_parameter, requirements } = wire;
    // What is empty counts as absent, and a parameter beside an alias too: the door has warned of both.
    let said = |it: &Option<String>| it.clone().filter(|it| !it.is_empty());
    let (name, owner) = (said(name), said(owner));
    let ssm_parameter = said(ssm_parameter).filter(|_| alias.is_none());
    let mut term = Term {
        alias: alias.as_ref().and_then(|it| reader.parse(&format!("{field}.alias"), it)),
        id: id.as_ref().and_then(|it| reader.parse::<ImageId>(&format!("{field}.id"), it)),
        parameter: ssm_parameter
            .as_ref()
            .and_then(|it| reader.parse::<ParameterName>(&format!("{field}.ssmParameter"), it)),
        name: name.as_ref().map(|it| NamePattern::new(it)),
        tags: BTreeMap::new(),
        owner: owner.as_ref().and_then(|it| reader.parse::<Owner>(&format!("{field}.owner"), it)),
        requirements: Vec::new(),
    };
    for (key, value) in tags.iter().flatten() {
        let any = value == "*";
        term.tags.insert(key.clone(), (!any).then(|| NamePattern::new(value)));
    }
    for (at, wire) in requirements.iter().enumerate() {
        let field = format!("{field}.requirements[{at}]");
        let Some(written) = reader.requirement(&field, wire) else { continue };
        match check_image_requirement(&written) {
            Ok(()) => term.requirements.push(written),
            Err(message) => reader.found.push(Finding::error(field, message)),
        }
    }
    term
}

/// A pool, and the class that it refers to.
#[derive(Debug, Clone)]
pub struct PoolOfClass {
    pub pool: Pool,
    pub class_group: String,
    pub class_name: String,
}

impl TryFrom<&NodePool> for PoolOfClass {
    type Error = Vec<Finding>;

    fn try_from(pool: &NodePool) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let template = &pool.spec.template;
        let mut requirements = Vec::new();
        for (at, wire) in template.spec.requirements.iter().enumerate() {
            let field = format!("spec.template.spec.requirements[{at}]");
            requirements.extend(reader.requirement(&field, wire));
        }
        let labels = template.metadata.as_ref().map(|it| it.labels.clone()).unwrap_or_default();
        let class = &template.spec.node_class_ref;
        reader.finish(Some(Self {
            pool: Pool { name: pool.metadata.name.clone(), labels, requirements },
            class_group: class.group.clone(),
            class_name: class.name.clone(),
        }))
    }
}

impl TryFrom<&ImagePolicy> for Rule {
    type Error = Vec<Finding>;

    fn try_from(policy: &ImagePolicy) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let spec = &policy.spec;
        let mut rule = Self::named(&policy.metadata.name);
        if let Some(selector) = &spec.class_selector {
            rule.classes = read_selector(&mut reader, "spec.classSelector", selector);
        }
        if let Some(owners) = &spec.owners {
            let mut read = BTreeSet::new();
            for (at, owner) in owners.iter().enumerate() {
                read.extend(reader.parse::<Owner>(&format!("spec.owners[{at}]"), owner));
            }
            rule.owners = Some(read);
        }
        // An empty list allows nothing, as an empty list of owners allows nobody's.
        if let Some(allowed) = &spec.allowed_images {
            let mut read = AllowedImages::default();
            for (at, id) in allowed.ids.iter().enumerate() {
                read.ids
                    .extend(reader.parse::<ImageId>(&format!("spec.allowedImages.ids[{at}]"), id));
            }
            read.names.extend(allowed.names.iter().map(|it| NamePattern::new(it)));
            rule.allowed = Some(read);
        }
        if let Some(text) = &spec.minimum_age {
            rule.minimum_age = reader.parse("spec.minimumAge", text).unwrap_or_default();
        }
        rule.age_from = spec.age_from.map(|it| match it {
            imagepolicy::AgeFrom::CreationOrFirstSeen => AgeFrom::CreationOrFirstSeen,
            imagepolicy::AgeFrom::Creation => AgeFrom::Creation,
        });
        rule.pinned_ids = spec.pinned_ids.map(|it| match it {
            imagepolicy::PinnedIds::HeldByAge => PinnedIds::HeldByAge,
            imagepolicy::PinnedIds::ExemptFromAge => PinnedIds::ExemptFromAge,
        });
        rule.deprecated = spec.deprecated_images.map(|it| match it {
            imagepolicy::DeprecatedImages::LastChoice => DeprecatedImages::LastChoice,
            imagepolicy::DeprecatedImages::Forbidden => DeprecatedImages::Forbidden,
        });
        for (at, exception) in spec.exceptions.iter().enumerate() {
            let field = format!("spec.exceptions[{at}]");
            let image = which(&mut reader, &format!("{field}.image"), &exception.image);
            let until = reader.time(&format!("{field}.until"), &exception.until);
            if let (Some(image), Some(until)) = (image, until) {
                rule.exceptions.push(Exception { image, reason: exception.reason.clone(), until });
            }
        }
        reader.finish(Some(rule))
    }
}

/// An id, or a pattern of a name.
fn which(reader: &mut Reader, field: &str, text: &str) -> Option<Which> {
    if text.starts_with("ami-") {
        return reader.parse(field, text).map(Which::Id);
    }
    Some(Which::Name(NamePattern::new(text)))
}

pub(crate) fn read_selector(
    reader: &mut Reader,
    field: &str,
    wire: &meta::LabelSelector,
) -> LabelSelector {
    let mut selector = LabelSelector { labels: wire.match_labels.clone(), expressions: Vec::new() };
    for (at, expression) in wire.match_expressions.iter().enumerate() {
        let key = expression.key.clone();
        let values: BTreeSet<String> = expression.values.iter().cloned().collect();
        selector.expressions.push(match expression.operator.as_str() {
            "In" => LabelExpression::In(key, values),
            "NotIn" => LabelExpression::NotIn(key, values),
            "Exists" => LabelExpression::Exists(key),
            "DoesNotExist" => LabelExpression::DoesNotExist(key),
            other => {
                let message = format!("`{other}` is not an operator of a selector");
                let hint = "write one of In, NotIn, Exists, DoesNotExist";
                let field = format!("{field}.matchExpressions[{at}].operator");
                reader.found.push(Finding::error(field, message).hint(hint));
                continue;
            }
        });
    }
    selector
}

impl TryFrom<&ImageQuarantine> for Quarantine {
    type Error = Vec<Finding>;

    fn try_from(wire: &ImageQuarantine) -> Result<Self, Self::Error> {
        let mut reader = Reader::new();
        let spec = &wire.spec;
        let image = match (&spec.id, &spec.name, &spec.version) {
            (Some(id), None, None) => reader.parse("spec.id", id).map(Which::Id),
            (None, Some(name), None) => Some(Which::Name(NamePattern::new(name))),
            (None, None, Some(version)) => Some(Which::Version(NamePattern::new(version))),
            _ => {
                let message = "expected exactly one of id, name and version";
                reader.found.push(Finding::error("spec", message));
                None
            }
        };
        let expires_at = spec.expires_at.as_ref().and_then(|it| reader.time("spec.expiresAt", it));
        let quarantine = image.map(|image| Self {
            name: wire.metadata.name.clone(),
            image,
            reason: spec.reason.clone(),
            evidence: spec.evidence.clone().unwrap_or_default(),
            expires_at,
        });
        reader.finish(quarantine)
    }
}
