//! Environment variables with keys. The programs that a session starts do not get them unless the user names them. Pure.

use std::collections::BTreeMap;

/// Variable with the names of key variables that programs get, separated by commas.
pub const PASS_VARIABLE: &str = "WHIMBREL_PASS_ENV";

/// The key variables: credentials for models and MCP servers, and headers that may contain one.
const KEY_VARIABLES: [&str; 12] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_AWS_API_KEY",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_FOUNDRY_API_KEY",
    "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "MCP_CLIENT_SECRET",
    "OPENAI_API_KEY",
];

/// Key variables that programs do not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenVariables(Vec<&'static str>);

impl HiddenVariables {
    /// All key variables except those that `pass_env` of the settings or the environment names.
    pub fn new(pass_env: &[String], env: &BTreeMap<String, String>) -> Self {
        let by_env = env.get(PASS_VARIABLE).into_iter().flat_map(|names| names.split(','));
        let passed: Vec<&str> = pass_env.iter().map(String::as_str).chain(by_env).map(str::trim).collect();
        Self(KEY_VARIABLES.into_iter().filter(|name| !passed.contains(name)).collect())
    }

    /// Removes the hidden variables from the environment of a program.
    pub fn remove_from(&self, environment: &mut BTreeMap<String, String>) {
        for name in &self.0 {
            environment.remove(*name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_variables_are_hidden_unless_named() {
        type Row<'a> = (&'a str, &'a [&'a str], Option<&'a str>, &'a [&'a str]);
        let rows: [Row<'_>; 5] = [
            ("nothing named", &[], None, &["PATH"]),
            ("by the settings", &["OPENAI_API_KEY"], None, &["OPENAI_API_KEY", "PATH"]),
            (
                "by the environment",
                &[],
                Some("X, ANTHROPIC_API_KEY ,"),
                &["ANTHROPIC_API_KEY", "PATH", PASS_VARIABLE],
            ),
            (
                "by both",
                &["OPENAI_API_KEY"],
                Some("ANTHROPIC_API_KEY"),
                &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "PATH", PASS_VARIABLE],
            ),
            ("no pattern", &["*"], Some("ANTHROPIC_*"), &["PATH", PASS_VARIABLE]),
        ];
        for (name, pass_env, by_env, expected) in rows {
            let pass_env: Vec<String> = pass_env.iter().map(|name| (*name).to_owned()).collect();
            let mut env: BTreeMap<String, String> = KEY_VARIABLES
                .into_iter()
                .chain(["PATH"])
                .map(|name| (name.to_owned(), "x".to_owned()))
                .collect();
            env.extend(by_env.map(|names| (PASS_VARIABLE.to_owned(), names.to_owned())));
            HiddenVariables::new(&pass_env, &env).remove_from(&mut env);
            assert_eq!(env.keys().map(String::as_str).collect::<Vec<_>>(), expected, "{name}");
        }
    }
}
