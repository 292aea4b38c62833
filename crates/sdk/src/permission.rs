//! Permission requests as the callback of the host gets them.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tokio::sync::watch;
use whimbrel_wire::control::{CanUseTool, CancelReason, CheckToolInput, InvalidField};

use crate::client::EngineClient;
use crate::error::Error;
use crate::extensions::Extensions;

/// A tool call that needs permission: the [`CanUseTool`] request of the engine, and what a host needs to answer it.
///
/// A front end that shows the request elsewhere takes a [`Withdrawal`] along, so that it can close the question when it
/// no longer matters:
///
/// ```
/// use whimbrel::wire::permission::PermissionResult;
/// use whimbrel::{Agent, PermissionRequest};
///
/// # async fn ask_user(_: &PermissionRequest) -> bool { true }
/// # fn close_question(_: String) {}
/// let agent = Agent::new().can_use_tool(|request| async move {
///     let withdrawal = request.withdrawal();
///     tokio::spawn(async move {
///         if let Some(reason) = withdrawal.wait().await {
///             close_question(format!("{reason}"));
///         }
///     });
///     if ask_user(&request).await { PermissionResult::allow() } else { PermissionResult::deny("No.") }
/// });
/// ```
#[derive(Clone)]
pub struct PermissionRequest {
    request: CanUseTool,
    withdrawal: Withdrawal,
    extensions: Extensions,
    client: Weak<EngineClient>,
}

impl PermissionRequest {
    pub(crate) fn new(
        request: CanUseTool,
        withdrawal: Withdrawal,
        extensions: Extensions,
        client: &Arc<EngineClient>,
    ) -> Self {
        Self { request, withdrawal, extensions, client: Arc::downgrade(client) }
    }

    /// The request of the engine.
    pub fn into_inner(self) -> CanUseTool {
        self.request
    }

    /// Tells later, in any task, whether and why the engine has withdrawn the request.
    pub fn withdrawal(&self) -> Withdrawal {
        self.withdrawal.clone()
    }

    /// The value of this type that [`Agent::extension`](crate::Agent::extension) has set.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }

    /// The input of the call as a value of a type; fails if it does not match.
    ///
    /// ```
    /// # use whimbrel::{Agent, PermissionResult};
    /// #[derive(serde::Deserialize)]
    /// struct Bash {
    ///     command: String,
    /// }
    ///
    /// let agent = Agent::new().can_use_tool(|request| async move {
    ///     match request.input_as::<Bash>() {
    ///         Ok(bash) if bash.command.starts_with("cargo ") => PermissionResult::allow(),
    ///         _ => PermissionResult::deny("Only cargo, please."),
    ///     }
    /// });
    /// ```
    pub fn input_as<T: DeserializeOwned>(&self) -> serde_json::Result<T> {
        T::deserialize(&Value::Object(self.request.input.clone()))
    }

    /// Checks an input that the user has edited, before it is allowed: the engine compares it with the schema of the
    /// tool. Nothing is run.
    ///
    /// Not supported by engine processes of other vendors, which reject it with [`Error::Rejected`].
    pub async fn check_input(&self, input: &Map<String, Value>) -> Result<(), CheckInputError> {
        let client = self.client.upgrade().ok_or(Error::SessionEnded)?;
        let request = CheckToolInput { tool_name: self.request.tool_name.clone(), input: input.clone() };
        let fields = client.call(request).await?.errors;
        if fields.is_empty() { Ok(()) } else { Err(CheckInputError::Invalid(fields)) }
    }
}

impl Deref for PermissionRequest {
    type Target = CanUseTool;

    fn deref(&self) -> &CanUseTool {
        &self.request
    }
}

impl fmt::Debug for PermissionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// Why an input was not accepted by [`PermissionRequest::check_input`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckInputError {
    /// The input does not match the tool's schema.
    #[error("{}", render_fields(.0))]
    Invalid(Vec<InvalidField>),
    /// The input could not be checked.
    #[error("the input could not be checked: {0}")]
    Unchecked(#[from] Error),
}

impl CheckInputError {
    /// The invalid fields.
    pub fn fields(&self) -> &[InvalidField] {
        match self {
            Self::Invalid(fields) => fields,
            Self::Unchecked(_) => &[],
        }
    }
}

fn render_fields(fields: &[InvalidField]) -> String {
    let texts = fields.iter().map(|field| match field.field.as_str() {
        "" => field.message.clone(),
        name => format!("`{name}`: {}", field.message),
    });
    texts.collect::<Vec<_>>().join("; ")
}

/// Tells whether and why a permission request was withdrawn. Cheap to clone, and independent of the callback, whose
/// future is dropped at the same moment.
#[derive(Debug, Clone)]
pub struct Withdrawal(watch::Receiver<RequestState>);

/// Whether a request still waits for its answer.
#[derive(Debug, Clone, PartialEq)]
enum RequestState {
    Open,
    Answered,
    Withdrawn(CancelReason),
}

/// The side that ends a request.
#[derive(Debug)]
pub(crate) struct WithdrawalSender(watch::Sender<RequestState>);

impl WithdrawalSender {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(RequestState::Open))
    }

    pub(crate) fn subscribe(&self) -> Withdrawal {
        Withdrawal(self.0.subscribe())
    }

    /// Records that the request was withdrawn, unless it has ended before.
    pub(crate) fn withdraw(&self, reason: CancelReason) {
        self.end(RequestState::Withdrawn(reason));
    }

    /// Records that the request was answered, unless it has ended before.
    pub(crate) fn answer(&self) {
        self.end(RequestState::Answered);
    }

    fn end(&self, state: RequestState) {
        self.0.send_if_modified(|current| {
            let is_open = *current == RequestState::Open;
            if is_open {
                *current = state;
            }
            is_open
        });
    }
}

impl Withdrawal {
    /// Waits until the request is no longer open. `None` if it was answered.
    pub async fn wait(&self) -> Option<CancelReason> {
        let mut receiver = self.0.clone();
        // The sender is dropped only after a request has ended.
        let _ = receiver.wait_for(|state| *state != RequestState::Open).await;
        self.reason()
    }

    /// The reason, if the request was withdrawn.
    pub fn reason(&self) -> Option<CancelReason> {
        match &*self.0.borrow() {
            RequestState::Withdrawn(reason) => Some(reason.clone()),
            RequestState::Open | RequestState::Answered => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn first_reason_counts_and_an_answer_has_none() {
        let sender = WithdrawalSender::new();
        let withdrawal = sender.subscribe();
        assert_eq!(withdrawal.reason(), None);
        sender.withdraw(CancelReason::TimedOut);
        sender.withdraw(CancelReason::SessionEnded);
        drop(sender);
        assert_eq!(
            (withdrawal.wait().await, withdrawal.reason()),
            (Some(CancelReason::TimedOut), withdrawal.reason())
        );
        let answered = WithdrawalSender::new();
        let withdrawal = answered.subscribe();
        answered.answer();
        answered.withdraw(CancelReason::Interrupted);
        assert_eq!(withdrawal.wait().await, None);
    }

    #[test]
    fn invalid_fields_are_named() {
        let field =
            |field: &str, message: &str| InvalidField { field: field.into(), message: message.into() };
        let error =
            CheckInputError::Invalid(vec![field("edits[0].path", "is missing"), field("", "too long")]);
        assert_eq!(error.to_string(), "`edits[0].path`: is missing; too long");
    }
}
