//! The attributes [`macro@tool`] and [`macro@tools`]: tools for a model from functions and methods.
//!
//! Use them through the crate `whimbrel`, which exports them; the code that they generate names its items.
//!
//! Modules:
//! - `tool_options`: what is written in the parentheses of `#[tool(..)]`
//! - `tool_function`: the signature of a function, and the input type and the tool made from it
//! - `free_function`: `#[tool]` on a function; `tool_methods`: `#[tools]` on an `impl` block

mod free_function;
mod tool_function;
mod tool_methods;
mod tool_options;

use proc_macro::TokenStream;

/// Makes a tool from a function. The function stays as it is; beside it stands a function with the suffix `_tool` that
/// returns the `whimbrel::Tool`.
///
/// The model reads the doc comment of the function and those of its arguments. The arguments become the fields of the
/// input; an `Option` may be left out by the model. An argument of the type `ToolContext` or `&ToolContext` is not part
/// of the input: it gets the context of the call. Attributes `#[serde(..)]` and `#[schemars(..)]` of an argument apply to
/// its field.
///
/// Options in parentheses: `name = ".."` and `description = ".."` replace the name and the doc comment of the function;
/// `read_only`, `destructive`, `open_world` and `always_loaded` are the methods of `whimbrel::Tool`. `crate = path` names the
/// crate `whimbrel` if a program knows it by another path, for example because it exports it.
#[proc_macro_attribute]
pub fn tool(options: TokenStream, item: TokenStream) -> TokenStream {
    into_tokens(free_function::expand(options.into(), item.into()))
}

/// Makes a tool server from an `impl` block: each method with `#[tool]` is a tool. The methods stay as they are, and may
/// take `&self` or no `self`; their arguments and options are those of [`macro@tool`].
///
/// The type gets two methods: `into_server(self)` returns the `whimbrel::ToolServer`, and `server(self: &Arc<Self>)` does
/// so for a value that the program goes on using.
///
/// Options in parentheses: `name = ".."`, the name of the server, is required; `version = ".."` and
/// `instructions = ".."` are the methods of `whimbrel::ToolServer`; `crate = path` is that of [`macro@tool`].
#[proc_macro_attribute]
pub fn tools(options: TokenStream, item: TokenStream) -> TokenStream {
    into_tokens(tool_methods::expand(options.into(), item.into()))
}

fn into_tokens(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}
