//! `#[tool]` on a function: the function, and beside it one that returns the tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{ItemFn, Result};

use crate::tool_function::ToolFunction;
use crate::tool_options::ToolOptions;

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = ToolOptions::parse(options)?;
    let mut item: ItemFn = syn::parse2(item)?;
    if let Some(receiver) = item.sig.receiver() {
        let message = "methods are tools with `#[tools(name = \"..\")]` on their `impl` block";
        return Err(syn::Error::new_spanned(receiver, message));
    }
    let function = ToolFunction::new(options, &item.attrs, &mut item.sig)?;
    let (whimbrel, tool) = (function.render_crate(), function.render_free());
    let (visibility, constructor) = (&item.vis, format_ident!("{}_tool", function.function()));
    let doc = format!("Makes the tool that calls [`{}`].", function.function());
    Ok(quote! {
        #item

        #[doc = #doc]
        #visibility fn #constructor() -> #whimbrel::Tool #tool
    })
}

#[cfg(test)]
mod tests;
