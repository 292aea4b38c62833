//! The program as others see it: started, fed, listened to, ended.
//!
//! `rig` starts it; `people` is about what a person types and reads, `hosts` about frames on stdin and stdout, `endings` about
//! signals and closed pipes.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "this is all tests")]

mod endings;
mod hosts;
mod people;
mod rig;
