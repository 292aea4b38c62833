//! What both ends of the connection between a host and an engine need, whatever carries the frames. No agent logic.
//!
//! - [`link`]: the two ends of a connection, each a pair of channels
//! - [`line_reader`]: bytes to lines, in linear time and with bounded memory
//! - [`pending`]: requests that wait for a response from the other end
//! - of the engine's end (feature `engine`): `frame_sender`, `host_requests` (control requests to the host), `frame_log`
//!   (frames as lines of the debug log)

#[cfg(feature = "engine")]
pub mod frame_log;
#[cfg(feature = "engine")]
pub mod frame_sender;
#[cfg(feature = "engine")]
pub mod host_requests;
pub mod line_reader;
pub mod link;
pub mod pending;
