//! The configuration of kimi-cli: `config.toml` of the share directory, a file of the host, or the text of `--config`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::{fmt, fs, io};

use serde::{Deserialize, Deserializer};

use crate::command_line::{ConfigSource, UsageError};

const FILE_NAME: &str = "config.toml";
const DEFAULT_TOOL_CALL_TIMEOUT_MS: u32 = 60_000;
/// In seconds.
const DEFAULT_HOOK_TIMEOUT: NonZeroU32 = match NonZeroU32::new(30) {
    Some(seconds) => seconds,
    None => NonZeroU32::MIN,
};

/// What this program uses of a configuration. Other keys are ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    /// A key of `models`.
    #[serde(deserialize_with = "none_if_empty")]
    pub(crate) default_model: Option<String>,
    pub(crate) default_thinking: bool,
    pub(crate) default_yolo: bool,
    /// Whether new sessions start in plan mode.
    pub(crate) default_plan_mode: bool,
    pub(crate) models: BTreeMap<String, ModelConfig>,
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    pub(crate) loop_control: LoopControl,
    pub(crate) mcp: McpConfig,
    pub(crate) hooks: Vec<HookConfig>,
}

/// A model under the name that users choose it by.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct ModelConfig {
    /// A key of `providers`.
    pub(crate) provider: String,
    /// The name at the provider.
    pub(crate) model: String,
    /// Tokens of the context window.
    pub(crate) max_context_size: u64,
    /// Names such as `thinking` and `image_in`.
    #[serde(default)]
    pub(crate) capabilities: Option<Vec<String>>,
}

#[derive(Clone, PartialEq, Deserialize)]
pub(crate) struct ProviderConfig {
    #[serde(rename = "type")]
    pub(crate) provider_type: ProviderType,
    #[serde(default)]
    pub(crate) base_url: String,
    #[serde(default)]
    pub(crate) api_key: String,
    #[serde(default)]
    pub(crate) env: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub(crate) custom_headers: Option<BTreeMap<String, String>>,
    /// Where kimi-cli keeps the tokens of a login.
    #[serde(default)]
    pub(crate) oauth: Option<serde_json::Value>,
}

/// The API that a provider speaks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub(crate) enum ProviderType {
    Kimi,
    OpenaiLegacy,
    Anthropic,
    /// One that this program does not speak, or does not know.
    Other(String),
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LoopControl {
    #[serde(alias = "max_steps_per_run")]
    pub(crate) max_steps_per_turn: Option<NonZeroU32>,
    pub(crate) max_retries_per_step: Option<NonZeroU32>,
    /// Zero, or the configuration is refused.
    #[serde(deserialize_with = "no_ralph_loops")]
    max_ralph_iterations: (),
    /// The part of the window that starts a compaction, from 0 to 1.
    pub(crate) compaction_trigger_ratio: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct McpConfig {
    pub(crate) client: McpClientConfig,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct McpClientConfig {
    pub(crate) tool_call_timeout_ms: u32,
}

/// A command that runs at an event.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct HookConfig {
    pub(crate) event: String,
    pub(crate) command: String,
    /// A regular expression that is searched for in the target; empty for all targets.
    #[serde(default)]
    pub(crate) matcher: String,
    /// In seconds.
    #[serde(default = "default_hook_timeout")]
    pub(crate) timeout: NonZeroU32,
}

/// The syntax of a configuration.
#[derive(Debug, Clone, Copy)]
enum Syntax {
    Json,
    Toml,
}

impl Config {
    /// Reads the configuration. A missing `config.toml` of the share directory is an empty one; other missing files are
    /// errors.
    pub(crate) fn read(source: &ConfigSource, share_dir: &Path) -> Result<Self, UsageError> {
        match source {
            ConfigSource::Text(text) => {
                let syntax = if text.trim_start().starts_with('{') { Syntax::Json } else { Syntax::Toml };
                Self::parse(text, syntax).map_err(|cause| {
                    UsageError::new(format!(
                        "cannot read the value of --config: {cause}. Pass valid JSON or TOML."
                    ))
                })
            }
            ConfigSource::File(path) => Self::read_file(path, fs::read_to_string(path)),
            ConfigSource::ShareDir => {
                let path = share_dir.join(FILE_NAME);
                match fs::read_to_string(&path) {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
                    read => Self::read_file(&path, read),
                }
            }
        }
    }

    fn read_file(path: &Path, read: io::Result<String>) -> Result<Self, UsageError> {
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let syntax = if is_json { Syntax::Json } else { Syntax::Toml };
        let parsed = read.map_err(|error| error.to_string()).and_then(|text| Self::parse(&text, syntax));
        parsed.map_err(|cause| {
            UsageError::new(format!(
                "cannot read {}: {cause}. Fix the file, or name another one with --config-file.",
                path.display()
            ))
        })
    }

    /// Parses a text. The error names the line and does not quote it, because it may hold a key.
    fn parse(text: &str, syntax: Syntax) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match syntax {
            Syntax::Json => serde_json::from_str(text).map_err(|error| error.to_string()),
            Syntax::Toml => toml::from_str(text).map_err(|error| {
                let start = error.span().map_or(0, |span| span.start);
                let line = text.bytes().take(start).filter(|&byte| byte == b'\n').count() + 1;
                format!("line {line}: {}", error.message().trim_end())
            }),
        }
    }
}

