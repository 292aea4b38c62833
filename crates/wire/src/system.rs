//! The `system` notices, one struct per subtype.

use serde::{Deserialize, Serialize};

use crate::codec::WireError;
use crate::raw::RawJson;

/// A notice about the session: what it is made of, what state it is in, what happened beside the conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct System {
    /// What happened.
    pub event: SystemEvent,
    /// This message's own id.
    pub uuid: String,
    /// The session.
    pub session_id: String,
}
