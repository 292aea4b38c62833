//! Where a hook comes from.

use whimbrel_config::settings::LayerSource;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookOrigin {
    pub source: HookSource,
    /// File and line or another description, for messages.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookSource {
    Settings(LayerSource),
    Plugin {
        name: String,
    },
    /// The host, with `initialize`.
    Host,
    /// Front matter of an agent definition, a command or a skill.
    FrontMatter,
}

impl HookOrigin {
    pub fn new(source: HookSource, text: impl Into<String>) -> Self {
        Self { source, text: text.into() }
    }
}

impl HookSource {
    /// Name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Settings(source) => source.name(),
            Self::Plugin { .. } => "pluginHook",
            Self::Host | Self::FrontMatter => "sessionHook",
        }
    }
}
