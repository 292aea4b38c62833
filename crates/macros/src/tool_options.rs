//! Options of a tool: what is written in the parentheses of `#[tool(..)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::meta::ParseNestedMeta;
use syn::parse::Parser;
use syn::{LitStr, Path, Result};

/// Limit of the Messages API on the length of a tool's name, which also holds `mcp__SERVER__`.
const MAX_NAME_LENGTH: usize = 64;

/// Options of one tool.
#[derive(Default)]
pub(crate) struct ToolOptions {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// The crate whose items the generated code names, if not `::whimbrel`.
    pub(crate) crate_path: Option<Path>,
    /// Names of methods of `whimbrel::Tool` without arguments.
    switches: Vec<&'static str>,
}

const SWITCHES: [&str; 4] = ["read_only", "destructive", "open_world", "always_loaded"];

impl ToolOptions {
    /// Parses what is between the parentheses.
    pub(crate) fn parse(tokens: TokenStream) -> Result<Self> {
        let mut options = Self::default();
        syn::meta::parser(|meta| options.add(&meta)).parse2(tokens)?;
        Ok(options)
    }

    /// Adds one option.
    fn add(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("name") {
            self.name = Some(parse_name(meta)?);
            return Ok(());
        }
        if meta.path.is_ident("description") {
            self.description = Some(meta.value()?.parse::<LitStr>()?.value());
            return Ok(());
        }
        if meta.path.is_ident("crate") {
            self.crate_path = Some(parse_crate(meta)?);
            return Ok(());
        }
        match SWITCHES.into_iter().find(|switch| meta.path.is_ident(switch)) {
            Some("read_only") if self.switches.contains(&"destructive") => {
                Err(meta.error("a tool that is `destructive` cannot be `read_only`"))
            }
            Some("destructive") if self.switches.contains(&"read_only") => {
                Err(meta.error("a tool that is `read_only` cannot be `destructive`"))
            }
            Some(switch) => {
                self.switches.push(switch);
                Ok(())
            }
            None => Err(meta.error(format!(
                "unknown option; known: `name = \"..\"`, `description = \"..\"`, `crate = ..`, `{}`",
                SWITCHES.join("`, `")
            ))),
        }
    }

    /// The path of the crate whose items the generated code names.
    pub(crate) fn render_crate(&self) -> TokenStream {
        render_crate(self.crate_path.as_ref())
    }

    /// Calls of the methods that the switches name.
    pub(crate) fn switch_calls(&self) -> TokenStream {
        let methods =
            self.switches.iter().map(|switch| syn::Ident::new(switch, proc_macro2::Span::call_site()));
        quote!(#(.#methods())*)
    }
}

/// Parses `crate = path`, for a program that knows the crate `whimbrel` by another path.
pub(crate) fn parse_crate(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    Path::parse_mod_style(meta.value()?)
}

/// The path of the crate `whimbrel`.
pub(crate) fn render_crate(path: Option<&Path>) -> TokenStream {
    path.map_or_else(|| quote!(::whimbrel), ToTokens::to_token_stream)
}

/// Parses `name = ".."` and checks it against what providers accept.
pub(crate) fn parse_name(meta: &ParseNestedMeta<'_>) -> Result<String> {
    let literal = meta.value()?.parse::<LitStr>()?;
    let name = literal.value();
    match is_accepted_name(&name) {
        true => Ok(name),
        false => Err(syn::Error::new(
            literal.span(),
            format!("a name consists of 1 to {MAX_NAME_LENGTH} of the characters a-z, A-Z, 0-9, `_` and `-`"),
        )),
    }
}

/// Checks a name against the pattern of the Messages API, which rejects the whole request otherwise.
pub(crate) fn is_accepted_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(is_allowed)
}
