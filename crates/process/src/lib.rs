//! Child processes: starting a command, reading its output within limits, and ending it with everything it started.
//!
//! Knows no session, no tool and no frame.
//!
//! - `shell_command`: a command and the call of the shell; `shell_prefix`: the user's command in front of it;
//!   `direct_exec`: exec without a shell; `captured_command`: one command from start to exit
//! - `piped_command`: a command with piped stdin; `child_process`: a long-lived child
//! - `pipe`: reading output; [`bounded_output`]: output in bounded memory; [`line_channel`]: output as lines;
//!   `plain_text`: output without escape sequences
//! - `cwd_tracker`: carries `cd` over to the next command
//! - `process_groups`: what runs now; `process_tags`: finds and ends processes that left their group; `procfs`;
//!   `reaper`: cleanup if the engine is killed

pub mod bounded_output;
mod captured_command;
mod child_process;
mod cwd_tracker;
mod direct_exec;
pub mod line_channel;
mod pipe;
mod piped_command;
mod plain_text;
mod process_groups;
mod process_tags;
mod procfs;
mod reaper;
mod shell_command;
mod shell_prefix;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use bounded_output::{CapturedOutput, OutputCapture};
pub use captured_command::{CapturedCommand, Leftover, ProcessExit, SpawnError};
pub use child_process::{ChildProcess, ChildProcessSpec, KillHandle};
pub use cwd_tracker::CwdTracker;
pub use piped_command::{CommandEvent, CommandOutput, PipedCommand};
pub use process_groups::{KILL_GRACE, ProcessGroups};
pub use process_tags::track_daemons;
pub use shell_command::CommandSpec;
pub use shell_prefix::{SHELL_PREFIX_VARIABLE, add_shell_prefix, quote_word};
