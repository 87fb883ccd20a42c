//! Where do the SSM parameters point, and where did they point before?
//!
//! `published → moves per path`: one move per release, and after a recall one back.

use std::collections::BTreeMap;

use jiff::{SignedDuration, civil::DateTime};

use super::{
    dice::Dice,
    private::{ML_DRIVERS, golden_id},
    public::Published,
    wire::{OWN_ACCOUNT, Parameter, PastParameter, REGION, during, ssm_time},
};

/// The moves that happened before the first release of the catalog.
const EARLIER_MOVES: usize = 11;

/// How many releases of each kind are also there under their own path.
const PINNED_RELEASES: usize = 5;

/// The value of a parameter from a moment on.
#[derive(Debug)]
struct Move {
    at: DateTime,
    image_id: String,
}

#[derive(Debug, Default)]
pub(crate) struct Pointers {
    /// Oldest first, never empty.
    moves: BTreeMap<String, Vec<Move>>,
    /// Path, image and since when.
    pinned: Vec<(String, Move)>,
}

pub(crate) fn pointers(published: &[Published]) -> Pointers {
    let mut by_path: BTreeMap<&str, Vec<&Published>> = BTreeMap::new();
    for it in published {
        by_path.entry(&it.latest).or_default().push(it);
    }
    let mut pointers = Pointers::default();
    for (path, mut releases) in by_path {
        releases.sort_by_key(|it| it.created_at);
        pointers.moves.insert(path.to_owned(), moves(&releases));
        for release in releases.iter().rev().take(PINNED_RELEASES) {
            let pinned = release.pinned.clone().map(|path| (path, move_to(release)));
            pointers.pinned.extend(pinned);
        }
    }
    pointers
}

fn moves(releases: &[&Published]) -> Vec<Move> {
    let mut moves = Vec::new();
    for (number, release) in releases.iter().enumerate() {
        moves.push(move_to(release));
        if let (Some(recalled_at), Some(before)) = (release.recalled_at, number.checked_sub(1)) {
            let image_id = releases[before].image.image_id.clone();
            let at = shortly_after(recalled_at, &release.latest);
            moves.push(Move { at, image_id });
        }
    }
    moves
}

fn move_to(release: &Published) -> Move {
    let at = shortly_after(release.created_at, &release.image.name);
    Move { at, image_id: release.image.image_id.clone() }
}

/// Within the hour or so that publishing takes, to the microsecond as SSM says it.
fn shortly_after(at: DateTime, of: &str) -> DateTime {
    let mut dice = Dice::of(&format!("publishing {of}"));
    let waited = SignedDuration::from_mins(20 + dice.below(60));
    at.saturating_add(waited).saturating_add(SignedDuration::from_millis(dice.below(60_000)))
}

/// As of now: the public paths and the versioned ones.
pub(crate) fn parameters(pointers: &Pointers) -> Vec<Parameter> {
    let latest = pointers.moves.iter().map(|(path, moves)| {
        let last = moves.last().expect("every path has a release");
        public(path, last, EARLIER_MOVES + moves.len())
    });
    let pinned = pointers.pinned.iter().map(|(path, only)| public(path, only, 1));
    latest.chain(pinned).collect()
}

/// Every value that the path has had.
pub(crate) fn history(pointers: &Pointers, path: &str) -> Vec<PastParameter> {
    let moves = &pointers.moves[path];
    (EARLIER_MOVES + 1..)
        .zip(moves)
        .map(|(version, it)| PastParameter {
            name: path.to_owned(),
            kind: "String",
            last_modified_date: ssm_time(it.at),
            value: it.image_id.clone(),
            version,
            labels: Vec::new(),
            tier: "Standard",
            policies: Vec::new(),
            data_type: "text",
        })
        .collect()
}

fn public(path: &str, last: &Move, version: usize) -> Parameter {
    parameter(path, "", last.image_id.clone(), version, last.at)
}

fn parameter(
    name: &str,
    account: &str,
    value: String,
    version: usize,
    modified_at: DateTime,
) -> Parameter {
    Parameter {
        arn: format!("arn:aws:ssm:{REGION}:{account}:parameter{name}"),
        name: name.to_owned(),
        kind: "String",
        value,
        version,
        last_modified_date: ssm_time(modified_at),
        data_type: "text",
    }
}

/// The platform team's own parameters.
pub(crate) fn custom() -> [Parameter; 3] {
    let own = |name: &str, value: String, version, day| {
        parameter(name, OWN_ACCOUNT, value, version, during(day, name))
    };
    // As printed in seed 1.
    let with_requirements = format!(
        "{{\"id\":\"{ML_DRIVERS}\",\"requirements\":[\
         {{\"key\":\"kubernetes.io/arch\",\"operator\":\"In\",\"values\":[\"arm64\"]}},\
         {{\"key\":\"karpenter.k8s.aws/instance-gpu-count\",\"operator\":\"DoesNotExist\"}},\
         {{\"key\":\"karpenter.k8s.aws/instance-accelerator-count\",\
         \"operator\":\"DoesNotExist\"}}]}}"
    );
    // Cut off in the middle, as by a script with too short a buffer.
    let broken = with_requirements[..with_requirements.len() / 2].to_owned();
    [
        own("/my-org/amis/custom-ml-drivers", with_requirements, 4, "20261016"),
        own("/my-org/amis/golden", golden_id("v20261104"), 9, "20261105"),
        own("/my-org/amis/broken", broken, 2, "20261016"),
    ]
}
