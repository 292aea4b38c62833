use quote::quote;

use super::*;

fn error_of(options: &str, item: &str) -> String {
    let expanded = options.parse().and_then(|options| Ok((options, item.parse()?)));
    match expanded.map(|(options, item)| expand(options, item)) {
        Ok(Err(error)) => error.to_string(),
        other => format!("no error of the attribute: {other:?}"),
    }
}

#[test]
fn functions_that_cannot_be_tools_are_rejected_with_the_reason() {
    let rows = [
        ("unknown option", "readonly", "async fn add(a: u8) {}", "unknown option"),
        ("contradiction", "read_only, destructive", "async fn add(a: u8) {}", "cannot be `destructive`"),
        ("name", "name = \"a b\"", "async fn add(a: u8) {}", "a name consists of"),
        ("name of the function", "", "async fn größe(a: u8) {}", "do not accept this name"),
        ("borrowed argument", "", "async fn add(a: &str) {}", "`String` instead of `&str`"),
        ("opaque argument", "", "async fn add(a: impl Send) {}", "name the type"),
        ("pattern", "", "async fn add((a, b): (u8, u8)) {}", "name the argument"),
        ("name of an argument", "", "async fn add(größe: u8) {}", "accept only ASCII"),
        ("generic", "", "async fn add<T>(a: T) {}", "no generic parameters"),
        ("attribute", "", "async fn add(#[cfg(unix)] a: u8) {}", "apply to the field"),
        ("method", "", "async fn add(&self) {}", "on their `impl` block"),
        ("two contexts", "", "async fn add(a: ToolContext, b: &ToolContext) {}", "one `ToolContext`"),
        ("no function", "", "struct Add;", "expected"),
    ];
    for (name, options, item, expected) in rows {
        let error = error_of(options, &format!("#[doc = \" Adds.\"] {item}"));
        assert!(error.contains(expected), "{name}: {error}");
    }
    assert!(error_of("", "async fn add(a: u8) {}").contains("a tool needs a doc comment"));
}

#[test]
fn function_keeps_its_signature_without_attributes_of_arguments() {
    let item = quote! {
        /// Adds.
        pub async fn add(#[doc = " The first."] #[serde(default)] a: u8) -> u8 { a }
    };
    let tokens = expand(quote!(), item).map(|tokens| tokens.to_string()).unwrap_or_default();
    assert!(tokens.contains("pub async fn add (a : u8) -> u8"), "{tokens}");
    assert!(tokens.contains("pub fn add_tool ()"), "{tokens}");
    assert!(tokens.contains("# [doc = \" The first.\"] # [serde (default)] a : u8"), "{tokens}");
}
