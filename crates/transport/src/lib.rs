//! How a host and an engine are connected, whatever carries the frames.
//!
//! - [`link`]: the two ends of a connection, each a pair of channels

pub mod link;
