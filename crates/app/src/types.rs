//! to come
use crate::{
    cli,
    output::{Answer, Failure, Look},
};
pub(crate) fn run(_verb: &cli::Types, _look: Look) -> Result<Answer, Failure> {
    Err(Failure::new("not yet"))
}
