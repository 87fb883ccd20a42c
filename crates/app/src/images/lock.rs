//! to come
use crate::cli::ImagesLock;
use crate::output::{Answer, Failure, Look};
pub(super) fn run(_verb: &ImagesLock, _look: Look) -> Result<Answer, Failure> {
    Err(Failure::new("not yet"))
}
