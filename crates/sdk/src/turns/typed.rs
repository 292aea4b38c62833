//! Answers as values of a type.

use std::any::type_name;
use std::marker::PhantomData;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::Agent;
use crate::answer::Answer;
use crate::error::TurnError;
use crate::prompt::Prompt;
use crate::turns::query::query;
use crate::turns::turn::Turn;

/// Runs an agent whose answer is a value of a type. The type must describe a JSON object.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use serde_json::json;
/// use whimbrel::{Agent, Scripted, query_as, schemars};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Invoice {
///     /// Total with tax, in cents.
///     total: u64,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let call = json!([{"type": "tool_use", "name": "StructuredOutput", "input": {"total": 4200}}]);
/// # let agent = Agent::new().script(Scripted::replies(json!([call]))?);
/// let invoice: Invoice = query_as("Read invoice.pdf.", &agent).await?;
/// assert_eq!(invoice.total, 4200);
/// # Ok(())
/// # }
/// ```
pub async fn query_as<T: DeserializeOwned + JsonSchema>(
    prompt: impl Into<Prompt>,
    agent: &Agent,
) -> Result<T, TurnError> {
    let answer = query(prompt, agent).output_schema(schema_of::<T>()).await?;
    parse_output(answer).map(|typed| typed.value)
}

/// A typed answer with the turn that gave it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The answer: cost, denials, session.
    pub answer: Answer,
}

/// Future of the typed answer of a [`Turn`]; see [`Turn::typed`].
#[must_use = "nothing is asked until it is awaited"]
pub struct TypedTurn<'a, T> {
    turn: Turn<'a>,
    value: PhantomData<fn() -> T>,
}

impl<'a> Turn<'a> {
    /// Requires an answer that is a value of a type, for this turn only. The type must describe a JSON object.
    pub fn typed<T: DeserializeOwned + JsonSchema>(self) -> TypedTurn<'a, T> {
        TypedTurn { turn: self.output_schema(schema_of::<T>()), value: PhantomData }
    }
}

impl<'a, T: DeserializeOwned + 'a> IntoFuture for TypedTurn<'a, T> {
    type Output = Result<Typed<T>, TurnError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move { parse_output(self.turn.await?) }.boxed()
    }
}

impl<T> std::fmt::Debug for TypedTurn<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTurn").field("turn", &self.turn).field("type", &type_name::<T>()).finish()
    }
}

fn schema_of<T: JsonSchema>() -> Value {
    schemars::schema_for!(T).to_value()
}

/// The engine has validated the output against the schema; the type may demand more.
fn parse_output<T: DeserializeOwned>(answer: Answer) -> Result<Typed<T>, TurnError> {
    let parsed = match answer.structured_output() {
        None => Err(None),
        Some(output) => T::deserialize(output).map_err(|error| Some(error.to_string())),
    };
    match parsed {
        Ok(value) => Ok(Typed { value, answer }),
        Err(reason) => Err(TurnError::OutputFormat { reason, result: Box::new(answer.into_result()) }),
    }
}
