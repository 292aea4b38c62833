//! What the engine asks of the operating system besides processes and the network: files, links, time and random ids; and
//! the debug log.
//!
//! - [`files`]: reading and replacing files, with limits and without races
//! - [`links`]: resolves symbolic links
//! - [`clock`]: the only reader of the clock
//! - [`ids`]: the only source of random numbers
//! - [`log`]: debug log; [`backoff`]: delays between attempts

pub mod backoff;
pub mod clock;
pub mod files;
pub mod ids;
pub mod links;
pub mod log;
