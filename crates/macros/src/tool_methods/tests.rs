use quote::quote;

use super::*;

fn error_of(options: TokenStream, item: TokenStream) -> String {
    match expand(options, item) {
        Ok(tokens) => tokens.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn blocks_that_cannot_be_servers_are_rejected_with_the_reason() {
    let method = quote!(
        #[doc = " Adds."]
        #[tool]
        async fn add(&self, a: u8) {}
    );
    let rows = [
        ("no name", quote!(), quote!(impl A { #method }), "name the server"),
        ("bad name", quote!(name = "a.b"), quote!(impl A { #method }), "a name consists of"),
        ("unknown option", quote!(title = "a"), quote!(impl A { #method }), "unknown option"),
        ("no tool", quote!(name = "a"), quote!(impl A { fn add(&self) {} }), "no method has `#[tool]`"),
        ("trait", quote!(name = "a"), quote!(impl Tools for A { #method }), "without a trait"),
        (
            "exclusive",
            quote!(name = "a"),
            quote!(impl A { #[doc = " Adds."] #[tool] async fn add(&mut self) {} }),
            "`&self` or no `self`",
        ),
        (
            "value",
            quote!(name = "a"),
            quote!(impl A { #[doc = " Adds."] #[tool] async fn add(self) {} }),
            "`&self` or no `self`",
        ),
        (
            "same name",
            quote!(name = "a"),
            quote!(impl A { #method #[doc = " Adds."] #[tool(name = "add")] async fn sum(&self) {} }),
            "two tools have the name `add`",
        ),
    ];
    for (name, options, item, expected) in rows {
        let error = error_of(options, item);
        assert!(error.contains(expected), "{name}: {error}");
    }
}
