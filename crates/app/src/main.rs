//! The one binary.
//!
//! stdout is data, stderr is talk. A command collects what it prints and says how it ended; only this
//! file exits. The demo draws while it goes on, and `sim run` tells while time passes; all others write here.

mod cli;
mod input;
mod output;
mod terminal;
mod resolve;
mod images;
mod types;
mod launch;
mod userdata;
mod pack;
mod sim;
mod fleet;
mod demo;
mod crds;
mod validate;
mod completion;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::output::Exit;

/// Fleets and lists of pods are many small pieces: a turn and a packing take about a quarter less with it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(arguments) => arguments,
        Err(error) => {
            // clap would exit with 2, which scripts read as "there are changes".
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Done };
            if let Some(words) = negative(&error) {
                talk(&words);
                return code.into();
            }
            // Help is an answer as any other: whoever wanted it has to know that it did not come.
            let written = error.print().and_then(|()| std::io::stdout().flush());
            return match written {
                Err(it) if !error.use_stderr() && it.kind() != ErrorKind::BrokenPipe => {
                    talk(&output::unwritten(&it, false).talk);
                    Exit::Failed.into()
                }
                Ok(()) | Err(_) => code.into(),
            };
        }
    };
    let look = output::Look::new(&arguments);
    let result = match &arguments.verb {
        cli::Verb::Resolve(verb) => resolve::run(verb, look),
        cli::Verb::Images(verb) => images::run(verb, look),
        cli::Verb::Types(verb) => types::run(verb, look),
        cli::Verb::Launch(verb) => launch::run(verb, look),
        cli::Verb::Userdata(verb) => userdata::run(verb, look),
        cli::Verb::Crds(verb) => crds::run(verb),
        cli::Verb::Validate(verb) => validate::run(verb, look),
        cli::Verb::Pack(verb) => pack::run(verb, look),
        cli::Verb::Demo(verb) => demo::run(verb, look),
        cli::Verb::Sim(verb) => sim::run(verb, look),
        cli::Verb::Status(verb) => fleet::status(verb, look),
        cli::Verb::Drift(verb) => fleet::drift(verb, look),
        cli::Verb::Plan(verb) => fleet::plan(verb, look),
        cli::Verb::Explain(verb) => fleet::explain(verb, look),
        cli::Verb::Upgrade(verb) => fleet::upgrade(verb),
        cli::Verb::Pause(verb) => fleet::pause(verb),
        cli::Verb::Resume(verb) => fleet::resume(verb),
        cli::Verb::Unlock(verb) => fleet::unlock(verb),
        cli::Verb::Completion(verb) => Ok(completion::run(verb)),
    };
    match result {
        Ok(answer) => {
            talk(&look.plain(&answer.talk));
            let written = if verbatim(&arguments.verb) {
                output::write_verbatim(&answer.data)
            } else {
                output::write(&answer.data, look)
            };
            match written {
                Err(error) => {
                    talk(&output::unwritten(&error, acts(&arguments.verb)).talk);
                    Exit::Failed.into()
                }
                Ok(()) => answer.exit.into(),
            }
        }
        Err(failure) => {
            talk(&look.plain(&failure.talk));
            failure.exit.into()
        }
    }
}

/// Whether the answer is data to the byte: what a node is told, or what a program reads.
fn verbatim(verb: &cli::Verb) -> bool {
    // A large answer takes longer to be searched for colours than to be found.
    if let cli::Verb::Pack(verb) = verb {
        return verb.output == cli::PackFormat::Json;
    }
    let cli::Verb::Userdata(verb) = verb else { return matches!(verb, cli::Verb::Launch(_)) };
    match &verb.verb {
        cli::UserdataVerb::Render(_) => true,
        cli::UserdataVerb::Diff(verb) => verb.output == cli::PlainFormat::Json,
        cli::UserdataVerb::Lint(verb) => verb.output == cli::PlainFormat::Json,
    }
}

