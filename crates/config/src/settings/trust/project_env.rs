//! Environment variables that a project may set for the engine and its commands. Pure.
//!
//! A trusted project may set variables, for example for its tests. It may never set variables that control the engine
//! or its connections, because users do not expect that in a file of the project:
//!
//! 1. the engine's own variables (`ANTHROPIC_*`, `CLAUDE_*`, `WHIMBREL_*`), except model names and harmless limits
//! 2. keys and credentials, for the model or any cloud
//! 3. proxies, addresses, certificates and telemetry: where data is sent
//! 4. code loaded into programs (`LD_*`, `NODE_OPTIONS`, `BASH_ENV`, ...), programs that are run (`PATH`, `EDITOR`,
//!    `GIT_*`, ...), and locations of configuration (`HOME`, `XDG_*`, ...): with these a command that is allowed by
//!    name would do something else

const DENIED_NAMES: &[&str] = &[
    // where data is sent
    "NODE_EXTRA_CA_CERTS",
    "NODE_TLS_REJECT_UNAUTHORIZED",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "CURL_HOME",
    "PYTHONHTTPSVERIFY",
    "RES_OPTIONS",
    "HOSTALIASES",
    "LOCALDOMAIN",
    "GOPROXY",
    "GONOSUMDB",
    "GOSUMDB",
    "GOINSECURE",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "KUBECONFIG",
    "ENABLE_TELEMETRY",
    // code that is loaded
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "BUN_OPTIONS",
    "DENO_DIR",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "PYTHONINSPECT",
    "PYTHONBREAKPOINT",
    "PYTHONWARNINGS",
    "PYTHONUSERBASE",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PERLLIB",
    "PERL5LIB",
    "PERL5OPT",
    "PERL5DB",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_PATH",
    "GEM_HOME",
    "BUNDLE_GEMFILE",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "JAVA_HOME",
    "CLASSPATH",
    "MAVEN_OPTS",
    "GRADLE_OPTS",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "GCONV_PATH",
    "LOCPATH",
    "MALLOC_CONF",
    // shells
    "BASH_ENV",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "BASHOPTS",
    "SHELLOPTS",
    "ENV",
    "ZDOTDIR",
    "IFS",
    "CDPATH",
    "GLOBIGNORE",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "INPUTRC",
    "HISTFILE",
    // programs that are run
    "PATH",
    "PATHEXT",
    "COMSPEC",
    "SHELL",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "BROWSER",
    "LESSOPEN",
    "LESSCLOSE",
    "LESSKEY",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SSH_AUTH_SOCK",
    "MAKEFLAGS",
    "GNUMAKEFLAGS",
    "MAKEFILES",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "GOFLAGS",
    "GOTOOLCHAIN",
    "TAR_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "WGETRC",
    // locations of files
    "HOME",
    "USERPROFILE",
    "TMPDIR",
    "IS_SANDBOX",
];

const DENIED_PREFIXES: &[&str] = &[
    "ANTHROPIC_",
    "CLAUDE_",
    "CLAUDECODE",
    "WHIMBREL_",
    "AWS_",
    "AZURE_",
    "GOOGLE_",
    "GCLOUD_",
    "CLOUDSDK_",
    "CLOUD_ML_",
    "VERTEX_",
    "OPENAI_",
    "MOONSHOT_",
    "OLLAMA_",
    "OTEL_",
    "SSL_",
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "GIT_",
    "XDG_",
    "NPM_CONFIG_",
    "YARN_",
    "PNPM_",
    "PIP_",
    "UV_",
    "CARGO_",
];

const DENIED_SUFFIXES: &[&str] = &[
    "_PROXY",
    "_API_KEY",
    "_AUTH_TOKEN",
    "_ACCESS_TOKEN",
    "_ACCESS_KEY",
    "_SECRET_KEY",
    "_CREDENTIALS",
    "_BASE_URL",
    "_API_BASE",
    "_CUSTOM_HEADERS",
    "_CA_BUNDLE",
    "_CA_CERTS",
    "_TELEMETRY",
];

/// Exceptions from the lists above.
const ALLOWED_NAMES: &[&str] = &[
    "ANTHROPIC_MODEL",
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR",
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_NO_INPUT",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
];

/// Whether a trusted project may set a variable. Ignores case, as some programs do.
pub(crate) fn may_project_set(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is = |list: &[&str]| list.contains(&name.as_str());
    let is_denied = is(DENIED_NAMES)
        || DENIED_PREFIXES.iter().any(|beginning| name.starts_with(beginning))
        || DENIED_SUFFIXES.iter().any(|end| name.ends_with(end));
    !is_denied || is(ALLOWED_NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn project_cannot_set_engine_connection_or_program_variables() {
        let never = "ANTHROPIC_BASE_URL ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_CUSTOM_HEADERS ANTHROPIC_BEDROCK_BASE_URL \
            OPENAI_API_KEY KIMI_API_KEY SOME_AUTH_TOKEN AWS_PROFILE AWS_SECRET_ACCESS_KEY GOOGLE_APPLICATION_CREDENTIALS \
            HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR \
            NODE_EXTRA_CA_CERTS NODE_TLS_REJECT_UNAUTHORIZED REQUESTS_CA_BUNDLE OTEL_EXPORTER_OTLP_ENDPOINT \
            CLAUDE_CODE_ENABLE_TELEMETRY DISABLE_TELEMETRY NODE_OPTIONS LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES \
            BASH_ENV ENV PATH Path SHELL HOME PYTHONPATH PERL5OPT GIT_SSH_COMMAND GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT \
            GIT_EXEC_PATH EDITOR PAGER CLAUDE_CONFIG_DIR WHIMBREL_CONFIG_DIR IS_SANDBOX CLAUDE_CODE_USE_BEDROCK \
            npm_config_script_shell PIP_INDEX_URL CARGO_BUILD_RUSTC_WRAPPER RUSTC_WRAPPER XDG_CONFIG_HOME BASH_FUNC_ls";
        for name in never.split_whitespace() {
            assert!(!may_project_set(name), "{name}");
        }
    }

    #[test]
    fn project_may_set_variables_of_its_own_programs() {
        let may = "DATABASE_URL NODE_ENV RUST_LOG RUST_BACKTRACE DEBUG PORT CI TZ LANG BASH_DEFAULT_TIMEOUT_MS \
            BASH_MAX_OUTPUT_LENGTH MAX_THINKING_TOKENS ANTHROPIC_MODEL GIT_AUTHOR_NAME CARGO_TERM_COLOR MY_PATH DJANGO_SETTINGS_MODULE";
        for name in may.split_whitespace() {
            assert!(may_project_set(name), "{name}");
        }
    }
}
