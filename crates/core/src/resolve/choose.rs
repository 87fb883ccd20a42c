//! Which of the images that may boot is the best, for each set of requirements?
//!
//! `candidates → chosen + held back`, and the account of everything else.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use nodemolt_fit::Requirements;

use super::candidates::Candidate;
use super::machines::{self, Hardware};
use super::{Chosen, Held, Next, Refusal, Refused, Setting, Verdict, rank};
use crate::catalog::Index;
use crate::image::ImageId;

/// What the requirement sets ended with.
pub(super) struct Choice {
    pub(super) chosen: Vec<Chosen>,
    pub(super) held: Vec<Held>,
    pub(super) lost: Vec<Held>,
    /// For each candidate, the best of the images that beat it in one of its sets.
    beaten_by: Vec<Option<usize>>,
    /// For each candidate, whether it won at least one of its sets.
    won: Vec<bool>,
}

/// Per requirement set the best image.
pub(super) fn choose(
    index: &Index<'_>,
    candidates: &[Candidate<'_>],
    setting: &Setting<'_>,
) -> Choice {
    let mut sets: BTreeMap<&Requirements, Vec<usize>> = BTreeMap::new();
    for (at, candidate) in candidates.iter().enumerate() {
        for set in candidate.sets.iter() {
            sets.entry(set).or_default().push(at);
        }
    }
    let mut choice = Choice {
        chosen: Vec::new(),
        held: Vec::new(),
        lost: Vec::new(),
        beaten_by: vec![None; candidates.len()],
        won: vec![false; candidates.len()],
    };
    for (requirements, mut members) in sets {
        members.sort_by_cached_key(|it| {
            let candidate = &candidates[*it];
            let kept = index.at(candidate.image);
            let deprecated = kept.brief.deprecated;
            // Whoever is refused for age comes last, whatever else speaks for it: it stays only where
            // nothing else may boot.
            (!candidate.refusals.is_empty(), deprecated, rank(kept), candidate.term)
        });
        let mut winners: Vec<(usize, Hardware)> = Vec::new();
        for at in &members {
            let candidate = &candidates[*at];
            if !eligible(candidate, index, setting) {
                continue;
            }
            let image = &index.at(candidate.image).sighting.image;
            let better = winners.iter().find(|(winner, theirs)| {
                candidates[*winner].image == candidate.image || theirs.covers_image(image)
            });
            match better {
                Some((winner, _)) if candidates[*winner].image == candidate.image => {
                    choice.won[*at] = true;
                }
                Some((winner, _)) => {
                    // Of those that beat it in its sets the best is told, whichever set comes first.
                    let by = candidates[*winner].image;
                    let told = choice.beaten_by[*at].get_or_insert(by);
                    if rank(index.at(by)) < rank(index.at(*told)) {
                        *told = by;
                    }
                }
                None => {
                    choice.won[*at] = true;
                    winners.push((*at, Hardware::of(image)));
                }
            }
        }
        // Whoever is only waiting for age, and would come before what was chosen.
        let next = |than: Option<usize>| upcoming(index, candidates, &members, &winners, than);
        for (at, hardware) in &winners {
            let candidate = &candidates[*at];
            let kept = index.at(candidate.image);
            let mut terms: Vec<usize> = members
                .iter()
                .map(|it| &candidates[*it])
                .filter(|it| it.image == candidate.image)
                .map(|it| it.term)
                .collect();
            terms.sort_unstable();
            terms.dedup();
            choice.chosen.push(Chosen {
                id: kept.id().clone(),
                name: kept.name().to_owned(),
                version: candidate.version.as_deref().map(str::to_owned),
                dated: kept.dated,
                requirements: requirements.clone(),
                hardware: hardware.clone(),
                terms,
                deprecated: kept.brief.deprecated,
                only_in_use: !candidate.refusals.is_empty(),
                next: next(Some(*at)),
            });
        }
        if !winners.is_empty() {
            continue;
        }
        let all = members.iter().map(|it| &candidates[*it]);
        let told = |it: &Candidate<'_>, refusal: &Refusal| {
            let kept = index.at(it.image);
            Held {
                requirements: requirements.clone(),
                hardware: Hardware::of(&kept.sighting.image),
                id: kept.id().clone(),
                refusal: refusal.clone(),
                next: next(None),
            }
        };
        let held = |it: &&Candidate<'_>| it.refusals.iter().all(Refusal::held);
        if let Some((it, first)) =
            all.clone().filter(held).find_map(|it| Some((it, it.refusals.first()?)))
        {
            choice.held.push(told(it, first));
        } else if let Some((it, first)) =
            all.filter_map(|it| Some((it, it.refusals.first()?))).find(|(_, it)| it.worth_naming())
        {
            choice.lost.push(told(it, first));
        }
    }
    choice
}

/// An image in use is exempt from age, and from age only.
fn eligible(candidate: &Candidate<'_>, index: &Index<'_>, setting: &Setting<'_>) -> bool {
    candidate.refusals.is_empty()
        || candidate.refusals.iter().all(Refusal::spares_what_is_in_use)
            && setting.in_use.contains(index.at(candidate.image).id())
}

