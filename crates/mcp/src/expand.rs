//! Expands `${VAR}` and `${VAR:-default}` in server entries. Pure.

use std::collections::BTreeSet;

/// Looks up a variable; `None` if it is not set.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands variables and records the unset ones.
pub(super) struct VariableExpander<'a> {
    variables: VariableLookup<'a>,
    /// Variables that are unset and have no default. Their references stay in the text unexpanded.
    pub(super) missing: BTreeSet<String>,
}

impl<'a> VariableExpander<'a> {
    pub(super) fn new(variables: VariableLookup<'a>) -> Self {
        Self { variables, missing: BTreeSet::new() }
    }

    /// Expands the variables of one text in place.
    pub(super) fn expand(&mut self, text: &mut String) {
        if text.contains("${") {
            *text = self.expand_text(text);
        }
    }

    fn expand_text(&mut self, text: &str) -> String {
        let mut output = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find("${") {
            output.push_str(&rest[..start]);
            rest = &rest[start..];
            // Without a closing brace it is not a reference.
            let Some((reference, after)) = rest[2..].split_once('}') else { break };
            match self.resolve(reference) {
                Some(value) => output.push_str(&value),
                None => output.push_str(&rest[..reference.len() + 3]),
            }
            rest = after;
        }
        output.push_str(rest);
        output
    }

    /// Value of the reference between the braces; `None` leaves the reference unexpanded.
    fn resolve(&mut self, reference: &str) -> Option<String> {
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        if !is_variable_name(name) {
            return None;
        }
        let set = (self.variables)(name).filter(|value| !value.is_empty() || default.is_none());
        let value = set.or_else(|| default.map(str::to_owned));
        if value.is_none() {
            self.missing.insert(name.to_owned());
        }
        value
    }
}

fn is_variable_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_expanded_and_the_rest_stays() {
        let variables = |name: &str| match name {
            "A" => Some("one".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        for (name, text, expected, missing) in [
            ("no reference", "plain $A", "plain $A", None),
            ("a variable", "x${A}y", "xoney", None),
            ("two variables", "${A}${A}", "oneone", None),
            ("a default that is not needed", "${A:-two}", "one", None),
            ("a default", "${B:-two}", "two", None),
            ("an empty default", "<${B:-}>", "<>", None),
            ("a default with special characters", "${B:-http://h:1/p?q=1}", "http://h:1/p?q=1", None),
            ("an empty variable", "<${EMPTY}>", "<>", None),
            ("an empty variable with a default", "${EMPTY:-d}", "d", None),
            ("an unset variable", "a${B}b", "a${B}b", Some("B")),
            ("values are not expanded again", "${NESTED}", "${A}", None),
            ("unclosed", "${A} ${A", "one ${A", None),
            ("no name", "${} ${1} ${a b}", "${} ${1} ${a b}", None),
            ("unsupported syntax", "${A%x}", "${A%x}", None),
        ] {
            let mut expander = VariableExpander::new(&variables);
            let mut text = text.to_owned();
            expander.expand(&mut text);
            assert_eq!(text, expected, "{name}");
            assert_eq!(expander.missing.iter().next().map(String::as_str), missing, "{name}");
        }
    }
}
