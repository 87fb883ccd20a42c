//! What does each instance type boot?
//!
//! `choice × pools × instance types → the first image that fits, or what stands between`

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::Arc;

use nodemolt_fit::Requirements;

use super::choose::Choice;
use super::machines::{self, Fitting, Machine, Machines, Miss, Pool, Telling};
use super::{Boots, Held, Setting, TypeAnswer, TypesAsked};
use crate::image::ImageId;

/// The pools by name, with what each adds to a node; one without anything where none is known.
pub(super) fn pools_of<'a>(
    setting: &'a Setting<'_>,
) -> Vec<(Option<&'a str>, Option<Requirements>)> {
    if setting.pools.is_empty() {
        return vec![(None, None)];
    }
    let mut pools: Vec<&Pool> = setting.pools.iter().collect();
    pools.sort_by(|a, b| a.name.cmp(&b.name));
    let vocabulary = &setting.machines.vocabulary;
    pools.iter().map(|it| (Some(it.name.as_str()), Some(it.read(vocabulary)))).collect()
}

/// Whether it was asked what this type would boot.
pub(super) fn asked(machine: &Machine, setting: &Setting<'_>) -> bool {
    match &setting.types {
        TypesAsked::Any => machine.for_nodes,
        TypesAsked::Named(names) => names.contains(&*machine.name),
    }
}

/// Per pool and instance type the first image that fits.
pub(super) fn answer_types(choice: &Choice, setting: &Setting<'_>) -> Vec<TypeAnswer> {
    let machines = setting.machines;
    let pools = pools_of(setting);
    let mut answers = Vec::with_capacity(pools.len() * machines.len());
    for (name, wanted) in &pools {
        let wanted = wanted.as_ref();
        let launched = wanted.map(|it| machines.in_pool(it));
        let chosen: Vec<_> = choice
            .chosen
            .iter()
            .map(|it| machines.fitting(wanted, &it.requirements, &it.hardware))
            .collect();
        let mut nearest = Nearest::new(choice, wanted, machines, &chosen);
        let fitting = |held: &[Held]| -> Vec<Fitting> {
            let each = held.iter();
            each.map(|it| machines.fitting(wanted, &it.requirements, &it.hardware)).collect()
        };
        let (held, lost) = (fitting(&choice.held), fitting(&choice.lost));
        for (at, machine) in machines.iter().enumerate() {
            if !asked(machine, setting) || launched.as_ref().is_some_and(|it| !it.contains(at)) {
                continue;
            }
            let boots = if let Some(first) = chosen.iter().position(|it| it.contains(at)) {
                Boots::Image(first)
            } else if let Some(first) = held.iter().position(|it| it.contains(at)) {
                Boots::HeldBack(first)
            } else {
                let lost = lost.iter().position(|it| it.contains(at));
                Boots::Nothing { nearest: nearest.of(at, machine), lost }
            };
            answers.push(TypeAnswer {
                pool: name.map(str::to_owned),
                instance_type: Arc::clone(&machine.name),
                boots,
            });
        }
    }
    answers
}

/// The image, and all that stands between.
type NearestImage = Option<(ImageId, Arc<[Miss]>)>;

/// Of the chosen images the first of those of which the least stands between.
struct Nearest<'a> {
    choice: &'a Choice,
    pool: Option<&'a Requirements>,
    machines: &'a Machines,
    fitting: &'a [Fitting],
    telling: Telling<'a>,
    by_name: bool,
    /// What was found last: machines are many, and most miss the same as some other.
    found: VecDeque<(usize, NearestImage)>,
}

/// To look through more than this takes longer than to find it again.
const FOUND_MAX: usize = 16;

impl<'a> Nearest<'a> {
    fn new(
        choice: &'a Choice,
        pool: Option<&'a Requirements>,
        machines: &'a Machines,
        fitting: &'a [Fitting],
    ) -> Self {
        let telling = machines.telling(choice.chosen.iter().map(|it| &it.requirements));
        let by_name = choice.chosen.iter().any(|it| it.hardware.names_types());
        Self { choice, pool, machines, fitting, telling, by_name, found: VecDeque::new() }
    }

    fn of(&mut self, at: usize, machine: &Machine) -> Option<(ImageId, Arc<[Miss]>)> {
        if !self.by_name
            && let Some((_, answer)) =
                self.found.iter().find(|(found, _)| self.telling.alike(*found, at))
        {
            return answer.clone();
        }
        let answer = self.find(at, machine);
        self.found.truncate(FOUND_MAX - 1);
        self.found.push_front((at, answer.clone()));
        answer
    }

    /// Counted before anything is put into words.
    fn find(&self, at: usize, machine: &Machine) -> Option<(ImageId, Arc<[Miss]>)> {
        let Self { choice, pool, machines: Machines { vocabulary, .. }, .. } = *self;
        let (nearest, _) = choice
            .chosen
            .iter()
            .zip(self.fitting)
            // Of two that miss equally much, the one that asks for what this machine has: on a machine
            // with an AMD GPU the NVIDIA image is nearer than the one for machines without a GPU.
            .min_by_key(|(it, fitting)| {
                let met = machines::met(machine, pool, &it.requirements);
                (fitting.misses_number(at, machine, &it.hardware), Reverse(met))
            })?;
        let (asked, hardware) = (&nearest.requirements, &nearest.hardware);
        let misses = machines::misses(machine, pool, asked, hardware, vocabulary);
        Some((nearest.id.clone(), misses.into()))
    }
}
