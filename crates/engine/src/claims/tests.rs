//! Does a claim get one machine, and only one?
