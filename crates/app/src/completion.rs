//! What does the shell propose after Tab?

use clap::CommandFactory;

use crate::cli;
use crate::output::{Answer, Exit};

pub(crate) fn run(verb: &cli::Completion) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(verb.shell, &mut cli::Arguments::command(), "nodemolt", &mut script);
    let data = String::from_utf8_lossy(&script).into_owned();
    Answer { data, talk: String::new(), exit: Exit::Done }
}
