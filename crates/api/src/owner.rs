//! Whose image is it?
//!
//! An account, or one of EC2's names for accounts. A word that EC2 does not know must not pass: it
//! is a misspelling, and what it was to keep out would come in or nothing would.

use crate::problem::{Finding, nearest, quoted};

pub(crate) fn check(field: &str, owner: &str) -> Option<Finding> {
    const NAMES: [&str; 4] = ["self", "amazon", "aws-marketplace", "aws-backup-vault"];
    let account = owner.len() == 12 && owner.bytes().all(|it| it.is_ascii_digit());
    if account || NAMES.contains(&owner) {
        return None;
    }
    let hint = match nearest(owner, &NAMES) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "write 12 digits in quotes, `self`, `amazon` or `aws-marketplace`".to_owned(),
    };
    let message = format!("{} is not an owner", quoted(owner));
    Some(Finding::error(field, message).hint(hint))
}