impl Default for McpClientConfig {
    fn default() -> Self {
        Self { tool_call_timeout_ms: DEFAULT_TOOL_CALL_TIMEOUT_MS }
    }
}

impl From<String> for ProviderType {
    fn from(name: String) -> Self {
        match name.as_str() {
            "kimi" => Self::Kimi,
            "openai_legacy" => Self::OpenaiLegacy,
            "anthropic" => Self::Anthropic,
            _ => Self::Other(name),
        }
    }
}

/// Without the key, the headers and the variables, which may be secrets.
impl fmt::Debug for ProviderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderConfig")
            .field("provider_type", &self.provider_type)
            .field("base_url", &self.base_url)
            .finish_non_exhaustive()
    }
}

fn none_if_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Option::deserialize(deserializer)?.filter(|text: &String| !text.is_empty()))
}

fn no_ralph_loops<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match i64::deserialize(deserializer)? {
        0 => Ok(()),
        number => Err(serde::de::Error::custom(format!(
            "max_ralph_iterations is {number}, but whimbrel has no ralph loops: set it to 0"
        ))),
    }
}

fn default_hook_timeout() -> NonZeroU32 {
    DEFAULT_HOOK_TIMEOUT
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use serde_json::json;

    use super::*;

    const FULL: &str = r#"
        default_model = "main"
        default_thinking = true
        default_yolo = true
        telemetry = false

        [models.main]
        provider = "p"
        model = "kimi-k2"
        max_context_size = 262144
        capabilities = ["thinking"]
        display_name = "K2"

        [models."gpt-4.1"]
        provider = "o"
        model = "gpt-4.1"
        max_context_size = 1000

        [providers.p]
        type = "kimi"
        base_url = "https://api.test/v1"
        api_key = "sk-secret"
        custom_headers = { X-Team = "42" }

        [providers.o]
        type = "telepathy"
        oauth = { storage = "file", key = "k" }

        [loop_control]
        max_steps_per_run = 7
        max_ralph_iterations = 0
        compaction_trigger_ratio = 0.5

        [mcp.client]
        tool_call_timeout_ms = 1000

        [services.moonshot_search]
        base_url = "https://search.test"

        [[hooks]]
        event = "PreToolUse"
        command = "check"
        matcher = "Shell"
        timeout = 10

        [[hooks]]
        event = "Stop"
        command = "done"
    "#;

    fn full() -> Config {
        let provider = |provider_type| ProviderConfig {
            provider_type,
            base_url: String::new(),
            api_key: String::new(),
            env: None,
            custom_headers: None,
            oauth: None,
        };
        let hook = |event: &str, command: &str, matcher: &str, timeout| HookConfig {
            event: event.into(),
            command: command.into(),
            matcher: matcher.into(),
            timeout: NonZeroU32::new(timeout).unwrap(),
        };
        Config {
            default_model: Some("main".into()),
            default_thinking: true,
            default_yolo: true,
            default_plan_mode: false,
            models: BTreeMap::from([
                (
                    "gpt-4.1".into(),
                    ModelConfig {
                        provider: "o".into(),
                        model: "gpt-4.1".into(),
                        max_context_size: 1000,
                        capabilities: None,
                    },
                ),
                (
                    "main".into(),
                    ModelConfig {
                        provider: "p".into(),
                        model: "kimi-k2".into(),
                        max_context_size: 262_144,
                        capabilities: Some(vec!["thinking".into()]),
                    },
                ),
            ]),
            providers: BTreeMap::from([
                (
                    "o".into(),
                    ProviderConfig {
                        oauth: Some(json!({"storage": "file", "key": "k"})),
                        ..provider(ProviderType::Other("telepathy".into()))
                    },
                ),
                (
                    "p".into(),
                    ProviderConfig {
                        base_url: "https://api.test/v1".into(),
                        api_key: "sk-secret".into(),
                        custom_headers: Some(BTreeMap::from([("X-Team".into(), "42".into())])),
                        ..provider(ProviderType::Kimi)
                    },
                ),
            ]),
            loop_control: LoopControl {
                max_steps_per_turn: NonZeroU32::new(7),
                compaction_trigger_ratio: Some(0.5),
                ..LoopControl::default()
            },
            mcp: McpConfig { client: McpClientConfig { tool_call_timeout_ms: 1000 } },
            hooks: vec![hook("PreToolUse", "check", "Shell", 10), hook("Stop", "done", "", 30)],
        }
    }

    fn read_text(text: &str) -> Result<Config, String> {
        let source = ConfigSource::Text(text.into());
        Config::read(&source, Path::new("/none")).map_err(|error| error.to_string())
    }

    #[test]
    fn all_keys_are_read_from_toml_and_json() {
        assert_eq!(read_text(FULL).unwrap(), full());
        let value: toml::Table = toml::from_str(FULL).unwrap();
        assert_eq!(read_text(&serde_json::to_string(&value).unwrap()).unwrap(), full());
    }

    #[test]
    fn secrets_are_not_printed() {
        let text = format!("{:?}", full());
        assert!(text.contains("api.test") && !text.contains("sk-secret") && !text.contains("42\""), "{text}");
    }

    #[test]
    fn ending_of_a_file_decides() {
        let dir = tempfile::tempdir().unwrap();
        let table = [
            ("c.json", r#"{"default_model": "a"}"#, true),
            ("c.JSON", r#"{"default_model": "a"}"#, true),
            ("c.toml", "default_model = \"a\"", true),
            ("c", "\u{feff}default_model = \"a\"", true),
            ("wrong.json", "default_model = \"a\"", false),
            ("wrong.toml", r#"{"default_model": "a"}"#, false),
        ];
        for (name, text, is_valid) in table {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            let read = Config::read(&ConfigSource::File(path), dir.path());
            let expected = Config { default_model: Some("a".into()), ..Config::default() };
            assert_eq!(read.ok(), is_valid.then_some(expected), "{name}");
        }
    }

    #[test]
    fn share_directory_may_have_no_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let read = |source: &ConfigSource| Config::read(source, dir.path());
        assert_eq!(read(&ConfigSource::ShareDir), Ok(Config::default()));
        fs::write(dir.path().join("config.toml"), "default_yolo = true\ndefault_model = ''").unwrap();
        let expected = Config { default_yolo: true, ..Config::default() };
        assert_eq!(read(&ConfigSource::ShareDir), Ok(expected));
        let missing = read(&ConfigSource::File(PathBuf::from("/no/such.toml"))).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read /no/such.toml: "), "{missing}");
    }

    #[test]
    fn errors_name_the_line_and_do_not_quote_it() {
        let table = [
            ("bad JSON", "{bad", "line 1 column 2"),
            ("bad TOML", "a = 1\nb = = 2", "line 2: "),
            ("wrong type in TOML", "default_yolo = 'yes'", "line 1: "),
            ("wrong type in JSON", r#"{"models": []}"#, "line 1 column"),
            (
                "model without a provider",
                "\n[models.a]\nmodel = 'm'\nmax_context_size = 1",
                "missing field `provider`",
            ),
            ("no steps", "[loop_control]\nmax_steps_per_turn = 0", "line 2: "),
            ("ralph loops", "[loop_control]\nmax_ralph_iterations = 3", "set it to 0"),
            ("hook without a time", "[[hooks]]\nevent = 'Stop'\ncommand = 'x'\ntimeout = 0", "line 4: "),
        ];
        for (name, text, expected) in table {
            let error = read_text(text).unwrap_err();
            assert!(error.starts_with("cannot read the value of --config: "), "{name}: {error}");
            assert!(error.contains(expected), "{name}: {error}");
        }
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.toml"), "a = 1\napi_key = sk-secret").unwrap();
        let error = Config::read(&ConfigSource::ShareDir, dir.path()).unwrap_err().to_string();
        assert!(error.contains("config.toml: line 2: ") && !error.contains("sk-secret"), "{error}");
    }
}
