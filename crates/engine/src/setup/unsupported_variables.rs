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
        "Bedrock, Vertex AI, Foundry and the platform on AWS are not supported; requests go to the Messages API or to a Chat Completions server",
    ),
    row(
        &["ANTHROPIC_UNIX_SOCKET"],
        Error,
        "requests cannot go through a Unix socket; `ANTHROPIC_BASE_URL` names the address",
    ),
    row(
        &["CLAUDE_CODE_RESTRICTED"],
        Error,
        "there is no restricted mode; restrict the session with `--tools`, `--disallowedTools` and `--permission-mode dontAsk`",
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
        &[
            "ANTHROPIC_DEFAULT_OPUS_MODEL",
            "ANTHROPIC_DEFAULT_SONNET_MODEL",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL",
            "ANTHROPIC_DEFAULT_FABLE_MODEL",
        ],
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
        &["CLAUDE_AGENT_SDK_DISABLE_BUILTIN_AGENTS", "CLAUDE_CODE_DISABLE_EXPLORE_PLAN_AGENTS"],
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
            "TASK_MAX_OUTPUT_LENGTH",
            "SLASH_COMMAND_TOOL_CHAR_BUDGET",
            "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH",
        ],
        Warning,
        "the limits of tools are fixed",
    ),
    row(
        &[
            "ENABLE_PROMPT_CACHING_1H",
            "ENABLE_PROMPT_CACHING_1H_BEDROCK",
            "CLAUDE_CODE_PROMPT_CACHE_TTL",
            "CLAUDE_CODE_SUBAGENT_PROMPT_CACHE_TTL",
        ],
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
    row(&["CLAUDE_CODE_ENABLE_TELEMETRY", "ENABLE_BETA_TRACING_DETAILED"], Warning, "no telemetry is sent"),
    row(
        &["CLAUDE_CODE_PROCESS_WRAPPER"],
        Warning,
        "programs are started directly; `CLAUDE_CODE_SHELL_PREFIX` wraps commands",
    ),
    row(
        &["ANTHROPIC_DEFAULT_MODEL"],
        Warning,
        "`ANTHROPIC_MODEL` and the setting `model` name the model of new sessions",
    ),
    row(
        &[
            "ANTHROPIC_PROFILE",
            "ANTHROPIC_FEDERATION_RULE_ID",
            "ANTHROPIC_ORGANIZATION_ID",
            "ANTHROPIC_WORKSPACE_ID",
        ],
        Warning,
        "credentials come from the variables and settings that `whimbrel auth status` names",
    ),
    row(&["CLAUDE_CODE_PROVIDER_MANAGED_BY_HOST"], Warning, "settings may name model, address and key"),
    row(&["CLAUDE_CODE_CERT_STORE"], Warning, "the certificates of the system are trusted"),
    row(
        &["CLAUDE_CODE_MCP_ALLOWLIST_ENV"],
        Warning,
        "programs of MCP servers get the environment without the key variables",
    ),
    row(&["CLAUDE_CODE_DISABLE_ADMIN_ENV_UNION"], Warning, "`env` of all managed settings files applies"),
    row(&["CLAUDE_CODE_PERFORCE_MODE"], Warning, "files without write permission are edited like others"),
    row(
        &["CLAUDE_CODE_TOOL_MEMORY_LIMIT", "CLAUDE_CODE_TOOL_MEMORY_CGROUP_EXCLUDE"],
        Warning,
        "the memory of commands is not limited",
    ),
    row(&["CLAUDE_CODE_DISABLE_ATTACHMENTS"], Warning, "files that a prompt mentions with `@` are attached"),
    row(
        &["CLAUDE_CODE_PLUGIN_SEED_DIR", "CLAUDE_CODE_PLUGIN_DIRS"],
        Warning,
        "plugins come from `whimbrel plugin`, `CLAUDE_CODE_PLUGIN_CACHE_DIR` and `--plugin-dir`",
    ),
    row(
        &["CLAUDE_CODE_PROJECT_DIR_NAME"],
        Warning,
        "the directory of transcripts is named after the working directory",
    ),
    row(
        &["CLAUDE_CODE_MAX_WEB_SEARCHES_PER_SESSION"],
        Warning,
        "the number of searches is not limited; `--max-budget-usd` limits the cost",
    ),
    row(
        &["CLAUDE_CODE_MAX_CONTEXT_TOKENS"],
        Warning,
        "the size of the window is the model's; `CLAUDE_CODE_AUTO_COMPACT_WINDOW` makes compaction assume another one",
    ),
    row(
        &["CLAUDE_CODE_ALWAYS_ENABLE_EFFORT"],
        Warning,
        "effort is sent only to models that are known to accept it",
    ),
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
            "DISABLE_DOCTOR_COMMAND",
            "DISABLE_GROWTHBOOK",
            "DISABLE_UPDATES",
            "DO_NOT_TRACK",
            "CLAUDE_CODE_DISABLE_ADVISOR_TOOL",
            "CLAUDE_CODE_DISABLE_AGENT_VIEW",
            "CLAUDE_CODE_DISABLE_ARTIFACT",
            "CLAUDE_CODE_DISABLE_BG_EXIT_HANDOFF",
            "CLAUDE_CODE_DISABLE_BG_SHELL_PRESSURE_REAP",
            "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS",
            "CLAUDE_CODE_DISABLE_CFC_PROMPT",
            "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS",
            "CLAUDE_CODE_DISABLE_LEGACY_MODEL_REMAP",
            "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK",
            "CLAUDE_CODE_DISABLE_NOTIFICATION_PRESENCE_CHECK",
            "CLAUDE_CODE_DISABLE_PERMISSION_PROMPT_NOTIFY_HOOKS",
            "CLAUDE_CODE_DISABLE_POLICY_SKILLS",
            "CLAUDE_CODE_DISABLE_WORKFLOWS",
            "CLAUDE_CODE_ATTRIBUTION_HEADER",
            "CLAUDE_CODE_GATEWAY_HINT_HEADERS",
            "CLAUDE_DISABLE_ADOPT",
            "CLAUDE_CODE_DISABLE_MTLS_RELOAD_ON_STALE_CONNECTION",
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
            "ANTHROPIC_AWS_WORKSPACE_ID",
            "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
            "ANTHROPIC_BEDROCK_REGION_PREFIX",
            "ANTHROPIC_BEDROCK_SERVICE_TIER",
            "ANTHROPIC_FOUNDRY_AUTH_TOKEN",
            "CLAUDE_CODE_AWS_CHAIN_RESOLVE_TIMEOUT_MS",
            "CLAUDE_CODE_DISABLE_BEDROCK_CONTENT_TYPE_DEFAULT",
            "CLAUDE_CODE_DISABLE_BEDROCK_CONTENT_TYPE_GUARD",
            "CLAUDE_CODE_SKIP_ANTHROPIC_AWS_AUTH",
            "CLAUDE_CODE_SKIP_AWS_CRED_CACHE",
            "CLAUDE_CODE_SKIP_MANTLE_AUTH",
            "CLAUDE_ENABLE_BYTE_WATCHDOG_BEDROCK",
            "VERTEX_REGION_CLAUDE_3_5_HAIKU",
            "VERTEX_REGION_CLAUDE_3_5_SONNET",
            "VERTEX_REGION_CLAUDE_3_7_SONNET",
            "VERTEX_REGION_CLAUDE_4_0_OPUS",
            "VERTEX_REGION_CLAUDE_4_0_SONNET",
            "VERTEX_REGION_CLAUDE_4_1_OPUS",
            "VERTEX_REGION_CLAUDE_4_5_OPUS",
            "VERTEX_REGION_CLAUDE_4_5_SONNET",
            "VERTEX_REGION_CLAUDE_4_6_OPUS",
            "VERTEX_REGION_CLAUDE_4_6_SONNET",
            "VERTEX_REGION_CLAUDE_4_7_OPUS",
            "VERTEX_REGION_CLAUDE_4_8_OPUS",
            "VERTEX_REGION_CLAUDE_5_5_OPUS",
            "VERTEX_REGION_CLAUDE_5_OPUS",
            "VERTEX_REGION_CLAUDE_5_SONNET",
            "VERTEX_REGION_CLAUDE_FABLE_5",
            "VERTEX_REGION_CLAUDE_FABLE_5_1",
            "VERTEX_REGION_CLAUDE_HAIKU_4_5",
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
        &[
            "CLAUDE_ENABLE_STREAM_WATCHDOG",
            "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
            "API_FORCE_IDLE_TIMEOUT",
            "CLAUDE_ASYNC_AGENT_STALL_TIMEOUT_MS",
            "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS",
            "CLAUDE_ENABLE_BYTE_WATCHDOG",
            "CLAUDE_STREAM_FIRST_BYTE_TIMEOUT_MS",
        ],
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
            "CLAUDE_AFK_COUNTDOWN_MS",
            "CLAUDE_AFK_TIMEOUT_MS",
            "CLAUDE_CODE_AUTO_BACKGROUND_WORKER_CHECKIN_SECONDS",
            "CLAUDE_CODE_BASH_EDIT_DIFF",
            "CLAUDE_CODE_BG_TASKS_REPORT_RUNNING",
            "CLAUDE_CODE_FORWARD_SUBAGENT_TEXT",
            "CLAUDE_CODE_GOAL_CHECKIN_MINUTES",
            "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS",
            "CLAUDE_CODE_RESUME_INTERRUPTED_TURN_MAX_AGE_MS",
            "CLAUDE_CODE_RESUME_PROMPT",
            "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
            "CLAUDE_CODE_TEAM_TEARDOWN_PARK_TIMEOUT_MS",
            "CLAUDE_CODE_USER_DIALOG_TIMEOUT_MS",
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
            "BETA_TRACING_ENDPOINT",
            "CLAUDE_CODE_ENABLE_FEEDBACK_SURVEY_FOR_OTEL",
            "CLAUDE_CODE_OTEL_CONTENT_MAX_LENGTH",
            "CLAUDE_CODE_OTEL_DIAG_STDERR",
            "CLAUDE_CODE_PROPAGATE_TRACEPARENT",
            "OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "OTEL_EXPORTER_OTLP_PROTOCOL",
            "OTEL_LOGS_EXPORTER",
            "OTEL_LOG_ASSISTANT_RESPONSES",
            "OTEL_LOG_MANAGED_SETTINGS",
            "OTEL_LOG_RAW_API_BODIES",
            "OTEL_LOG_TOOL_CONTENT",
            "OTEL_LOG_TOOL_DETAILS",
            "OTEL_LOG_USER_PROMPTS",
            "OTEL_METRICS_EXPORTER",
            "OTEL_METRICS_INCLUDE_ACCOUNT_UUID",
            "OTEL_METRICS_INCLUDE_ENTRYPOINT",
            "OTEL_METRICS_INCLUDE_REPOSITORY",
            "OTEL_METRICS_INCLUDE_RESOURCE_ATTRIBUTES",
            "OTEL_METRICS_INCLUDE_SESSION_ID",
            "OTEL_METRICS_INCLUDE_VERSION",
            "OTEL_METRIC_EXPORT_INTERVAL",
            "OTEL_RESOURCE_ATTRIBUTES",
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
            "CCR_FORCE_BUNDLE",
            "CLAUDE_AX_PREPARK_MS",
            "CLAUDE_AX_STARTUP_QUIET_MS",
            "CLAUDE_CLIENT_PRESENCE_FILE",
            "CLAUDE_CODE_ALT_SCREEN_FULL_REPAINT",
            "CLAUDE_CODE_ARTIFACT_AUTO_OPEN",
            "CLAUDE_CODE_ARTIFACT_COMMENTS",
            "CLAUDE_CODE_ARTIFACT_COMMENTS_AUTOREACT",
            "CLAUDE_CODE_BS_AS_CTRL_BACKSPACE",
            "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN",
            "CLAUDE_CODE_DISABLE_MOUSE_CLICKS",
            "CLAUDE_CODE_DISABLE_VIRTUAL_SCROLL",
            "CLAUDE_CODE_ENABLE_AWAY_SUMMARY",
            "CLAUDE_CODE_FORCE_STRIKETHROUGH",
            "CLAUDE_CODE_FORCE_SYNC_OUTPUT",
            "CLAUDE_CODE_HIDE_CWD",
            "CLAUDE_CODE_NATIVE_CURSOR",
            "CLAUDE_CODE_NONBLOCKING_STDOUT",
            "CLAUDE_CODE_SEND_FEEDBACK",
            "CLAUDE_CODE_SKIP_FAST_MODE_NETWORK_ERRORS",
            "CLAUDE_CODE_SKIP_FAST_MODE_ORG_CHECK",
            "CLAUDE_CODE_TMUX_TRUECOLOR",
            "FORCE_HYPERLINK",
            "IS_DEMO",
        ],
        Nothing,
        "there is no such interface or feature",
    ),
    row(
        &[
            "ANTHROPIC_CUSTOM_MODEL_OPTION",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_DESCRIPTION",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_NAME",
            "ANTHROPIC_CUSTOM_MODEL_OPTION_SUPPORTED_CAPABILITIES",
            "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY",
            "CLAUDE_CODE_GATEWAY_MODEL_DISCOVERY_TIMEOUT_MS",
            "ANTHROPIC_DEFAULT_FABLE_MODEL_DESCRIPTION",
            "ANTHROPIC_DEFAULT_FABLE_MODEL_NAME",
            "ANTHROPIC_DEFAULT_FABLE_MODEL_SUPPORTED_CAPABILITIES",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL_DESCRIPTION",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL_NAME",
            "ANTHROPIC_DEFAULT_HAIKU_MODEL_SUPPORTED_CAPABILITIES",
            "ANTHROPIC_DEFAULT_OPUS_MODEL_DESCRIPTION",
            "ANTHROPIC_DEFAULT_OPUS_MODEL_NAME",
            "ANTHROPIC_DEFAULT_OPUS_MODEL_SUPPORTED_CAPABILITIES",
            "ANTHROPIC_DEFAULT_SONNET_MODEL_DESCRIPTION",
            "ANTHROPIC_DEFAULT_SONNET_MODEL_NAME",
            "ANTHROPIC_DEFAULT_SONNET_MODEL_SUPPORTED_CAPABILITIES",
        ],
        Nothing,
        "any model can be named, whatever a menu shows",
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
            "CLAUDE_CODE_SYNC_PLUGIN_INSTALL",
            "CLAUDE_CODE_SYNC_PLUGIN_INSTALL_TIMEOUT_MS",
            "FORCE_AUTOUPDATE_PLUGINS",
            "CLAUDE_CODE_ENABLE_BACKGROUND_PLUGIN_REFRESH",
            "CLAUDE_CODE_PLUGIN_PREFER_HTTPS",
            "CLAUDE_CODE_SYNC_SKILLS",
            "CLAUDE_CODE_SYNC_SKILLS_INSTALL_TIMEOUT_MS",
            "CLAUDE_CODE_SYNC_SKILLS_WAIT_TIMEOUT_MS",
            "CLAUDE_CODE_PACKAGE_MANAGER_AUTO_UPDATE",
        ],
        Nothing,
        "plugins, skills and the program change only by commands of the user",
    ),
    row(
        &[
            "CLAUDE_CODE_GIT_BASH_PATH",
            "CLAUDE_CODE_USE_POWERSHELL_TOOL",
            "NoDefaultCurrentDirectoryInExePath",
            "CLAUDE_CODE_DISABLE_WINDOWS_SHELL_LAUNCHER",
            "CLAUDE_CODE_POWERSHELL_RESPECT_EXECUTION_POLICY",
        ],
        Nothing,
        "Windows is not supported",
    ),
    row(
        &["CLAUDE_CODE_DEBUG_LOGS_DIR", "CLAUDE_CODE_DEBUG_LOG_LEVEL", "DEBUG"],
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
    row(
        &["CLAUDE_CODE_RETRY_WATCHDOG"],
        Nothing,
        "`CLAUDE_CODE_MAX_RETRIES` and `WHIMBREL_OVERLOAD_TIMEOUT_MINUTES` say how long to retry",
    ),
    row(
        &[
            "CLAUDE_CODE_CONNECT_TIMEOUT_MS",
            "CLAUDE_CODE_ENABLE_AUTO_MODE",
            "CLAUDE_CODE_ENABLE_OPUS_4_7_FAST_MODE",
            "CLAUDE_CODE_MAX_SUBAGENTS_PER_SESSION",
            "CLAUDE_CODE_OPUS_4_6_FAST_MODE_OVERRIDE",
            "CLAUDE_SUBAGENT_BG_SHELL_MAX_MS",
        ],
        Nothing,
        "they have no effect in the official program either",
    ),
    row(
        &["CLAUDE_CODE_AUTO_MODE_SERVER"],
        Nothing,
        "there is no mode auto; `--permission-mode auto` asks as `default` does",
    ),
    row(
        &["CLAUDE_CODE_DISABLE_UNKNOWN_MODEL_WINDOW_ENFORCEMENT"],
        Nothing,
        "`DISABLE_AUTO_COMPACT` turns automatic compaction off",
    ),
    row(
        &["CLAUDE_CODE_ENABLE_FINE_GRAINED_TOOL_STREAMING"],
        Nothing,
        "inputs of tools stream as the provider sends them",
    ),
    row(
        &["CLAUDE_CODE_ENABLE_TODO_TOOLS"],
        Nothing,
        "the tools of the task list are offered for every model",
    ),
    row(
        &["CLAUDE_CODE_FORCE_SESSION_PERSISTENCE"],
        Nothing,
        "a session that a command starts is stored, too",
    ),
    row(
        &[
            "CLAUDE_CODE_FORK_SUBAGENT",
            "CLAUDE_CODE_WORKFLOW_MAX_CONCURRENT_AGENTS",
            "CLAUDE_CODE_WORKFLOW_PREFIX_STAGGER_MS",
        ],
        Nothing,
        "there are no forked subagents and no workflows",
    ),
    row(&["CLAUDE_CODE_PROXY_RESOLVES_HOSTS"], Nothing, "a proxy always resolves the names of hosts"),
    row(
        &["CLAUDE_CODE_SIMPLE_SYSTEM_PROMPT"],
        Nothing,
        "the system prompt and the descriptions of tools are short",
    ),
    row(&["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"], Nothing, "hooks can block the end of a turn eight times"),
    row(
        &["CLAUDE_CODE_SUBAGENT_MODEL_FORCE"],
        Nothing,
        "`CLAUDE_CODE_SUBAGENT_MODEL` always wins over definitions",
    ),
    row(&["CLAUDE_CODE_USE_NATIVE_FILE_SEARCH", "USE_BUILTIN_RIPGREP"], Nothing, "the search is built in"),
    row(
        &["CLAUDE_CODE_WEBFETCH_CACHE_TTL_MS", "CLAUDE_CODE_WEBFETCH_DEADLINE_MS"],
        Nothing,
        "the times of WebFetch are fixed",
    ),
    row(
        &[
            "CLAUDE_CODE_MCP_STARTUP_WAIT_MS",
            "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT",
            "MCP_CONNECTION_NONBLOCKING",
            "MCP_CONNECT_TIMEOUT_MS",
            "MCP_DISCOVERY_CACHE",
            "MCP_DISCOVERY_CACHE_MAX_STALE_S",
            "MCP_DISCOVERY_CACHE_STRIKES",
            "MCP_DISCOVERY_CACHE_TTL_S",
            "MCP_PROTOCOL_NEGOTIATION",
            "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE",
            "MCP_SDK_GENERATION",
            "MCP_SERVER_CONNECTION_BATCH_SIZE",
        ],
        Nothing,
        "MCP servers connect at once, `MCP_TIMEOUT` and `MCP_TOOL_TIMEOUT` bound the waits, and nothing of them is cached",
    ),
    row(&["MCP_OAUTH_CALLBACK_PORT"], Nothing, "`whimbrel mcp add --callback-port` sets the port"),
    row(&["FORCE_PROMPT_CACHING_5M"], Nothing, "the prompt cache lasts five minutes in any case"),
    row(
        &[
            "CLAUDE_CODE_BRIDGE_SESSION_ID",
            "CLAUDE_CODE_CHILD_SESSION",
            "CLAUDE_CODE_MESSAGING_SOCKET",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_REMOTE",
            "CLAUDE_CODE_REMOTE_SESSION_ID",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_JOB_DIR",
            "CLAUDE_PID",
        ],
        Nothing,
        "the official program sets them for programs that it starts; Whimbrel neither reads nor sets them",
    ),
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

    /// Names of variables that the official program documents, one per line.
    const OFFICIAL: &str = include_str!("official_variables.txt");

    #[test]
    fn every_official_variable_is_heeded_or_has_a_row() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let page = std::fs::read_to_string(crates.join("../docs/environment.md")).unwrap();
        let (heeded, _) =
            page.split_once("## Variables of the official program that have no effect").unwrap();
        let heeded: BTreeSet<&str> = heeded
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split_once(" | "))
            .flat_map(|(names, _)| names.split(", ").map(|name| name.trim_matches('`')))
            .collect();
        let unsupported: BTreeSet<&str> =
            UNSUPPORTED.iter().flat_map(|row| row.names.iter().copied()).collect();
        for name in OFFICIAL.lines() {
            let (is_heeded, is_unsupported) = (heeded.contains(name), unsupported.contains(name));
            assert!(is_heeded != is_unsupported, "{name}: heeded {is_heeded}, unsupported {is_unsupported}");
        }
    }
}
