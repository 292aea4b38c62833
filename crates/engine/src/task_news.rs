//! What is said when background work begins or ends: to the host as notices, to the model as a message.

use whimbrel_wire::system::{SystemEvent, TaskEnd, TaskNotification, TaskStarted, TaskUpdated};

use crate::tasks::{TaskEvent, TaskKind};

/// The notices for the host.
pub fn notices(event: &TaskEvent) -> Vec<SystemEvent> {
    todo!("{event:?}")
}

/// The message for the model, if it is to be told.
pub fn for_model(event: &TaskEvent) -> Option<String> {
    todo!("{event:?}")
}
