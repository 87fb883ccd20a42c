//! Which worlds come along?
//!
//! Each has a page of its name in `docs/scenarios`, which tells what to see in it; but for `demo`, which
//! `nodemolt demo` tells itself.

/// A world to begin with.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    pub name: &'static str,
    pub text: &'static str,
}

impl BuiltIn {
    /// Its first line, which is a comment and a whole sentence.
    pub(crate) fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches(['#', ' '])
    }
}

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../../../docs/scenarios/", $name, ".yaml")),
        }),+]
    };
}

pub(crate) const ALL: &[BuiltIn] = built_in![
    "two-nodes-budget-one",
    "pdb-never-allows",
    "do-not-evict",
    "user-deletes-the-node",
    "never-joins",
    "successor-dies",
    "kept-successor",
    "two-leaders",
    "throttled-ssm",
    "limits-reached",
    "unequal-nodes-count",
    "unequal-nodes-cpu",
    "expiry",
    "crash-and-resume",
    "scheduling-mishap",
    "full-reservation",
    "demo",
];

#[cfg(test)]
mod tests {
    #[test]
    fn the_title_of_a_scenario_is_a_whole_sentence() {
        for it in super::ALL {
            assert!(
                it.title().ends_with('.') && it.title().len() < 110,
                "{}: {}",
                it.name,
                it.title()
            );
        }
    }
}
