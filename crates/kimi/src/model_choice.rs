//! The model and its provider, chosen from the configuration, `--model` and the environment. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use whimbrel::model::ApiDialect;

use crate::config_file::{Config, ModelConfig, ProviderConfig, ProviderType};

/// The context window of a model that only the environment names.
const DEFAULT_WINDOW: u64 = 100_000;

/// A model that can be called.
#[derive(Clone, PartialEq)]
pub(crate) struct ModelChoice {
    pub(crate) dialect: ApiDialect,
    /// The URL for [`Provider::chat`](whimbrel::model::Provider::chat) or
    /// [`Provider::messages`](whimbrel::model::Provider::messages); see [`provider_url`].
    pub(crate) base_url: String,
    /// `None` for a server without authentication.
    pub(crate) api_key: Option<String>,
    /// The name at the provider.
    pub(crate) model: String,
    /// Tokens of the context window.
    pub(crate) window: u64,
    pub(crate) capabilities: BTreeSet<Capability>,
    pub(crate) headers: BTreeMap<String, String>,
    /// Variables that the configuration sets for the provider.
    pub(crate) env: BTreeMap<String, String>,
    /// Fields of the requests that the environment sets.
    pub(crate) request_fields: RequestFields,
    /// Whether the provider is of the type `kimi`, which gets fields that others do not know.
    pub(crate) is_kimi: bool,
}

/// What a model can do beyond text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Capability {
    ImageIn,
    VideoIn,
    Thinking,
    /// It thinks, whatever the host asks for.
    AlwaysThinking,
}

/// Fields of requests to providers of the type `kimi`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestFields {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    pub(crate) max_completion_tokens: Option<u64>,
    /// `thinking.keep`.
    pub(crate) thinking_keep: Option<String>,
}

/// Why there is no model. A prompt is answered with this text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoModel {
    #[error(
        "no model is configured. Set default_model in config.toml, or KIMI_BASE_URL, KIMI_API_KEY and KIMI_MODEL_NAME \
         in the environment."
    )]
    NotConfigured,
    #[error(
        "the configuration has no model `{0}`. Add it to models, use a name from there, or set KIMI_BASE_URL, \
         KIMI_API_KEY and KIMI_MODEL_NAME in the environment."
    )]
    UnknownModel(String),
    #[error(
        "the model `{model}` has the provider `{provider}`, which the configuration lacks. Add it to providers."
    )]
    MissingProvider { model: String, provider: String },
    #[error("the model `{model}` has no {key}. Set it in the configuration.")]
    MissingValue { model: String, key: &'static str },
    #[error(
        "the provider `{provider}` has the type `{provider_type}`, which whimbrel does not support. Use a provider of the \
         type kimi, openai_legacy or anthropic."
    )]
    UnsupportedProvider { provider: String, provider_type: String },
    #[error(
        "the provider `{provider}` uses an OAuth login, which whimbrel does not support. Set its api_key in the \
         configuration."
    )]
    OauthLogin { provider: String },
    #[error("{variable} is `{value}`, which is not a number. Correct it or unset it.")]
    InvalidVariable { variable: &'static str, value: String },
}

/// Lookup of environment variables.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Chooses the model:
/// 1. the one that the host names, else the default one of the configuration;
/// 2. if the configuration has no such model, or none is named, a model of the type `kimi` without any values;
/// 3. variables of the environment override the values: `KIMI_*` those of the type `kimi`, `OPENAI_*` those of the type
///    `openai_legacy`.
pub(crate) fn choose(
    config: &Config,
    flag_model: Option<&str>,
    env: Env<'_>,
) -> Result<ModelChoice, NoModel> {
    let name = flag_model.filter(|name| !name.is_empty()).or(config.default_model.as_deref());
    let env = |variable: &str| env(variable).filter(|value| !value.trim().is_empty());
    let Some((name, model)) = name.and_then(|name| config.models.get_key_value(name)) else {
        return choose_from_env(&env)?.ok_or_else(|| match name {
            Some(name) => NoModel::UnknownModel(name.to_owned()),
            None => NoModel::NotConfigured,
        });
    };
    let provider = config
        .providers
        .get(&model.provider)
        .ok_or_else(|| NoModel::MissingProvider { model: name.clone(), provider: model.provider.clone() })?;
    let choice = choose_configured(model, provider, &env)?;
    if choice.base_url.is_empty() {
        return Err(NoModel::MissingValue { model: name.clone(), key: "base_url" });
    }
    if choice.model.is_empty() {
        return Err(NoModel::MissingValue { model: name.clone(), key: "model" });
    }
    if choice.api_key.is_none() && provider.oauth.is_some() {
        return Err(NoModel::OauthLogin { provider: model.provider.clone() });
    }
    Ok(choice)
}

