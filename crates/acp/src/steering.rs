//! The request that adds a prompt to the running turn, which the protocol does not have.

use agent_client_protocol::v1::schema::{ContentBlock, SessionId};
use agent_client_protocol::{JsonRpcRequest, JsonRpcResponse};
use serde::{Deserialize, Serialize};

/// The method is named in [`STEERING_METHOD`](crate::capabilities::STEERING_METHOD).
#[derive(Debug, Clone, Serialize, Deserialize, JsonRpcRequest)]
#[request(method = "_session/steering", response = SteeringResponse)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SteeringRequest {
    pub(crate) session_id: SessionId,
    pub(crate) prompt: Vec<ContentBlock>,
}

/// The prompt comes before the next model call of the turn.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonRpcResponse)]
pub(crate) struct SteeringResponse {}
