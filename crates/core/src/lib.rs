//! nodemolt-core
