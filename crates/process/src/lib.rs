//! Child processes: starting a command, reading its output within limits, and ending it with everything it started.
//!
//! Knows no session, no tool and no frame.
//!
//! - `shell_command`: a command and the call of the shell; `shell_prefix`: the user's command in front of it;
//!   `direct_exec`: exec without a shell; `captured_command`: one command from start to exit
//! - `confined`: commands in the sandbox
//! - `piped_command`: a command with piped stdin; `child_process`: a long-lived child
//! - `pipe`: reading output; [`bounded_output`]: output in bounded memory; [`line_channel`]: output as lines;
//!   `plain_text`: output without escape sequences
//! - `cwd_tracker`: carries `cd` over to the next command
//! - `process_exit`: how a command ended; `process_groups`: what runs now; `process_tags`: finds and ends processes that left their group; `procfs`;
//!   `reaper`: cleanup if the engine is killed

pub mod bounded_output;
mod captured_command;
mod child_process;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(not(target_os = "linux"))]
#[path = "confined_unavailable.rs"]
mod confined;
mod cwd_tracker;
mod direct_exec;
pub mod line_channel;
mod pipe;
mod piped_command;
mod plain_text;
mod process_exit;
mod process_groups;
mod process_tags;
mod procfs;
mod reaper;
mod shell_command;
mod shell_prefix;
#[cfg(any(test, feature = "test-support"))]
pub mod test_support;

pub use bounded_output::{CapturedOutput, OutputCapture, OutputObserver};
pub use captured_command::{CapturedCommand, Launch, Leftover, SpawnError};
pub use child_process::{ChildProcess, ChildProcessSpec, KillHandle};
pub use confined::ConfinedCommand;
#[cfg(target_os = "linux")]
pub use confined::{ConfinedStdin, SandboxRequest};
pub use cwd_tracker::CwdTracker;
pub use piped_command::{CommandEvent, CommandOutput, PipedCommand};
pub use plain_text::PlainTextDecoder;
pub use process_exit::ProcessExit;
pub use process_groups::{KILL_GRACE, ProcessGroups};
pub use process_tags::track_daemons;
pub use shell_command::CommandSpec;
pub use shell_prefix::{SHELL_PREFIX_VARIABLE, add_shell_prefix, quote_word};
