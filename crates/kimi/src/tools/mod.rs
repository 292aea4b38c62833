//! The engine's tools in the words of Kimi. Everything here takes values and returns values.
//!
//! - [`names`]: names of tools in both vocabularies
//! - [`specs`]: what the model is offered
//! - [`field_names`]: fields that differ in their names only
//! - [`to_engine`], [`to_kimi`]: a call of the model for the engine, and a call of the engine for model and host
//! - [`result`], [`display`]: results as the host gets them
//! - [`diff`]: changes of files as display blocks
//! - [`approval`]: what the host is asked before a call
//! - [`hooks`]: calls and results in the requests of hooks

mod approval;
mod diff;
mod display;
mod field_names;
mod hooks;
mod names;
mod result;
mod specs;
#[cfg(test)]
mod tests;
mod to_engine;
mod to_kimi;

pub(crate) use approval::approval;
pub(crate) use hooks::{hook_tool_input, tool_output_text};
pub(crate) use names::{engine_name, is_builtin, shown_name, split_mcp_name};
pub(crate) use result::{OutputPart, ToolOutput, ToolReturnValue, return_value};
pub(crate) use specs::{Offer, offer};
pub(crate) use to_engine::to_engine;
pub(crate) use to_kimi::to_kimi;