/// Takes the whole model from the environment; `None` if a value that it needs is missing.
fn choose_from_env(env: Env<'_>) -> Result<Option<ModelChoice>, NoModel> {
    let model = ModelConfig {
        provider: String::new(),
        model: String::new(),
        max_context_size: DEFAULT_WINDOW,
        capabilities: None,
    };
    let provider = ProviderConfig {
        provider_type: ProviderType::Kimi,
        base_url: String::new(),
        api_key: String::new(),
        env: None,
        custom_headers: None,
        oauth: None,
    };
    let choice = choose_configured(&model, &provider, env)?;
    Ok(Some(choice).filter(|choice| !choice.base_url.is_empty() && !choice.model.is_empty()))
}

fn choose_configured(
    model: &ModelConfig,
    provider: &ProviderConfig,
    env: Env<'_>,
) -> Result<ModelChoice, NoModel> {
    let (dialect, prefix) = match &provider.provider_type {
        ProviderType::Kimi => (ApiDialect::Chat, Some("KIMI")),
        ProviderType::OpenaiLegacy => (ApiDialect::Chat, Some("OPENAI")),
        ProviderType::Anthropic => (ApiDialect::Messages, None),
        ProviderType::Other(name) => {
            return Err(NoModel::UnsupportedProvider {
                provider: model.provider.clone(),
                provider_type: name.clone(),
            });
        }
    };
    let override_of = |name: &str| prefix.and_then(|prefix| env(&format!("{prefix}_{name}")));
    let is_kimi = provider.provider_type == ProviderType::Kimi;
    let kimi = |variable: &str| if is_kimi { env(variable) } else { None };
    let base_url = override_of("BASE_URL").unwrap_or_else(|| provider.base_url.clone());
    let api_key = override_of("API_KEY").unwrap_or_else(|| provider.api_key.clone());
    let name = kimi("KIMI_MODEL_NAME").unwrap_or_else(|| model.model.clone());
    let capabilities = match kimi("KIMI_MODEL_CAPABILITIES") {
        Some(names) => parse_capabilities(names.split(',')),
        None => parse_capabilities(model.capabilities.iter().flatten().map(String::as_str)),
    };
    Ok(ModelChoice {
        dialect,
        base_url: provider_url(dialect, &base_url),
        api_key: Some(api_key).filter(|key| !key.trim().is_empty()),
        window: read_number(&kimi, "KIMI_MODEL_MAX_CONTEXT_SIZE")?.unwrap_or(model.max_context_size),
        capabilities: &capabilities | &known_capabilities(&name),
        model: name,
        headers: provider.custom_headers.clone().unwrap_or_default(),
        env: provider.env.clone().unwrap_or_default(),
        request_fields: read_request_fields(&kimi)?,
        is_kimi,
    })
}

/// Returns the URL to give to the provider. kimi-cli calls BASE + `/chat/completions`, whatever BASE is, but
/// `Provider::chat` adds `/v1` to a BASE without a path; it takes a URL that ends with `/chat/completions` as it is, so that
/// is what it gets. `Provider::messages` adds `/v1/messages` to a BASE with or without `/v1` by itself.
fn provider_url(dialect: ApiDialect, base: &str) -> String {
    const PATH: &str = "/chat/completions";
    let base = base.trim();
    let (path, query) = base.split_at(base.find('?').unwrap_or(base.len()));
    let path = path.trim_end_matches('/');
    match dialect {
        ApiDialect::Chat if !path.is_empty() && !path.ends_with(PATH) => format!("{path}{PATH}{query}"),
        ApiDialect::Chat | ApiDialect::Messages => base.to_owned(),
    }
}

/// Parses names of capabilities; unknown ones are left out.
fn parse_capabilities<'a>(names: impl Iterator<Item = &'a str>) -> BTreeSet<Capability> {
    names
        .filter_map(|name| match name.trim().to_ascii_lowercase().as_str() {
            "image_in" => Some(Capability::ImageIn),
            "video_in" => Some(Capability::VideoIn),
            "thinking" => Some(Capability::Thinking),
            "always_thinking" => Some(Capability::AlwaysThinking),
            _ => None,
        })
        .collect()
}

/// Returns what kimi-cli knows of a model by its name.
fn known_capabilities(model: &str) -> BTreeSet<Capability> {
    let lower = model.to_lowercase();
    if lower.contains("thinking") || lower.contains("reason") {
        return BTreeSet::from([Capability::Thinking, Capability::AlwaysThinking]);
    }
    match model {
        "kimi-for-coding" | "kimi-code" => {
            BTreeSet::from([Capability::Thinking, Capability::ImageIn, Capability::VideoIn])
        }
        _ => BTreeSet::new(),
    }
}

