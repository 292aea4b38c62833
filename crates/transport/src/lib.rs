//! What both ends of the connection between a host and an engine need, whatever carries the frames. No agent logic.
//!
//! - [`link`]: the two ends of a connection, each a pair of channels
//! - [`line_reader`]: bytes to lines, in linear time and with bounded memory
//! - [`pending`]: requests that wait for a response from the other end

pub mod line_reader;
pub mod link;
pub mod pending;
