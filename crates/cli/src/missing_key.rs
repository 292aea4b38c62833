//! Help for a user who has no model configured. Pure.

use crate::environment::Env;

/// Prefixes of models that need no key for the Messages API.
const KEYLESS_PREFIXES: [&str; 2] = ["openai:", "scripted:"];

/// Returns whether the selected model needs a key and has none.
pub(crate) fn lacks_key(model: Option<&str>, env: &Env) -> bool {
    let set = |name: &str| env.get(name).is_some_and(|value| !value.trim().is_empty());
    let model = model.or_else(|| env.get("ANTHROPIC_MODEL").map(String::as_str)).unwrap_or_default();
    !set("ANTHROPIC_API_KEY")
        && !set("ANTHROPIC_AUTH_TOKEN")
        && !set("CLAUDE_CODE_OAUTH_TOKEN")
        && !KEYLESS_PREFIXES.iter().any(|prefix| model.starts_with(prefix))
}

/// Ways to configure a model.
pub(crate) const NO_KEY_HELP: &str = "\
No model is configured. Use one of these:

  an Anthropic key      export ANTHROPIC_API_KEY=sk-ant-...
  a gateway             export ANTHROPIC_AUTH_TOKEN=... ANTHROPIC_BASE_URL=https://...
  an OpenAI-style API   export OPENAI_API_KEY=... OPENAI_BASE_URL=https://.../v1
                        whimbrel --model openai:NAME \"...\"
  a local model         ollama serve; export OPENAI_BASE_URL=http://localhost:11434/v1
                        whimbrel --model openai:qwen3 \"...\"

To watch a scripted run without a key: whimbrel demo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_is_missing_only_where_one_is_needed() {
        type Row<'a> = (&'a str, Option<&'a str>, &'a [(&'a str, &'a str)], bool);
        let rows: [Row<'_>; 9] = [
            ("nothing", None, &[], true),
            ("an empty key", None, &[("ANTHROPIC_API_KEY", " ")], true),
            ("a key", None, &[("ANTHROPIC_API_KEY", "k")], false),
            ("a token", None, &[("ANTHROPIC_AUTH_TOKEN", "t")], false),
            ("an OAuth token", None, &[("CLAUDE_CODE_OAUTH_TOKEN", "t")], false),
            ("another provider", Some("openai:gpt"), &[], false),
            ("a script", Some("scripted:/a.json"), &[], false),
            ("another provider by the environment", None, &[("ANTHROPIC_MODEL", "openai:x")], false),
            ("the flag wins", Some("opus"), &[("ANTHROPIC_MODEL", "openai:x")], true),
        ];
        for (name, model, env, expected) in rows {
            let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(lacks_key(model, &env), expected, "{name}");
        }
    }
}
