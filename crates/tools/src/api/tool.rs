//! The tool traits: [`Tool`] with a typed input, and [`AnyTool`], its object-safe form for lists of tools.

use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_wire::control::InvalidField;
use whimbrel_wire::permission::McpServerProvenance;

use super::input::{find_invalid_fields, input_schema, parse_input};
use super::{Effects, Example, ToolContext, ToolError, ToolResult};
use crate::api::checkpoint;
use crate::workspace::Workspace;

/// A tool with a typed input.
pub trait Tool: Send + Sync + 'static {
    /// The input that the model fills in. The doc comments of its fields become schema descriptions.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// Name on the wire.
    const NAME: &'static str;

    /// Older names that the model or a permission rule may still use.
    const ALIASES: &'static [&'static str] = &[];

    /// Description that the model reads.
    const DESCRIPTION: &'static str;

    /// Which agents get the tool. Interactive tools go to the main agent only, and only if questions can be answered.
    const AVAILABILITY: Availability = Availability::AllAgents;

    /// When the tool's schema is sent to the model.
    const LOADING: ToolLoading = ToolLoading::Eager;

    /// Declares the effects of a call with this input. They decide what may run in parallel and whether permission is
    /// needed.
    fn effects(input: &Self::Input) -> Effects;

    /// Returns whether a call with this input adds allow rules.
    fn adds_allow_rules(&self, _input: &Self::Input) -> bool {
        false
    }

    /// Executes the call. Dropping the future must leave nothing running.
    fn run(&self, input: Self::Input, call: ToolContext) -> impl Future<Output = ToolResult> + Send;

    /// Example calls; they are run as tests.
    fn examples() -> Vec<Example>;
}

/// Rejects calls with side effects once an isolated agent's worktree is gone: they would change the user's own
/// checkout.
fn check_worktree_exists(effects: &Effects, workspace: &Workspace) -> Result<(), ToolError> {
    match workspace.missing_worktree() {
        Some(tree) if !effects.is_parallel_safe() => Err(ToolError::Rejected(format!(
            "Your worktree {} no longer exists, and you may not work elsewhere. Report this and what you have done.",
            tree.path.display()
        ))),
        _ => Ok(()),
    }
}

/// When a tool's schema is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolLoading {
    /// With every request.
    Eager,
    /// After the model has loaded it.
    Deferred,
    /// With every request if all tools of this kind fit the budget, otherwise after the model has loaded it.
    IfFits,
}

/// Which agents a tool is available to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// All agents: the tool works on files, processes or servers.
    AllAgents,
    /// The main agent, if the user or a hook can answer questions.
    Interactive,
    /// The main agent only: the tool changes the session itself (working directory, timers).
    MainAgent,
}

/// A tool with its input type erased, so that tools can be kept in one list.
pub trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    /// Older names.
    fn aliases(&self) -> &[&str];
    /// Name, description and schema as sent to the model.
    fn spec(&self) -> ToolSpec;
    fn availability(&self) -> Availability {
        Availability::AllAgents
    }
    /// When the schema is sent to the model; MCP tools are deferred if they do not fit the schema budget.
    fn loading(&self) -> ToolLoading {
        if self.server().is_some() { ToolLoading::IfFits } else { ToolLoading::Eager }
    }
    /// Declares the effects of a call; fails if the input is invalid.
    fn effects(&self, input: &Value) -> Result<Effects, ToolError>;
    /// The invalid fields of an input; `None` if the tool has a schema only.
    fn invalid_fields(&self, _input: &Value) -> Option<Vec<InvalidField>> {
        None
    }
    /// Parses the input and executes the call.
    fn run<'a>(
        &'a self,
        input: Value,
        call: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;
    fn examples(&self) -> Vec<Example>;
    /// The MCP server of the tool, in the form used in the tool's name.
    fn server(&self) -> Option<&str> {
        None
    }
    /// The same server, in the form that hosts and hooks receive.
    fn provenance(&self) -> Option<McpServerProvenance> {
        None
    }
    /// Returns whether a call with this input adds allow rules.
    fn adds_allow_rules(&self, _input: &Value) -> bool {
        false
    }
    /// Returns whether only the user can answer the call.
    fn needs_user(&self) -> bool {
        false
    }
}

impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        T::NAME
    }

    fn aliases(&self) -> &[&str] {
        T::ALIASES
    }

    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: T::NAME.into(),
            description: T::DESCRIPTION.into(),
            input_schema: input_schema::<T::Input>(),
        }
    }

    fn availability(&self) -> Availability {
        T::AVAILABILITY
    }

    fn loading(&self) -> ToolLoading {
        T::LOADING
    }

    fn effects(&self, input: &Value) -> Result<Effects, ToolError> {
        parse_input::<T>(input).map(|input| T::effects(&input))
    }

    fn invalid_fields(&self, input: &Value) -> Option<Vec<InvalidField>> {
        Some(find_invalid_fields::<T::Input>(input))
    }

    fn adds_allow_rules(&self, input: &Value) -> bool {
        parse_input::<T>(input).is_ok_and(|input| Tool::adds_allow_rules(self, &input))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        call: ToolContext,
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let input = parse_input::<T>(&input)?;
            let effects = T::effects(&input);
            check_worktree_exists(&effects, &call.workspace)?;
            checkpoint::save_checkpoint(effects, &call.workspace).await;
            Tool::run(self, input, call).await
        })
    }

    fn examples(&self) -> Vec<Example> {
        T::examples()
    }
}
