//! nodemolt-fit
