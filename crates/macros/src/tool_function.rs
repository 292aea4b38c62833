//! A function or method that becomes a tool: its signature, the input type made from its arguments, and the expression
//! that makes the tool.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, Ident, Lit, Meta, Pat, PatType, ReceiverKind, Result, Signature,
    Type,
};

use crate::tool_options::{ToolOptions, is_accepted_name};

/// What is known of the function. The attributes of its arguments are taken out of the signature, because the compiler
/// accepts none there.
pub(crate) struct ToolFunction {
    function: Ident,
    name: String,
    description: String,
    options: ToolOptions,
    takes_self: bool,
    is_async: bool,
    arguments: Vec<Argument>,
}

enum Argument {
    /// A field of the input, with the attributes of the argument.
    Field { attributes: Vec<Attribute>, name: Ident, kind: Box<Type> },
    /// The context of the call, and whether the function borrows it.
    Context { is_borrowed: bool },
}

impl ToolFunction {
    /// Reads a function and removes what only the tool needs from its signature. The error names what cannot be part of
    /// a tool.
    pub(crate) fn new(
        options: ToolOptions,
        attributes: &[Attribute],
        signature: &mut Signature,
    ) -> Result<Self> {
        let function = signature.ident.clone();
        check_signature(signature)?;
        let description = match &options.description {
            Some(description) => description.clone(),
            None => doc_text(attributes),
        };
        if description.is_empty() {
            let message = "a tool needs a doc comment, or `description = \"..\"`: the model reads it";
            return Err(Error::new(function.span(), message));
        }
        let name = options.name.clone().unwrap_or_else(|| function.unraw().to_string());
        if !is_accepted_name(&name) {
            let message = "models do not accept this name; give another with `#[tool(name = \"..\")]`";
            return Err(Error::new(function.span(), message));
        }
        let (mut takes_self, mut arguments) = (false, Vec::new());
        for input in &mut signature.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if !matches!(receiver.kind, ReceiverKind::Reference(_, _, None)) {
                        let message = "a tool takes `&self` or no `self`: calls share the value";
                        return Err(Error::new_spanned(receiver, message));
                    }
                    takes_self = true;
                }
                FnArg::Typed(argument) => arguments.push(Argument::new(argument)?),
            }
        }
        let contexts = arguments.iter().filter(|argument| matches!(argument, Argument::Context { .. }));
        if contexts.count() > 1 {
            return Err(Error::new(function.span(), "a tool has one `ToolContext`"));
        }
        let is_async = signature.asyncness.is_some();
        Ok(Self { function, name, description, options, takes_self, is_async, arguments })
    }

    /// Name of the tool, for errors about duplicates.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn function(&self) -> &Ident {
        &self.function
    }

    /// An expression of the type `whimbrel::Tool` for a free function.
    pub(crate) fn render_free(&self) -> TokenStream {
        let function = &self.function;
        self.render(&quote!(#function), None)
    }

    /// The same for a method of `Self`; `shared` is an expression of the type `Arc<Self>`.
    pub(crate) fn render_method(&self, shared: &TokenStream) -> TokenStream {
        let function = &self.function;
        self.render(&quote!(Self::#function), self.takes_self.then_some(shared))
    }

    /// The path of the crate whose items the generated code names.
    pub(crate) fn render_crate(&self) -> TokenStream {
        self.options.render_crate()
    }

    fn render(&self, path: &TokenStream, shared: Option<&TokenStream>) -> TokenStream {
        let Self { name, description, .. } = self;
        let whimbrel = self.render_crate();
        let switches = self.options.switch_calls();
        let (definition, input) = self.render_input();
        let this = shared.map(|_| quote!(&*this,));
        let arguments = self.arguments.iter().map(Argument::render);
        let wait = self.is_async.then(|| quote!(.await));
        let parameters = quote!(input: #input, context: #whimbrel::ToolContext);
        let body = quote!(async move {
            // A function may use neither.
            let _ = (&input, &context);
            #path(#this #(#arguments),*) #wait
        });
        let made = match shared {
            None => quote!(#whimbrel::tool(#name, #description, |#parameters| #body)),
            Some(shared) => quote!(#whimbrel::tool_with_state(
                #shared, #name, #description, |this: ::std::sync::Arc<Self>, #parameters| #body
            )),
        };
        quote!({
            #definition
            #made #switches
        })
    }

    /// Definition and name of the input type. Without fields there is none: the input is `()`.
    fn render_input(&self) -> (TokenStream, TokenStream) {
        let fields = self.arguments.iter().filter_map(|argument| match argument {
            Argument::Field { attributes, name, kind } => Some(quote!(#(#attributes)* #name: #kind)),
            Argument::Context { .. } => None,
        });
        let fields: Vec<TokenStream> = fields.collect();
        if fields.is_empty() {
            return (TokenStream::new(), quote!(()));
        }
        let whimbrel = self.render_crate();
        let (serde, schemars) = (quote!(#whimbrel::macro_support::serde), quote!(#whimbrel::schemars));
        // Their attributes take the path as a text.
        let as_text = |path: &TokenStream| path.to_string().replace(' ', "");
        let (serde_text, schemars_text) = (as_text(&serde), as_text(&schemars));
        let definition = quote! {
            #[derive(#serde::Deserialize, #schemars::JsonSchema)]
            #[serde(crate = #serde_text)]
            #[schemars(crate = #schemars_text)]
            struct Input { #(#fields),* }
        };
        (definition, quote!(Input))
    }
}

impl Argument {
    fn new(argument: &mut PatType) -> Result<Self> {
        let attributes = std::mem::take(&mut argument.attrs);
        if let Some(is_borrowed) = context_kind(&argument.ty) {
            return Ok(Self::Context { is_borrowed });
        }
        for attribute in &attributes {
            if !["doc", "serde", "schemars"].iter().any(|name| attribute.path().is_ident(name)) {
                let message = "only doc comments, `#[serde(..)]` and `#[schemars(..)]` apply to the field of an argument";
                return Err(Error::new_spanned(attribute, message));
            }
        }
        match &*argument.ty {
            Type::Reference(kind) => {
                let message = "an argument is parsed from the model's input, so its type is owned: `String` instead of `&str`";
                return Err(Error::new_spanned(kind, message));
            }
            Type::ImplTrait(kind) => {
                return Err(Error::new_spanned(kind, "name the type: the schema of the input depends on it"));
            }
            _ => {}
        }
        match &*argument.pat {
            Pat::Ident(pattern) if pattern.subpat.is_none() && pattern.by_ref.is_none() => {
                let name = pattern.ident.clone();
                if !is_accepted_name(&name.unraw().to_string()) {
                    return Err(Error::new(
                        name.span(),
                        "models accept only ASCII letters, digits and `_` here",
                    ));
                }
                Ok(Self::Field { attributes, name, kind: argument.ty.clone() })
            }
            pattern => Err(Error::new_spanned(pattern, "name the argument: the model reads its name")),
        }
    }

    /// The value that the call of the function gets.
    fn render(&self) -> TokenStream {
        match self {
            Self::Field { name, .. } => quote!(input.#name),
            Self::Context { is_borrowed: true } => quote!(&context),
            Self::Context { is_borrowed: false } => quote!(context.clone()),
        }
    }
}

/// Checks for `ToolContext` and `&ToolContext`; the value says whether it is borrowed.
fn context_kind(kind: &Type) -> Option<bool> {
    match kind {
        Type::Path(path) => (path.path.segments.last()?.ident == "ToolContext").then_some(false),
        Type::Reference(reference) if reference.mutability.is_none() => {
            context_kind(&reference.elem).map(|_| true)
        }
        _ => None,
    }
}

fn check_signature(signature: &Signature) -> Result<()> {
    if !signature.generics.params.is_empty() {
        let message = "a tool has no generic parameters: the schema of its input must be known";
        return Err(Error::new_spanned(&signature.generics, message));
    }
    match &signature.variadic {
        Some(variadic) => Err(Error::new_spanned(variadic, "a tool has a fixed number of arguments")),
        None => Ok(()),
    }
}

/// The text of doc comments, without the blank that stands before each line.
fn doc_text(attributes: &[Attribute]) -> String {
    let lines = attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(meta) if meta.path.is_ident("doc") => match &meta.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    });
    let lines: Vec<String> =
        lines.map(|line| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned()).collect();
    lines.join("\n").trim().to_owned()
}
