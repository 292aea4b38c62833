//! The interface of tools: the trait, the context of a call, its result, declared effects and examples; and the tools
//! of an agent: [`tool_set`] (all of them), [`deferred_tools`] (those whose schemas are loaded on demand).
//!
//! The built-in tools are in [`crate::builtin`].

mod checkpoint;
mod context;
pub mod deferred_tools;
mod effects;
mod example;
mod input;
pub mod lenient;
mod tool;
pub mod tool_set;

pub use context::{AgentServices, ToolContext, ToolError, ToolOutput, ToolResult};
pub use deferred_tools::DeferredTools;
pub use effects::Effects;
pub use example::Example;
pub use tool::{AnyTool, Availability, Tool, ToolLoading};
pub use tool_set::{AgentToolSet, DynamicTools, ToolEntry};
