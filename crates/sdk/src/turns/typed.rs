//! Answers as values of a type.

use std::any::type_name;
use std::marker::PhantomData;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::agent::Agent;
use crate::answer::Answer;
use crate::error::TurnError;
use crate::prompt::Prompt;
use crate::tools::InputFormat;
use crate::turns::query::query;
use crate::turns::turn::Turn;

/// Runs an agent whose answer is a value of a type: a struct, an enum, a list, a text. The model sends it as an object; what
/// is not one becomes the field `value` of one.
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
    let format = InputFormat::of_answer::<T>();
    let answer = query(prompt, agent).output_schema(format.schema_value()).await?;
    parse_output(answer, &format).map(|typed| typed.value)
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
    format: InputFormat,
    value: PhantomData<fn() -> T>,
}

impl<'a> Turn<'a> {
    /// Requires an answer that is a value of a type, for this turn only; see [`query_as`].
    pub fn typed<T: DeserializeOwned + JsonSchema>(self) -> TypedTurn<'a, T> {
        let format = InputFormat::of_answer::<T>();
        TypedTurn { turn: self.output_schema(format.schema_value()), format, value: PhantomData }
    }
}

impl<'a, T: DeserializeOwned + 'a> IntoFuture for TypedTurn<'a, T> {
    type Output = Result<Typed<T>, TurnError>;
    type IntoFuture = BoxFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        async move { parse_output(self.turn.await?, &self.format) }.boxed()
    }
}

impl<T> std::fmt::Debug for TypedTurn<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TypedTurn").field("turn", &self.turn).field("type", &type_name::<T>()).finish()
    }
}

/// The engine has validated the output against the schema; the type may demand more.
fn parse_output<T: DeserializeOwned>(answer: Answer, format: &InputFormat) -> Result<Typed<T>, TurnError> {
    let parsed = match answer.structured_output() {
        None => Err(None),
        Some(output) => format.parse(output.clone()).map_err(Some),
    };
    match parsed {
        Ok(value) => Ok(Typed { value, answer }),
        Err(reason) => Err(TurnError::OutputFormat { reason, result: Box::new(answer.into_result()) }),
    }
}