/// Whether something is left of it that is not printed: a world, and what was done to it.
fn acts(verb: &cli::Verb) -> bool {
    match verb {
        cli::Verb::Upgrade(_)
        | cli::Verb::Pause(_)
        | cli::Verb::Resume(_)
        | cli::Verb::Unlock(_) => true,
        cli::Verb::Sim(verb) => {
            !matches!(verb.verb, cli::SimVerb::List(_) | cli::SimVerb::Replay(_))
        }
        cli::Verb::Resolve(_)
        | cli::Verb::Images(_)
        | cli::Verb::Types(_)
        | cli::Verb::Launch(_)
        | cli::Verb::Userdata(_)
        | cli::Verb::Crds(_)
        | cli::Verb::Validate(_)
        | cli::Verb::Pack(_)
        | cli::Verb::Demo(_)
        | cli::Verb::Status(_)
        | cli::Verb::Drift(_)
        | cli::Verb::Plan(_)
        | cli::Verb::Explain(_)
        | cli::Verb::Completion(_) => false,
    }
}

/// `-5m` is a value that nothing takes, not an option that nobody knows.
fn negative(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return None };
    found.strip_prefix('-').filter(|it| it.starts_with(|it: char| it.is_ascii_digit()))?;
    let mut typed = std::env::args_os().skip(1).filter_map(|it| it.into_string().ok());
    let whole = typed.find(|it| it.starts_with(found.as_str()));
    let whole = whole.as_ref().unwrap_or(found);
    Some(format!(
        "error: `{whole}` is negative\nhint: lengths of time, shares and numbers are zero or more here\n"
    ))
}

/// As `kubectl-nodemolt` it is called `kubectl nodemolt`, and says so in its usage.
fn arguments() -> Result<cli::Arguments, clap::Error> {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&called).file_stem().and_then(|it| it.to_str());
    let mut command = cli::Arguments::command();
    if name == Some("kubectl-nodemolt") {
        command = command.bin_name("kubectl nodemolt");
    }
    let matches = command.try_get_matches()?;
    cli::Arguments::from_arg_matches(&matches)
}

fn talk(text: &str) {
    let mut stderr = anstream::AutoStream::auto(std::io::stderr());
    let _ = stderr.write_all(output::shown(text).as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        cli::Arguments::command().debug_assert();
    }

    /// With what is told of itself: commands to be copied may be longer than a line.
    #[test]
    fn every_word_of_the_command_line_is_explained_in_whole_lines() {
        let mut command = cli::Arguments::command();
        command.build();
        let mut wrong = Vec::new();
        look_into(&command, &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn look_into(command: &clap::Command, wrong: &mut Vec<String>) {
        let name = command.get_bin_name().unwrap_or_default().to_owned();
        let said: Vec<String> = command
            .get_arguments()
            .map(|it| (it.get_id().to_string(), it.get_help().map(ToString::to_string)))
            .chain([("itself".to_owned(), command.get_about().map(ToString::to_string))])
            .filter_map(|(of, help)| match help {
                None => {
                    wrong.push(format!("`{name}`: `{of}` is not explained"));
                    None
                }
                Some(help) => Some(help),
            })
            .collect();
        for text in &said {
            // Backticks that clippy wants and that are no command's would stand in the help.
            for odd in ["$`", "`NodeClaim`", "`PodDisruptionBudget`", "`ImagePolicies`"] {
                if text.contains(odd) {
                    wrong.push(format!("`{name}`: `{odd}` in: {text}"));
                }
            }
        }
        let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for line in after.lines().filter(|it| it.chars().count() > LINE_MAX) {
            let copied = ["nodemolt ", "kubectl ", "aws ", "helm "];
            if !copied.iter().any(|it| line.trim_start().starts_with(it)) {
                wrong.push(format!("`{name}` breaks in the middle: {line}"));
            }
        }
        let mut abouts = std::collections::BTreeSet::new();
        for verb in command.get_subcommands().filter(|it| it.get_name() != "help") {
            if !abouts.insert(verb.get_about().map(ToString::to_string)) {
                wrong.push(format!("`{name} {}` says the same as another", verb.get_name()));
            }
            look_into(verb, wrong);
        }
    }

    /// What clap is told to break at.
    const LINE_MAX: usize = 100;
}
