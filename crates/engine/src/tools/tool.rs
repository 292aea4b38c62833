//! What a tool is: one leaf with its input type, and the same with the type hidden, so that all can stand in one list.

use std::pin::Pin;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use whimbrel_models::ToolSpec;
use whimbrel_wire::permission::McpServerProvenance;

use super::schema::{input_schema, parse_input};
use super::{ToolContext, Example, ToolResult, Effects, ToolError, checkpoint};
use crate::deferred_tools::ToolLoading;
use crate::workspace::Workspace;

/// One tool.
pub trait Tool: Send + Sync + 'static {
    /// What the model fills in. The doc comments of its fields are what the model reads about them.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// The name on the wire.
    const NAME: &'static str;

    /// Older names under which the model or a rule may still call it.
    const ALIASES: &'static [&'static str] = &[];

    /// What the model reads about the tool.
    const DESCRIPTION: &'static str;

    /// With whom it deals. What deals with a person is offered to the main agent only, and only where one can be asked.
    const AVAILABILITY: Availability = Availability::AllAgents;

    /// How it comes to the model.
    const LOADING: ToolLoading = ToolLoading::Eager;

    /// What a call with this input touches: decides what may run beside it and whether a permission is needed.
    fn effects(input: &Self::Input) -> Effects;

    /// Whether a call with this input puts rules in force that allow something.
    fn adds_allow_rules(&self, _input: &Self::Input) -> bool {
        false
    }

    /// Does the work. Dropping the future must leave nothing running.
    fn run(&self, input: Self::Input, call: ToolContext) -> impl Future<Output = ToolResult> + Send;

    /// Calls that show what the tool does.
    fn examples() -> Vec<Example>;
}

/// An agent whose own work tree is gone changes nothing: it would be in the person's own tree.
fn check_worktree_exists(touches: &Effects, workspace: &Workspace) -> Result<(), ToolError> {
    match workspace.missing_worktree() {
        Some(tree) if !touches.is_parallel_safe() => Err(ToolError::Rejected(format!(
            "Your work tree {} is gone, and you are to work nowhere else. Report that, and what is done.",
            tree.path.display()
        ))),
        _ => Ok(()),
    }
}

/// With whom a tool deals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// With files, programs, servers.
    AllAgents,
    /// With the person behind the host.
    Interactive,
    /// With the session itself: where it works, what comes later. Offered to the main agent only.
    MainAgent,
}

/// A tool whose input type is hidden, so that tools of all kinds can stand in one list.
pub trait AnyTool: Send + Sync {
    /// The name on the wire.
    fn name(&self) -> &str;
    /// Older names.
    fn aliases(&self) -> &[&str];
    /// The tool as the model sees it.
    fn spec(&self) -> ToolSpec;
    /// With whom it deals.
    fn availability(&self) -> Availability {
        Availability::AllAgents
    }
    /// How it comes to the model.
    fn loading(&self) -> ToolLoading {
        if self.server().is_some() { ToolLoading::IfFits } else { ToolLoading::Eager }
    }
    /// What a call with this input touches; an error if the input does not fit.
    fn effects(&self, input: &Value) -> Result<Effects, ToolError>;
    /// Checks the input and does the work.
    fn run<'a>(&'a self, input: Value, call: ToolContext) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;
    /// Calls that show what the tool does.
    fn examples(&self) -> Vec<Example>;
    /// The MCP server that it belongs to, as it stands in the tool's name.
    fn server(&self) -> Option<&str> {
        None
    }
    /// The same server, as hosts and hooks are told of it.
    fn provenance(&self) -> Option<McpServerProvenance> {
        None
    }
    /// Whether a call with this input puts rules in force that allow something.
    fn adds_allow_rules(&self, _input: &Value) -> bool {
        false
    }
    /// Whether only a person can answer it.
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

    fn adds_allow_rules(&self, input: &Value) -> bool {
        parse_input::<T>(input).is_ok_and(|input| Tool::adds_allow_rules(self, &input))
    }

    fn run<'a>(&'a self, input: Value, call: ToolContext) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            let input = parse_input::<T>(&input)?;
            let touches = T::effects(&input);
            check_worktree_exists(&touches, &call.workspace)?;
            checkpoint::save_checkpoint(touches, &call.workspace).await;
            Tool::run(self, input, call).await
        })
    }

    fn examples(&self) -> Vec<Example> {
        T::examples()
    }
}
