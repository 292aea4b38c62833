//! The filter of system calls, as a program of classic BPF. Everything is allowed but what would lead past the other
//! layers: sockets of the machine, namespaces, mounts, keys, kernel interfaces, setuid files.
//!
//! - [`bpf`]: instructions; [`arch`]: numbers of this machine; [`rules`]: which calls are refused
//!
//! The tests run the programs in an interpreter.

mod arch;
mod bpf;
#[cfg(test)]
mod interpreter;
mod rules;

pub(crate) use bpf::Instruction;
pub(crate) use rules::{FilterOptions, LocalSockets, Tracing, build_filter};