fn read_request_fields(env: Env<'_>) -> Result<RequestFields, NoModel> {
    let max_completion_tokens = match read_number(env, "KIMI_MODEL_MAX_COMPLETION_TOKENS")? {
        Some(number) => Some(number),
        None => read_number(env, "KIMI_MODEL_MAX_TOKENS")?,
    };
    Ok(RequestFields {
        temperature: read_number(env, "KIMI_MODEL_TEMPERATURE")?,
        top_p: read_number(env, "KIMI_MODEL_TOP_P")?,
        max_completion_tokens,
        thinking_keep: env("KIMI_MODEL_THINKING_KEEP"),
    })
}

fn read_number<T: FromStr>(env: Env<'_>, variable: &'static str) -> Result<Option<T>, NoModel> {
    let Some(value) = env(variable) else { return Ok(None) };
    let number = value.trim().parse().map(Some);
    number.map_err(|_| NoModel::InvalidVariable { variable, value })
}

/// Without the key, the headers and the variables, which may be secrets.
impl fmt::Debug for ModelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelChoice")
            .field("dialect", &self.dialect)
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("window", &self.window)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    const KIMI: Variables =
        &[("KIMI_BASE_URL", "http://env/v1"), ("KIMI_API_KEY", "env-key"), ("KIMI_MODEL_NAME", "env-model")];

    fn config() -> Config {
        toml::from_str(
            r#"
            default_model = "kimi"
            models.kimi = { provider = "kimi", model = "k2", max_context_size = 1000, capabilities = ["image_in", "x"] }
            models.chat = { provider = "chat", model = "gpt", max_context_size = 2000 }
            models.claude = { provider = "claude", model = "claude-mock", max_context_size = 3000 }
            models.google = { provider = "google", model = "g", max_context_size = 1 }
            models.login = { provider = "login", model = "kimi-for-coding", max_context_size = 1 }
            models.lost = { provider = "lost", model = "x", max_context_size = 1 }
            models.blank = { provider = "blank", model = "x", max_context_size = 1 }
            [providers]
            kimi = { type = "kimi", base_url = "http://file/v1", api_key = "file-key", custom_headers = { A = "b" } }
            chat = { type = "openai_legacy", base_url = "http://chat", api_key = "", env = { V = "w" } }
            claude = { type = "anthropic", base_url = "http://claude/", api_key = "file-key" }
            google = { type = "vertexai", base_url = "", api_key = "" }
            login = { type = "kimi", base_url = "http://file", api_key = "", oauth = { storage = "file", key = "k" } }
            blank = { type = "kimi", base_url = "", api_key = "" }
            "#,
        )
        .unwrap()
    }

    fn choose_with(
        config: &Config,
        model: Option<&str>,
        variables: Variables,
    ) -> Result<ModelChoice, NoModel> {
        let find = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        choose(config, model, &|name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    fn kimi(base_url: &str, key: &str, model: &str, window: u64) -> ModelChoice {
        ModelChoice {
            dialect: ApiDialect::Chat,
            base_url: base_url.into(),
            api_key: Some(key.into()),
            model: model.into(),
            window,
            capabilities: BTreeSet::new(),
            headers: BTreeMap::new(),
            env: BTreeMap::new(),
            request_fields: RequestFields::default(),
            is_kimi: true,
        }
    }

    #[test]
    fn model_comes_from_flag_file_and_environment() {
        let (of_file, of_env) = ("http://file/v1/chat/completions", "http://env/v1/chat/completions");
        let a_header = || BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let default = ModelChoice {
            capabilities: BTreeSet::from([Capability::ImageIn]),
            headers: a_header(),
            ..kimi(of_file, "file-key", "k2", 1000)
        };
        let chat = ModelChoice {
            api_key: None,
            env: BTreeMap::from([("V".into(), "w".into())]),
            is_kimi: false,
            ..kimi("http://chat/chat/completions", "", "gpt", 2000)
        };
        let claude = ModelChoice {
            dialect: ApiDialect::Messages,
            is_kimi: false,
            ..kimi("http://claude/", "file-key", "claude-mock", 3000)
        };
        let overridden = ModelChoice {
            base_url: of_env.into(),
            api_key: Some("env-key".into()),
            model: "env-model".into(),
            ..default.clone()
        };
        let from_env = kimi(of_env, "env-key", "env-model", 100_000);
        let table: Vec<(&str, Option<&str>, Variables, ModelChoice)> = vec![
            ("default model", None, &[], default.clone()),
            ("named model", Some("chat"), &[], chat.clone()),
            ("empty name", Some(""), &[], default.clone()),
            ("empty variables", None, &[("KIMI_BASE_URL", ""), ("KIMI_MODEL_NAME", " ")], default),
            ("variables override", None, KIMI, overridden),
            ("unknown name: only variables", Some("unlisted"), KIMI, from_env),
            ("variables of kimi do not override openai_legacy", Some("chat"), KIMI, chat.clone()),
            (
                "variables of OpenAI override openai_legacy",
                Some("chat"),
                &[("OPENAI_BASE_URL", "http://o/v1/"), ("OPENAI_API_KEY", "o-key")],
                ModelChoice {
                    base_url: "http://o/v1/chat/completions".into(),
                    api_key: Some("o-key".into()),
                    ..chat
                },
            ),
            ("nothing overrides anthropic", Some("claude"), KIMI, claude),
            (
                "a key instead of a login",
                Some("login"),
                &[("KIMI_API_KEY", "env-key")],
                ModelChoice {
                    capabilities: BTreeSet::from([
                        Capability::ImageIn,
                        Capability::VideoIn,
                        Capability::Thinking,
                    ]),
                    ..kimi("http://file/chat/completions", "env-key", "kimi-for-coding", 1)
                },
            ),
        ];
        for (name, model, variables, expected) in table {
            let choice = choose_with(&config(), model, variables).unwrap();
            // The comparison includes what `Debug` leaves out.
            assert!(choice == expected, "{name}: {choice:?} instead of {expected:?}");
        }
    }

    #[test]
    fn environment_is_enough() {
        let variables: Variables = &[
            ("KIMI_BASE_URL", "http://env/v1"),
            ("KIMI_MODEL_NAME", "k2-thinking"),
            ("KIMI_MODEL_MAX_CONTEXT_SIZE", "500"),
            ("KIMI_MODEL_CAPABILITIES", "image_in, VIDEO_IN,,telepathy"),
            ("KIMI_MODEL_TEMPERATURE", "0.5"),
            ("KIMI_MODEL_TOP_P", "1"),
            ("KIMI_MODEL_MAX_TOKENS", "64"),
            ("KIMI_MODEL_THINKING_KEEP", "all"),
        ];
        let expected = ModelChoice {
            api_key: None,
            capabilities: BTreeSet::from([
                Capability::ImageIn,
                Capability::VideoIn,
                Capability::Thinking,
                Capability::AlwaysThinking,
            ]),
            request_fields: RequestFields {
                temperature: Some(0.5),
                top_p: Some(1.0),
                max_completion_tokens: Some(64),
                thinking_keep: Some("all".into()),
            },
            ..kimi("http://env/v1/chat/completions", "", "k2-thinking", 500)
        };
        assert!(choose_with(&Config::default(), None, variables).unwrap() == expected);
    }

    #[test]
    fn missing_model_has_a_reason_and_a_remedy() {
        let table: &[(&str, Option<&str>, Variables, &str)] = &[
            ("unknown name", Some("unlisted"), &[], "no model `unlisted`"),
            (
                "unknown name, some variables",
                Some("unlisted"),
                &[("KIMI_BASE_URL", "http://x")],
                "no model `unlisted`",
            ),
            ("lost provider", Some("lost"), KIMI, "the provider `lost`, which the configuration lacks"),
            ("provider without a URL", Some("blank"), &[], "the model `blank` has no base_url"),
            ("other API", Some("google"), KIMI, "the type `vertexai`, which whimbrel does not support"),
            ("login", Some("login"), &[], "Set its api_key"),
            (
                "window in words",
                None,
                &[("KIMI_MODEL_MAX_CONTEXT_SIZE", "big")],
                "KIMI_MODEL_MAX_CONTEXT_SIZE is `big`",
            ),
        ];
        for (name, model, variables, expected) in table {
            let text = choose_with(&config(), *model, variables).unwrap_err().to_string();
            assert!(text.contains(expected), "{name}: {text}");
        }
        let nothing = choose_with(&Config::default(), None, &[]).unwrap_err();
        assert_eq!(nothing, NoModel::NotConfigured);
        let unknown_default = Config { default_model: Some("gone".into()), ..Config::default() };
        assert_eq!(choose_with(&unknown_default, None, &[]), Err(NoModel::UnknownModel("gone".into())));
    }

    #[test]
    fn base_url_is_completed_as_the_provider_expects() {
        let chat = [
            ("http://host", "http://host/chat/completions"),
            ("http://host/v1/", "http://host/v1/chat/completions"),
            (" https://host/v1 ", "https://host/v1/chat/completions"),
            ("http://host/d?api-version=1", "http://host/d/chat/completions?api-version=1"),
            ("http://host/v1/chat/completions", "http://host/v1/chat/completions"),
            ("", ""),
        ];
        for (base, expected) in chat {
            assert_eq!(provider_url(ApiDialect::Chat, base), expected);
        }
        assert_eq!(provider_url(ApiDialect::Messages, "https://host/v1"), "https://host/v1");
    }

    #[test]
    fn secrets_are_not_printed() {
        let text = format!("{:?}", choose_with(&config(), None, KIMI).unwrap());
        assert!(text.contains("env-model") && !text.contains("env-key"), "{text}");
    }
}
