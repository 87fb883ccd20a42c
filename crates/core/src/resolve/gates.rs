//! May this image boot?
//!
//! `candidate × policy × now → all that speaks against it`
//!
//! Every gate is asked, so that a person who opens one knows what is behind it.

use nodemolt_fit::Family;

use super::Setting;
use super::candidates::{Candidate, wrong_owner};
use super::refusal::{Counted, DeprecatedRule, OwnerRule, Refusal, UnknownDate};
use crate::ask::{Ask, Owner, Term};
use crate::catalog::{Because, Index, Kept};
use crate::policy::{AgeFrom, Ruling, Subject};

pub(super) fn refuse(
    candidate: &mut Candidate<'_>,
    index: &Index<'_>,
    ask: &Ask,
    ruling: &Ruling<'_>,
    setting: &Setting<'_>,
) {
    let kept = index.at(candidate.image);
    let (image, brief) = (&kept.sighting.image, &kept.brief);
    let subject = kept.subject();
    let now = index.now;
    let term = &ask.terms[candidate.term];
    let mut refusals = std::mem::take(&mut candidate.refusals);

    refusals.extend(owner(kept, term, ruling, setting));
    if brief.allowed == Some(false) {
        refusals.push(Refusal::NotAllowedByAccount);
    }
    if !brief.bootable {
        refusals.push(Refusal::NotBootable(kept.sighting.standing(now)));
    }
    if brief.architecture.is_none() {
        refusals.push(Refusal::UnsupportedArchitecture(image.architecture.as_str().to_owned()));
    }
    let linux = matches!(ask.family, Family::Al2 | Family::Al2023 | Family::Bottlerocket);
    if let Some(platform) = image.platform.as_ref().filter(|_| linux)
        && platform.eq_ignore_ascii_case("windows")
    {
        let (platform, family) = (platform.clone(), ask.family.name());
        refusals.push(Refusal::WrongPlatform { platform, family });
    }
    for rule in &ruling.rules {
        if rule.allowed.as_ref().is_some_and(|it| !it.admits_so_called(&brief.id, brief.name)) {
            refusals.push(Refusal::NotAllowedByPolicy { policy: rule.name.clone() });
        }
    }
    for quarantine in ruling.quarantines_of(&subject, now) {
        refusals.push(Refusal::Quarantined {
            by: quarantine.name.clone(),
            because: quarantine.reason.clone(),
            until: quarantine.expires_at,
        });
    }
    if let Some(api_server) = setting.kubernetes
        && let Some(kubelet) = kept.kubelet()
        && kubelet > api_server
    {
        refusals.push(Refusal::KubeletTooNew { kubelet, api_server });
    }
    refusals.extend(withdrawn_or_deprecated(candidate, kept, &subject, ruling, index));
    refusals.extend(age(candidate, kept, &subject, ask, ruling, index));

    refusals.sort_by_key(Refusal::gate);
    candidate.refusals = refusals;
}

/// Whose image it is, by the answer and not by the request: the term's word, or for a name without an
/// owner one's own and Amazon's, and every policy's list.
fn owner(kept: &Kept<'_>, term: &Term, ruling: &Ruling<'_>, setting: &Setting<'_>) -> Vec<Refusal> {
    let image = &kept.sighting.image;
    let (owner, group) = (kept.brief.owner.as_ref(), kept.brief.owner_alias);
    let account = setting.account.as_ref();
    let is = |it: &Owner| it.is(owner, group, account);
    let mut refusals = Vec::new();
    match (&term.owner, &term.name) {
        (Some(owner), _) if !is(owner) => {
            refusals.push(wrong_owner(image, OwnerRule::Term { owner: owner.to_string() }));
        }
        (None, Some(_)) if !is(&Owner::Own) && group != Some("amazon") => {
            let rule = OwnerRule::Default { account_known: account.is_some() };
            refusals.push(wrong_owner(image, rule));
        }
        (Some(_) | None, _) => {}
    }
    for rule in &ruling.rules {
        if let Some(owners) = &rule.owners
            && !owners.iter().any(is)
        {
            let owners = owners.iter().map(ToString::to_string).collect();
            let rule = OwnerRule::Policy { name: rule.name.clone(), owners };
            refusals.push(wrong_owner(image, rule));
        }
    }
    refusals
}

/// A withdrawn image boots nowhere, save by a dated exception. One that was only deprecated, however
/// early, is the last choice of terms that look for ids, names and tags, as everywhere else.
fn withdrawn_or_deprecated(
    candidate: &Candidate<'_>,
    kept: &Kept<'_>,
    subject: &Subject<'_>,
    ruling: &Ruling<'_>,
    index: &Index<'_>,
) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    if let Some(mark) = &kept.withdrawn
        && ruling.exception_of(subject, index.now).is_none()
        && (mark.because != Because::DeprecatedEarly || candidate.as_release)
    {
        refusals.push(Refusal::Withdrawn(mark.clone()));
    }
    if kept.brief.deprecated {
        let since = kept.sighting.image.deprecated.at();
        if let Some(name) = ruling.forbids_deprecated() {
            let because = DeprecatedRule::Policy { name: name.to_owned() };
            refusals.push(Refusal::Deprecated { since, because });
        } else if !candidate.may_be_deprecated {
            refusals.push(Refusal::Deprecated { since, because: DeprecatedRule::Fallback });
        }
    }
    refusals
}

fn age(
    candidate: &Candidate<'_>,
    kept: &Kept<'_>,
    subject: &Subject<'_>,
    ask: &Ask,
    ruling: &Ruling<'_>,
    index: &Index<'_>,
) -> Option<Refusal> {
    let image = &kept.sighting.image;
    let (minimum, policy) = ruling.age_floor_of(ask.minimum_age, subject, index.now);
    if minimum.none() || (candidate.pinned_by_id && ruling.pinned_ids_exempt()) {
        return None;
    }
    let Some(dated) = kept.dated else {
        let date = UnknownDate::of(&image.created, kept.from_the_future);
        return Some(Refusal::AgeUnknown { minimum, date });
    };
    let seen = match ruling.age_from() {
        AgeFrom::CreationOrFirstSeen => kept.brief.seen_later.filter(|it| *it > dated),
        AgeFrom::Creation => None,
    };
    let from = seen.unwrap_or(dated);
    let ripe_at = minimum.after(from);
    (ripe_at > index.now).then(|| {
        let counted = match seen {
            Some(_) => Counted::FromFirstSeen,
            None if image.created.at() == Some(dated) => Counted::FromCreation,
            None => Counted::FromSourceCreation,
        };
        let policy = policy.map(str::to_owned);
        Refusal::TooYoung { minimum, policy, from, counted, ripe_at }
    })
}
