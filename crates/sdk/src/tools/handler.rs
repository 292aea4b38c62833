//! Functions that can be made a tool: with or without input, context and state.

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::context::ToolContext;
use super::output::ToolOutput;

/// An async function that can be made a tool. Implemented for closures and functions with these arguments, each of which
/// may be left out, but not reordered:
///
/// - the state, with [`tool_with_state`](crate::tool_with_state) only, where it is required
/// - the input: a type with `serde::Deserialize` and `schemars::JsonSchema`
/// - the [`ToolContext`]
///
/// `Args` is inferred from the arguments.
#[diagnostic::on_unimplemented(
    message = "this function cannot be made a tool",
    label = "expected an async function of an input, a `ToolContext`, or both in this order",
    note = "the input needs `serde::Deserialize` and `schemars::JsonSchema`, and its type must be written: `|sum: Sum| ..`",
    note = "the output needs `Into<ToolOutput>`, such as a text, `Json`, blocks, or a `Result` of them"
)]
pub trait ToolHandler<Args, State = NoState>: Send + Sync + 'static {
    /// The input.
    type Input: DeserializeOwned + JsonSchema;

    /// Calls the function.
    fn call(&self, state: State, input: Self::Input, context: ToolContext) -> BoxFuture<'static, ToolOutput>;
}

/// State of a function without a state.
#[derive(Debug, Clone, Copy)]
pub struct NoState;

/// Arguments of a function with an input.
#[derive(Debug)]
pub struct WithInput<Args>(std::marker::PhantomData<Args>);

/// Arguments of a function with a state.
#[derive(Debug)]
pub struct WithState<Args>(std::marker::PhantomData<Args>);

/// Implements the trait for functions with some of the arguments: marker, state, input, arguments of the function.
macro_rules! handlers {
    ($($marker:ty, $state:ty, $input:ty, [$($generic:ident)*], ($($kind:ty),*),
        |$given_state:pat_param, $given_input:pat_param, $given_context:pat_param| ($($argument:expr),*);)*) => {
        $(impl<F, A, O, $($generic),*> ToolHandler<$marker, $state> for F
        where
            F: Fn($($kind),*) -> A + Send + Sync + 'static,
            A: Future<Output = O> + Send + 'static,
            O: Into<ToolOutput>,
            $input: DeserializeOwned + JsonSchema,
        {
            type Input = $input;

            fn call(
                &self,
                $given_state: $state,
                $given_input: $input,
                $given_context: ToolContext,
            ) -> BoxFuture<'static, ToolOutput> {
                let output = self($($argument),*);
                Box::pin(async move { output.await.into() })
            }
        })*
    };
}

handlers! {
    (), NoState, (), [], (), |_, _, _| ();
    ToolContext, NoState, (), [], (ToolContext), |_, _, context| (context);
    WithInput<(I,)>, NoState, I, [I], (I), |_, input, _| (input);
    WithInput<(I, ToolContext)>, NoState, I, [I], (I, ToolContext), |_, input, context| (input, context);
    WithState<()>, S, (), [S], (S), |state, _, _| (state);
    WithState<ToolContext>, S, (), [S], (S, ToolContext), |state, _, context| (state, context);
    WithState<(I,)>, S, I, [S I], (S, I), |state, input, _| (state, input);
    WithState<(I, ToolContext)>, S, I, [S I], (S, I, ToolContext), |state, input, context| (state, input, context);
}
