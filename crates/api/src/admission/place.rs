//! Where in the object are we?
//!
//! Held on the stack of whoever walks, and written out only when there is something to say.

use std::fmt;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'p> {
    Root,
    /// A member that the schema names: `spec.role`.
    Member(&'p Place<'p>, &'p str),
    /// A key of a map, as rules and list checks write it: `spec.tags[name]`.
    Key(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Self::Item(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

impl Place<'_> {
    /// As a cause names it: the root is no field.
    pub(crate) fn field(&self) -> String {
        match self {
            Self::Root => super::NO_FIELD.to_owned(),
            Self::Member(..) | Self::Key(..) | Self::Item(..) => self.to_string(),
        }
    }
}
