//! `#[tools]` on an `impl` block: the block, and methods that return a server of its tools.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, LitStr, Meta, Path, Result};

use crate::tool_function::ToolFunction;
use crate::tool_options::{ToolOptions, parse_crate, parse_name, render_crate};

/// Options of the server.
#[derive(Default)]
struct ServerOptions {
    /// The crate whose items the generated code names, if not `::whimbrel`.
    crate_path: Option<Path>,
    name: Option<String>,
    version: Option<LitStr>,
    instructions: Option<LitStr>,
}

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let options = ServerOptions::parse(options)?;
    let mut item: ItemImpl = syn::parse2(item)?;
    if let Some((path, _)) = &item.trait_ {
        return Err(Error::new_spanned(path, "`#[tools]` stands on an `impl` block without a trait"));
    }
    let functions = take_tools(&mut item, options.crate_path.as_ref())?;
    let whimbrel = render_crate(options.crate_path.as_ref());
    let server = options.render(&functions);
    let ItemImpl { generics, self_ty, .. } = &item;
    let (parameters, _, conditions) = generics.split_for_impl();
    Ok(quote! {
        #item

        impl #parameters #self_ty #conditions {
            #[allow(dead_code, unreachable_pub, reason = "the program may use one of the two, within its crate")]
            /// Makes a server of the tools of this type. They share the value.
            pub fn into_server(self) -> #whimbrel::ToolServer {
                ::std::sync::Arc::new(self).server()
            }

            #[allow(dead_code, unreachable_pub, reason = "the program may use one of the two, within its crate")]
            /// Makes a server of the tools of this type, and keeps the value.
            pub fn server(self: &::std::sync::Arc<Self>) -> #whimbrel::ToolServer {
                #server
            }
        }
    })
}

impl ServerOptions {
    fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        let parser = syn::meta::parser(|meta| {
            if meta.path.is_ident("name") {
                options.name = Some(parse_name(&meta)?);
            } else if meta.path.is_ident("version") {
                options.version = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("instructions") {
                options.instructions = Some(meta.value()?.parse()?);
            } else if meta.path.is_ident("crate") {
                options.crate_path = Some(parse_crate(&meta)?);
            } else {
                return Err(meta.error("unknown option; known: `name`, `version`, `instructions`, `crate`"));
            }
            Ok(())
        });
        parser.parse2(tokens)?;
        Ok(options)
    }

    /// An expression of the type `whimbrel::ToolServer`.
    fn render(&self, functions: &[ToolFunction]) -> TokenStream {
        let Some(name) = &self.name else {
            return quote!(::core::compile_error!("name the server: `#[tools(name = \"..\")]`"));
        };
        let version = self.version.iter().map(|text| quote!(.version(#text)));
        let instructions = self.instructions.iter().map(|text| quote!(.instructions(#text)));
        let shared = quote!(::std::sync::Arc::clone(self));
        let tools = functions.iter().map(|function| function.render_method(&shared));
        let whimbrel = render_crate(self.crate_path.as_ref());
        quote!(#whimbrel::ToolServer::new(#name) #(#version)* #(#instructions)* #(.tool(#tools))*)
    }
}

/// Reads the methods with `#[tool]`, and removes that attribute.
fn take_tools(item: &mut ItemImpl, crate_path: Option<&Path>) -> Result<Vec<ToolFunction>> {
    let mut functions: Vec<ToolFunction> = Vec::new();
    for member in &mut item.items {
        let ImplItem::Fn(method) = member else { continue };
        let Some(mut options) = take_options(method)? else { continue };
        options.crate_path = options.crate_path.or_else(|| crate_path.cloned());
        let function = ToolFunction::new(options, &method.attrs, &mut method.sig)?;
        if functions.iter().any(|other| other.name() == function.name()) {
            let message = format!("two tools have the name `{}`", function.name());
            return Err(Error::new(method.sig.ident.span(), message));
        }
        functions.push(function);
    }
    if functions.is_empty() {
        return Err(Error::new_spanned(&item.self_ty, "no method has `#[tool]`"));
    }
    Ok(functions)
}

/// Takes the attribute `#[tool]` from a method.
fn take_options(method: &mut ImplItemFn) -> Result<Option<ToolOptions>> {
    let is_tool = |path: &Path| path.segments.last().is_some_and(|segment| segment.ident == "tool");
    let Some(position) = method.attrs.iter().position(|attribute| is_tool(attribute.path())) else {
        return Ok(None);
    };
    let attribute = method.attrs.remove(position);
    match attribute.meta {
        Meta::Path(_) => Ok(Some(ToolOptions::default())),
        Meta::List(list) => ToolOptions::parse(list.tokens).map(Some),
        Meta::NameValue(meta) => Err(Error::new_spanned(meta, "write `#[tool]` or `#[tool(..)]`")),
    }
}

#[cfg(test)]
mod tests;