/// The first of the too young that will be old enough, of those that would then be chosen.
fn upcoming(
    index: &Index<'_>,
    candidates: &[Candidate<'_>],
    members: &[usize],
    winners: &[(usize, Hardware)],
    than: Option<usize>,
) -> Option<Next> {
    let best = than.map(|it| &candidates[it]);
    let image = |it: &Candidate<'_>| &index.at(it.image).sighting.image;
    let order = |it: &Candidate<'_>| {
        let kept = index.at(it.image);
        (kept.sighting.image.deprecated_by(index.now), rank(kept))
    };
    members
        .iter()
        .map(|it| &candidates[*it])
        // Few are only waiting; what follows is asked of those alone.
        .filter_map(|it| {
            let mut at = None;
            for refusal in &it.refusals {
                at = at.max(Some(refusal.ends_at()?));
            }
            at.map(|at| (at, it))
        })
        .filter(|(_, it)| {
            best.is_none_or(|best| {
                // An image in use that is still too young is succeeded by itself, or by what is better.
                let better = !best.refusals.is_empty() || order(it) < order(best);
                better && machines::covers(image(it), image(best))
            })
        })
        // Nor will it be chosen while something better boots wherever it does.
        .filter(|(_, it)| {
            !winners.iter().any(|(winner, theirs)| {
                let winner = &candidates[*winner];
                winner.refusals.is_empty()
                    && order(winner) <= order(it)
                    && theirs.covers_image(image(it))
            })
        })
        .min_by_key(|(at, it)| (*at, order(it)))
        .map(|(at, it)| {
            let kept = index.at(it.image);
            Next { id: kept.id().clone(), name: kept.name().to_owned(), at }
        })
}

/// Every image that a term matched, once; and every verdict of every term.
#[expect(clippy::type_complexity, reason = "two answers of one pass")]
pub(super) fn account(
    index: &Index<'_>,
    mut candidates: Vec<Candidate<'_>>,
    choice: &Choice,
    setting: &Setting<'_>,
) -> (BTreeMap<ImageId, Refused>, Vec<Vec<(ImageId, Verdict)>>) {
    let terms = candidates.iter().map(|it| it.term + 1).max().unwrap_or(0);
    let mut numbers = vec![0; terms];
    for candidate in &candidates {
        numbers[candidate.term] += 1;
    }
    let mut verdicts: Vec<Vec<(usize, Verdict)>> =
        numbers.into_iter().map(Vec::with_capacity).collect();
    // By position, which is the order of ids: what stands behind the last one is new.
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by_key(|it| candidates[*it].image);
    let mut refused: Vec<(ImageId, Refused)> = Vec::with_capacity(candidates.len());
    let chosen: BTreeSet<&ImageId> = choice.chosen.iter().map(|it| &it.id).collect();
    for at in order {
        let candidate = &mut candidates[at];
        let kept = index.at(candidate.image);
        let verdict = if choice.won[at] {
            Verdict::Chosen
        } else {
            // They stand in the order of the gates.
            let mut all = std::mem::take(&mut candidate.refusals).into_iter();
            match (all.next(), choice.beaten_by[at]) {
                (Some(first), _) => Verdict::Refused(first, all.collect()),
                (None, Some(by)) => {
                    let by = index.at(by).id().clone();
                    Verdict::Refused(Refusal::Superseded { by }, Vec::new())
                }
                // Unreachable by construction: who is eligible has won or was beaten.
                (None, None) => Verdict::Chosen,
            }
        };
        if let Verdict::Refused(refusal, also) = &verdict
            && !chosen.contains(kept.id())
        {
            if refused.last().is_none_or(|(last, _)| last != kept.id()) {
                let first = Refused {
                    name: kept.name().to_owned(),
                    version: candidate.version.take().map(Cow::into_owned),
                    dated: kept.dated,
                    refusal: refusal.clone(),
                    also: also.clone(),
                    in_use: setting.in_use.contains(kept.id()),
                    terms: Vec::new(),
                };
                refused.push((kept.id().clone(), first));
            }
            let Some((_, entry)) = refused.last_mut() else { continue };
            if refusal.gate() > entry.refusal.gate() {
                entry.refusal = refusal.clone();
                entry.also.clone_from(also);
            }
            if !entry.terms.contains(&candidate.term) {
                entry.terms.push(candidate.term);
            }
        }
        verdicts[candidate.term].push((candidate.image, verdict));
    }
    let refused = refused.into_iter().collect();
    let verdicts = verdicts
        .into_iter()
        .map(|mut all| {
            // A variant may refuse what another chooses; a term says of an image only the best.
            all.sort_by_cached_key(|(image, verdict)| {
                (rank(index.at(*image)), matches!(verdict, Verdict::Refused(..)))
            });
            all.dedup_by(|b, a| a.0 == b.0);
            all.into_iter().map(|(image, it)| (index.at(image).id().clone(), it)).collect()
        })
        .collect();
    (refused, verdicts)
}
