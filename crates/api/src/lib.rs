//! nodemolt-api

pub mod answers;
