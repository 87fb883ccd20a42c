//! nodemolt-api
