//! The one binary.
//!
//! stdout is data, stderr is talk. A command collects what it prints and says how it ended; only this
//! file writes and exits; the demo alone draws while it goes on.

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

use std::io::Write;
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
            match negative(&error) {
                Some(words) => talk(&words),
                None => _ = error.print(),
            }
            return code.into();
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
            talk(&answer.talk);
            // Whoever reads us may stop reading; that is no failure of ours.
            let choice = if verbatim(&arguments.verb) {
                // Nothing in it is ours to colour, and not a byte of it ours to drop.
                anstream::ColorChoice::AlwaysAnsi
            } else {
                look.choice()
            };
            let mut stdout = anstream::AutoStream::new(std::io::stdout(), choice);
            match stdout.write_all(answer.data.as_bytes()).and_then(|()| stdout.flush()) {
                Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                    talk(&format!("error: could not write the answer: {error}\n"));
                    Exit::Failed.into()
                }
                Ok(()) | Err(_) => answer.exit.into(),
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
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        cli::Arguments::command().debug_assert();
    }
}
