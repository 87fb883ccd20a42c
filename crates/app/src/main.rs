//! nodemolt
fn main() {}
