//! Confines a command by means of the kernel: a policy value in, a confined child process out.
//!
//! A confined command can change files only below the writable roots of its [`Policy`], cannot read what the policy
//! hides, reaches hosts only through the [`proxy`], sees no process, socket, key or device of the host, and is gone,
//! with everything it started, when it ends or when the process that started it ends.
//!
//! Two rules hold everywhere. A layer that was promised and cannot be set up means that the command does not run. And no
//! check of the text of a path or a command replaces a boundary of the kernel.
//!
//! Knows no agent, no session of an agent, no settings file.
//!
//! - [`policy`]: what a command may do
//! - [`resolve`]: the policy on this file system, as a plan of mounts; [`plan`]: that plan
//! - [`covers`]: empty folders in place of missing protected names, with a journal; [`appeared`]: names that a command
//!   left behind and that change what git does
//! - [`tier`]: the ways to confine a command; [`ladder`]: which of them this machine supports, with the remedy for what is
//!   missing
//! - [`session`]: starts confined commands; [`child`]: one confined command; [`program`]: finds the launcher
//! - [`launcher`]: the other side: the process that confines itself and then becomes the command; `request`: what it is told; `control`: the socket between
//!   the two; [`connect`]: a tunnel through the proxy for ssh
//! - `seccomp`: the filter of system calls; `sys`: system calls without a safe wrapper
//! - [`proxy`]: the only way to the network
//! - [`violations`]: what was refused, as lines for people and models
//! - [`macos`]: the policy as a profile of `sandbox-exec`

#[cfg(target_os = "linux")]
pub mod appeared;
#[cfg(target_os = "linux")]
pub mod child;
#[cfg(unix)]
pub mod connect;
#[cfg(target_os = "linux")]
mod control;
#[cfg(target_os = "linux")]
pub mod covers;
#[cfg(target_os = "linux")]
pub mod ladder;
#[cfg(target_os = "linux")]
pub mod launcher;
pub mod macos;
pub mod plan;
pub mod policy;
#[cfg(target_os = "linux")]
pub mod program;
pub mod proxy;
#[cfg(target_os = "linux")]
mod request;
#[cfg(target_os = "linux")]
pub mod resolve;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
pub mod session;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
pub mod tier;
pub mod violations;

pub use policy::Policy;
