//! The key that a session calls its model with: which provider, and where the key comes from. Keys are never shown.

use whimbrel_models::key_source::API_KEY_HELPER;
use whimbrel_models::providers::ApiDialect;

use crate::environment::Env;
use crate::serve_session::PreparedSession;

/// Credentials of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) model: String,
    pub(crate) provider: Provider,
    pub(crate) key: KeyOrigin,
}

/// Provider of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Provider {
    /// The Messages API.
    Messages,
    /// A Chat Completions server.
    Chat,
    /// A script; nothing is called.
    Script,
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOrigin {
    /// A variable of the environment.
    Environment(String),
    /// A variable that the settings set (`env`).
    Settings(String),
    /// A command of the settings (`apiKeyHelper`).
    Helper,
    /// The provider may work without one.
    NotRequired,
    /// There is none, and one is required.
    Missing,
}

impl Provider {
    /// Name for users.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Messages => "Messages API",
            Self::Chat => "Chat Completions",
            Self::Script => "script",
        }
    }

    /// Name in JSON.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Messages => "firstParty",
            Self::Chat => "openai",
            Self::Script => "scripted",
        }
    }

    /// Variable with the address of the server.
    pub(crate) fn url_variable(self) -> Option<&'static str> {
        match self {
            Self::Messages => Some("ANTHROPIC_BASE_URL"),
            Self::Chat => Some("OPENAI_BASE_URL"),
            Self::Script => None,
        }
    }
}

impl KeyOrigin {
    /// Name of the variable or setting.
    pub(crate) fn source(&self) -> Option<&str> {
        match self {
            Self::Environment(variable) | Self::Settings(variable) => Some(variable),
            Self::Helper => Some(API_KEY_HELPER),
            Self::NotRequired | Self::Missing => None,
        }
    }

    /// Description for users.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Environment(variable) => format!("{variable} of the environment"),
            Self::Settings(variable) => format!("{variable} in `env` of the settings"),
            Self::Helper => format!("the command {API_KEY_HELPER} of the settings"),
            Self::NotRequired => "none, and none is required".into(),
            Self::Missing => "none".into(),
        }
    }
}

/// Determines the credentials of a session. `env` is the environment before the settings were added.
pub(crate) fn find_credentials(session: &PreparedSession, env: &Env) -> Credentials {
    let model = session.effective_model();
    let providers = session.engine.providers();
    let provider = match providers.dialect(&model) {
        Some(ApiDialect::Messages) => Provider::Messages,
        Some(ApiDialect::Chat) => Provider::Chat,
        None => Provider::Script,
    };
    let variable = match provider {
        Provider::Messages => Some(providers.key_source()).filter(|variable| *variable != "none"),
        Provider::Chat => Some("OPENAI_API_KEY").filter(|variable| is_set(&session.request.env, variable)),
        Provider::Script => None,
    };
    let key = match (variable, provider) {
        (Some(variable), _) if is_set(env, variable) => KeyOrigin::Environment(variable.to_owned()),
        (Some(variable), _) => KeyOrigin::Settings(variable.to_owned()),
        (None, Provider::Messages) if session.has_key_helper() => KeyOrigin::Helper,
        (None, Provider::Messages) => KeyOrigin::Missing,
        (None, Provider::Chat | Provider::Script) => KeyOrigin::NotRequired,
    };
    Credentials { model, provider, key }
}

fn is_set(env: &Env, variable: &str) -> bool {
    env.get(variable).is_some_and(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::options::Options;

    use super::*;

    #[test]
    fn key_and_its_origin_are_found() {
        type Row<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, Provider, KeyOrigin);
        let variable = |name: &str| KeyOrigin::Environment(name.into());
        let helper = r#"{"apiKeyHelper": "echo key"}"#;
        let by_settings = r#"{"env": {"ANTHROPIC_API_KEY": "k"}}"#;
        let rows: [Row<'_>; 8] = [
            ("nothing", "opus", &[], "{}", Provider::Messages, KeyOrigin::Missing),
            (
                "a blank key",
                "opus",
                &[("ANTHROPIC_API_KEY", " ")],
                "{}",
                Provider::Messages,
                KeyOrigin::Missing,
            ),
            (
                "a key",
                "opus",
                &[("ANTHROPIC_API_KEY", "k")],
                "{}",
                Provider::Messages,
                variable("ANTHROPIC_API_KEY"),
            ),
            ("a helper", "opus", &[], helper, Provider::Messages, KeyOrigin::Helper),
            (
                "the settings",
                "opus",
                &[],
                by_settings,
                Provider::Messages,
                KeyOrigin::Settings("ANTHROPIC_API_KEY".into()),
            ),
            ("another provider", "openai:x", &[], "{}", Provider::Chat, KeyOrigin::NotRequired),
            (
                "its key",
                "openai:x",
                &[("OPENAI_API_KEY", "k")],
                "{}",
                Provider::Chat,
                variable("OPENAI_API_KEY"),
            ),
            ("a script", "scripted:/a.json", &[], "{}", Provider::Script, KeyOrigin::NotRequired),
        ];
        for (name, model, env, settings, provider, key) in rows {
            let env: Env =
                env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            let options = Options {
                model: Some(model.into()),
                settings: Some(settings.into()),
                setting_sources: Some(Vec::new()),
                ..Options::default()
            };
            let found = find_credentials(&PreparedSession::new(options, env.clone()), &env);
            assert_eq!((found.provider, found.key), (provider, key), "{name}");
        }
    }
}
