//! Variables of the official program that have no effect here. Pure. What could send requests elsewhere is an error,
//! what could concern security, cost or the place of work is a warning; the rest is only documented.

use super::env::{Env, is_env_set};

/// What happens at the start of a session if a variable is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reaction {
    Error,
    Warning,
    Nothing,
}

use Reaction::{Error, Nothing, Warning};

/// A row of the table.
struct UnsupportedVariables {
    names: &'static [&'static str],
    reaction: Reaction,
    /// What holds instead.
    instead: &'static str,
}

const fn row(
    names: &'static [&'static str],
    reaction: Reaction,
    instead: &'static str,
) -> UnsupportedVariables {
    UnsupportedVariables { names, reaction, instead }
}

/// The table; `docs/environment.md` has the same rows.
const UNSUPPORTED: &[UnsupportedVariables] = &[
    row(
        &[
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
            "CLAUDE_CODE_USE_MANTLE",
            "CLAUDE_CODE_USE_ANTHROPIC_AWS",
        ],
        Error,
        "Bedrock, Vertex AI, Foundry and the platform on AWS are not supported; requests go to the Messages API or to \
         a Chat Completions server",
    ),
    row(
        &["CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_CLIENT_KEY", "CLAUDE_CODE_CLIENT_KEY_PASSPHRASE"],
        Warning,
        "connections are made without a client certificate",
    ),
    row(
        &["CLAUDE_CODE_SUBPROCESS_ENV_SCRUB"],
        Warning,
        "programs never get the key variables of the engine, but they get the credentials of cloud providers",
    ),
    row(&["CLAUDE_CODE_SCRIPT_CAPS"], Warning, "the number of calls of a script is not limited"),
    row(
        &["CLAUDE_CODE_SIMPLE"],
        Warning,
        "hooks, plugins, skills, MCP servers and instruction files are loaded as usual",
    ),
    row(
        &["CLAUDE_CODE_DISABLE_CLAUDE_MDS"],
        Warning,
        "instruction files are loaded; `--setting-sources` selects whose",
    ),
    row(
        &["CLAUDE_AGENT_SDK_MCP_NO_PREFIX"],
        Warning,
        "tools of MCP servers keep the prefix `mcp__server__`, also in permission rules",
    ),
    row(
        &["ANTHROPIC_DEFAULT_OPUS_MODEL", "ANTHROPIC_DEFAULT_SONNET_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL"],
        Warning,
        "the aliases keep their built-in models; name the model itself",
    ),
    row(
        &["CLAUDE_CODE_DISABLE_1M_CONTEXT"],
        Warning,
        "a model with the suffix `[1m]` is used with its long context",
    ),
    row(
        &["CLAUDE_CODE_DISABLE_ADAPTIVE_THINKING"],
        Warning,
        "the model decides how much to think; `CLAUDE_CODE_DISABLE_THINKING` turns thinking off",
    ),
    row(
        &["CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS"],
        Warning,
        "the built-in agents can be started; deny each with a rule such as `Agent(Explore)`",
    ),
    row(
        &["CLAUDE_CODE_MAX_CONCURRENT_SUBAGENTS", "CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH"],
        Warning,
        "agents start agents down to four levels, and `WHIMBREL_AGENTS_AT_ONCE` limits those of one level",
    ),
    row(
        &[
            "BASH_MAX_OUTPUT_LENGTH",
            "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
            "CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY",
        ],
        Warning,
        "the limits of tools are fixed",
    ),
    row(
        &["ENABLE_PROMPT_CACHING_1H", "ENABLE_PROMPT_CACHING_1H_BEDROCK"],
        Warning,
        "the prompt cache lasts five minutes",
    ),
    row(
        &["CLAUDE_CODE_SKIP_PROMPT_HISTORY"],
        Warning,
        "sessions are stored; `--no-session-persistence` stores nothing",
    ),
    row(&["CLAUDE_CODE_SHELL"], Warning, "commands run in bash"),
    row(&["CLAUDE_CODE_TMPDIR"], Warning, "temporary files go to `TMPDIR`"),
    row(&["CLAUDE_CODE_ENABLE_TELEMETRY"], Warning, "no telemetry is sent"),
    row(
        &[
            "DISABLE_TELEMETRY",
            "DISABLE_ERROR_REPORTING",
            "DISABLE_AUTOUPDATER",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "CLAUDE_CODE_DISABLE_FEEDBACK_SURVEY",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY",
            "CLAUDE_CODE_DISABLE_FAST_MODE",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL",
            "DISABLE_BUG_COMMAND",
            "DISABLE_COST_WARNINGS",
            "DISABLE_EXTRA_USAGE_COMMAND",
            "DISABLE_FEEDBACK_COMMAND",
            "DISABLE_INSTALLATION_CHECKS",
            "DISABLE_INSTALL_GITHUB_APP_COMMAND",
            "DISABLE_LOGIN_COMMAND",
            "DISABLE_LOGOUT_COMMAND",
            "DISABLE_UPGRADE_COMMAND",
            "ENABLE_CLAUDEAI_MCP_SERVERS",
        ],
        Nothing,
        "there is nothing to disable",
    ),
    row(
        &[
            "ANTHROPIC_BEDROCK_BASE_URL",
            "ANTHROPIC_VERTEX_BASE_URL",
            "ANTHROPIC_VERTEX_PROJECT_ID",
            "ANTHROPIC_FOUNDRY_BASE_URL",
            "ANTHROPIC_FOUNDRY_RESOURCE",
            "ANTHROPIC_FOUNDRY_API_KEY",
            "ANTHROPIC_AWS_BASE_URL",
            "ANTHROPIC_AWS_API_KEY",
            "ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION",
            "AWS_BEARER_TOKEN_BEDROCK",
            "AWS_REGION",
            "CLAUDE_CODE_SKIP_BEDROCK_AUTH",
            "CLAUDE_CODE_SKIP_FOUNDRY_AUTH",
            "CLAUDE_CODE_SKIP_VERTEX_AUTH",
            "CLOUD_ML_REGION",
        ],
        Nothing,
        "these providers are not supported",
    ),
    row(
        &["CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "CLAUDE_CODE_OAUTH_SCOPES"],
        Nothing,
        "there is no login to an account; set `CLAUDE_CODE_OAUTH_TOKEN`",
    ),
    row(
        &["CLAUDE_ENABLE_STREAM_WATCHDOG", "CLAUDE_STREAM_IDLE_TIMEOUT_MS"],
        Nothing,
        "replies without bytes always time out, see `WHIMBREL_NO_BYTES_TIMEOUT_MS`",
    ),
    row(
        &["CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS", "DISABLE_INTERLEAVED_THINKING"],
        Nothing,
        "beta features that a server rejects are left out in later requests",
    ),
    row(
        &[
            "CLAUDE_AUTO_BACKGROUND_TASKS",
            "CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING",
            "CLAUDE_CODE_EXIT_AFTER_STOP_DELAY",
            "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
            "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS",
        ],
        Nothing,
        "hosts, settings and hooks have options of their own for this",
    ),
    row(
        &[
            "CLAUDE_AGENT_SDK_CLIENT_APP",
            "CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK",
            "CLAUDE_CODE_STREAM_CLOSE_TIMEOUT",
        ],
        Nothing,
        "read by the SDKs; the engine needs no such value",
    ),
    row(
        &[
            "TRACEPARENT",
            "TRACESTATE",
            "CLAUDE_CODE_OTEL_FLUSH_TIMEOUT_MS",
            "CLAUDE_CODE_OTEL_HEADERS_HELPER_DEBOUNCE_MS",
            "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS",
        ],
        Nothing,
        "no telemetry is sent; `CLAUDE_CODE_ENABLE_TELEMETRY` gives a warning",
    ),
    row(
        &[
            "CLAUDE_CODE_ACCESSIBILITY",
            "CLAUDE_CODE_DISABLE_MOUSE",
            "CLAUDE_CODE_DISABLE_TERMINAL_TITLE",
            "CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION",
            "CLAUDE_CODE_HIDE_ACCOUNT_INFO",
            "CLAUDE_CODE_NEW_INIT",
            "CLAUDE_CODE_NO_FLICKER",
            "CLAUDE_CODE_SCROLL_SPEED",
            "CLAUDE_CODE_SYNTAX_HIGHLIGHT",
            "CLAUDE_REMOTE_CONTROL_SESSION_NAME_PREFIX",
        ],
        Nothing,
        "there is no such interface",
    ),
    row(
        &[
            "ANTHROPIC_CUSTOM_MODEL_OPTION",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_DESCRIPTION",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_NAME",
        ],
        Nothing,
        "any model can be named; there is no menu of models",
    ),
    row(
        &[
            "CLAUDE_CODE_AUTO_CONNECT_IDE",
            "CLAUDE_CODE_IDE_HOST_OVERRIDE",
            "CLAUDE_CODE_IDE_SKIP_AUTO_INSTALL",
            "CLAUDE_CODE_IDE_SKIP_VALID_CHECK",
        ],
        Nothing,
        "there is no connection to an editor",
    ),
    row(
        &[
            "CLAUDE_CODE_PLUGIN_KEEP_MARKETPLACE_ON_FAILURE",
            "CLAUDE_CODE_PLUGIN_SEED_DIR",
            "CLAUDE_CODE_SYNC_PLUGIN_INSTALL",
            "CLAUDE_CODE_SYNC_PLUGIN_INSTALL_TIMEOUT_MS",
            "FORCE_AUTOUPDATE_PLUGINS",
        ],
        Nothing,
        "plugins and marketplaces change only by `whimbrel plugin`",
    ),
    row(
        &[
            "CLAUDE_CODE_GIT_BASH_PATH",
            "CLAUDE_CODE_USE_POWERSHELL_TOOL",
            "NoDefaultCurrentDirectoryInExePath",
        ],
        Nothing,
        "Windows is not supported",
    ),
    row(
        &["CLAUDE_CODE_DEBUG_LOGS_DIR", "CLAUDE_CODE_DEBUG_LOG_LEVEL"],
        Nothing,
        "`--debug-file` names the file, and `--debug` the topics",
    ),
    row(
        &["CLAUDE_CODE_GLOB_HIDDEN", "CLAUDE_CODE_GLOB_NO_IGNORE", "CLAUDE_CODE_GLOB_TIMEOUT_SECONDS"],
        Nothing,
        "Glob skips hidden and ignored files that are not named, and stops after one minute",
    ),
    row(&["FALLBACK_FOR_ALL_PRIMARY_MODELS"], Nothing, "`--fallback-model` applies to every model"),
    row(&["CLAUDE_CODE_TEAM_NAME"], Nothing, "teammates run in the process of the session"),
];

/// The error for a variable that would send requests elsewhere.
pub(super) fn check_variables(env: &Env) -> Result<(), String> {
    match find_set(env, Error).next() {
        None => Ok(()),
        Some((name, instead)) => Err(format!(
            "{name} is set, but {instead}. Set it to 0 (in `env` of your settings, if it is set there)."
        )),
    }
}

/// Warnings about variables whose effect is missed.
pub(super) fn ignored_variables(env: &Env) -> Vec<String> {
    find_set(env, Warning).map(|(name, instead)| format!("{name} has no effect: {instead}.")).collect()
}

/// Variables of this kind that are set, with what holds instead.
fn find_set(env: &Env, reaction: Reaction) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = UNSUPPORTED.iter().filter(move |row| row.reaction == reaction);
    rows.flat_map(|row| row.names.iter().map(|name| (*name, row.instead)))
        .filter(|(name, _)| is_env_set(env, name))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn variables_cause_errors_and_warnings_where_it_matters() {
        type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>, &'a [&'a str]);
        let rows: [Row<'_>; 5] = [
            ("nothing", &[("PATH", "/bin")], None, &[]),
            ("another provider", &[("CLAUDE_CODE_USE_VERTEX", "1")], Some("CLAUDE_CODE_USE_VERTEX"), &[]),
            ("switched off", &[("CLAUDE_CODE_USE_BEDROCK", "0"), ("CLAUDE_CODE_USE_FOUNDRY", "")], None, &[]),
            (
                "missed effects",
                &[("CLAUDE_CODE_SHELL", "zsh"), ("CLAUDE_CODE_CLIENT_CERT", "/c.pem")],
                None,
                &["CLAUDE_CODE_CLIENT_CERT", "CLAUDE_CODE_SHELL"],
            ),
            ("harmless", &[("DISABLE_TELEMETRY", "1"), ("ANTHROPIC_VERTEX_PROJECT_ID", "p")], None, &[]),
        ];
        for (name, pairs, error, warnings) in rows {
            let env = env(pairs);
            let found = check_variables(&env).err();
            assert_eq!(found.is_some(), error.is_some(), "{name}: {found:?}");
            assert!(found.iter().all(|text| text.starts_with(error.unwrap())), "{name}: {found:?}");
            let found = ignored_variables(&env);
            let named = found.iter().map(|text| text.split(' ').next().unwrap()).collect::<Vec<_>>();
            assert_eq!(named, warnings, "{name}");
        }
    }

    #[test]
    fn a_variable_has_one_row() {
        let names: Vec<&str> = UNSUPPORTED.iter().flat_map(|row| row.names.iter().copied()).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn environment_page_has_the_same_rows() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/environment.md");
        let page = std::fs::read_to_string(page).unwrap();
        let mut table = String::from("| Variable | Instead | At the start |\n|---|---|---|\n");
        for UnsupportedVariables { names, reaction, instead } in UNSUPPORTED {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            let reaction = match reaction {
                Error => "error",
                Warning => "warning",
                Nothing => "nothing",
            };
            table += &format!("| {} | {instead} | {reaction} |\n", names.join(", "));
        }
        assert!(page.contains(&format!("\n{table}\n")), "docs/environment.md must contain:\n{table}");
    }
}
