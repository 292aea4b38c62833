//! The interface of tools: the trait, the context of a call, its result, declared effects and examples.
//!
//! The built-in tools are in [`crate::tools`].

mod checkpoint;
mod context;
mod effects;
pub(crate) mod example;
pub(crate) mod lenient;
mod schema;
mod tool;

pub use context::{ToolContext, ToolError, ToolOutput, ToolResult};
pub use effects::Effects;
pub use example::Example;
pub use tool::{AnyTool, Availability, Tool};
