//! What the engine asks of the operating system besides processes and the network: files, links, time and random ids; and
//! the debug log.
//!
//! - [`files`]: reading and replacing files, with limits and without races
//! - [`links`]: resolves symbolic links
//! - [`clock`]: wall clock and monotonic clock
//! - [`ids`]: random identifiers and secrets
//! - [`log`]: debug log; [`backoff`]: delays between attempts; [`byte_size`]: numbers of bytes as text

pub mod backoff;
pub mod byte_size;
pub mod clock;
pub mod files;
pub mod ids;
pub mod links;
pub mod log;
