//! What does a schema ask for?
