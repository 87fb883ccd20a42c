//! What did AWS say?
//!
//! `the printed answer of an AWS command → our types`
//!
//! Each module reads one command's JSON, as people save it to a file. Members that we do not know
//! are ignored, because AWS adds some every month; members that we know and cannot read are errors.

pub mod instance_types;
