//! Extensions of a session: plugins, commands, skills, output styles, and hooks of plugins. Discovered at the start and
//! again when the host asks for a reload.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_config::locations::ConfigLocations;
use whimbrel_config::output_styles::{DEFAULT_STYLE, OutputStyle, OutputStyles};
use whimbrel_config::plugins::enabled::EnabledPlugins;
use whimbrel_config::plugins::records::PluginDir;
use whimbrel_config::plugins::{Plugins, ROOT_VARIABLE};
use whimbrel_config::settings::Settings;
use whimbrel_config::settings::http_hooks::{Authority, HttpHookLimits};
use whimbrel_config::settings::managed_policy::are_plugin_hooks_enabled;
use whimbrel_tools::hooks::{HookOrigin, HookSet, HookSource};
use whimbrel_wire::options::{Options, PluginConfig, ToolSet};
use whimbrel_wire::tool_names::SKILL;

use super::Setup;
use super::hooks::{self, HookToAdd};
use crate::agents::tools::SkillTool;
use crate::commands::Commands;
use crate::skills::Skills;

pub struct Extensions {
    pub plugins: Plugins,
    /// Commands that the model may call.
    pub skills: Skills,
    pub styles: OutputStyles,
    /// The active output style; `None` for the default.
    pub style: Option<Arc<OutputStyle>>,
    /// Name that the settings ask for, whether or not there is such a style.
    requested_style: Option<String>,
    /// The Skill tool is in the tool set that the host asked for.
    skill_tool_enabled: bool,
    /// Slash commands are disabled: text with a slash is a plain prompt.
    commands_disabled: bool,
    /// Hooks of plugins run.
    hooks_enabled: bool,
    /// Limits on the URLs of their HTTP hooks.
    http_limits: HttpHookLimits,
    /// Plugins that the settings enable.
    enabled_plugins: EnabledPlugins,
    /// Plugin directory of the user.
    plugin_dir: Option<PluginDir>,
    /// Base of relative paths.
    cwd: PathBuf,
    /// Warnings that the host has already received.
    reported_warnings: Vec<String>,
}

pub(super) struct FoundExtensions {
    pub(super) extensions: Extensions,
    pub(super) commands: Commands,
    pub(super) hooks: HookSet,
    pub(super) warnings: Vec<String>,
}

/// Discovers the extensions that options and settings name. Reads files.
pub(super) fn find_extensions(
    options: &Options,
    env: &BTreeMap<String, String>,
    settings: &Settings,
    locations: &ConfigLocations,
) -> FoundExtensions {
    let cwd: &Path = &locations.working_dir;
    let plugin_dir = PluginDir::from_env(env);
    let enabled_plugins = EnabledPlugins::from_settings(settings, plugin_dir.clone());
    let plugins = Plugins::load(&options.plugins, &enabled_plugins, cwd);
    let commands_disabled = options.extra_args.contains_key("disable-slash-commands");
    let (commands, mut warnings) = find_commands(locations, &plugins, commands_disabled);
    let (styles, style_warnings) = OutputStyles::discover(locations, &plugins);
    warnings.extend(style_warnings);
    warnings.extend(plugins.errors().iter().map(|error| error.message.clone()));
    let mut extensions = Extensions {
        skills: Skills::new(&commands, options.skills.clone(), locations.trust),
        skill_tool_enabled: is_skill_tool_enabled(options.tools.as_ref()),
        commands_disabled,
        hooks_enabled: are_plugin_hooks_enabled(settings.layers()),
        http_limits: settings.effective().http_limits.clone(),
        enabled_plugins,
        plugin_dir,
        cwd: cwd.into(),
        reported_warnings: warnings.clone(),
        style: None,
        requested_style: None,
        styles,
        plugins,
    };
    warnings.extend(extensions.select_style(settings.effective().typed.output_style.as_deref()));
    let (hooks, hook_warnings) = extensions.hooks(|_| true);
    warnings.extend(hook_warnings);
    FoundExtensions { extensions, commands, hooks, warnings }
}

fn find_commands(
    locations: &ConfigLocations,
    plugins: &Plugins,
    commands_disabled: bool,
) -> (Commands, Vec<String>) {
    match commands_disabled {
        true => (Commands::none(), Vec::new()),
        false => Commands::discover(locations, plugins),
    }
}

fn is_skill_tool_enabled(tools: Option<&ToolSet>) -> bool {
    match tools {
        None | Some(ToolSet::Default) => true,
        Some(ToolSet::List(names)) => names.iter().any(|name| name == SKILL || name == "SlashCommand"),
    }
}

impl Extensions {
    /// Activates an output style. Returns what is wrong with the name.
    pub fn select_style(&mut self, name: Option<&str>) -> Option<String> {
        let (style, error) = match self.styles.select(name) {
            Ok(style) => (style, None),
            Err(text) => (None, Some(text)),
        };
        self.style = style;
        self.requested_style = name.map(str::to_owned);
        error
    }

    /// Name of the output style as the settings have it. Hosts compare it with the setting, so it is not replaced by the
    /// name of the style that is used.
    pub fn style_name(&self) -> &str {
        self.requested_style.as_deref().unwrap_or(DEFAULT_STYLE)
    }

    pub fn has_plugins(&self, configs: &[PluginConfig]) -> bool {
        self.plugins.contains_all(configs, &self.cwd)
    }

    /// Whether hooks run that are neither the host's nor an administrator's.
    pub fn has_hooks_enabled(&self) -> bool {
        self.hooks_enabled
    }

    /// Hooks of the selected plugins, and warnings about those that cannot run.
    pub fn hooks(&self, wanted: impl Fn(&str) -> bool) -> (HookSet, Vec<String>) {
        let mut set = HookSet::default();
        let mut warnings = Vec::new();
        let plugin_hooks =
            self.plugins.hooks().filter(|(plugin, _)| self.hooks_enabled && wanted(&plugin.name));
        for (plugin, hook) in plugin_hooks {
            let environment = [(ROOT_VARIABLE.to_owned(), plugin.root.display().to_string())].into();
            let source = HookSource::Plugin { name: plugin.name.clone() };
            let entry = HookToAdd {
                event: hook.entry.event,
                matcher: hook.entry.matcher.as_deref(),
                action: &hook.entry.action,
                origin: &HookOrigin::new(source, &hook.origin),
                authority: Authority::User,
                environment,
            };
            warnings.extend(hooks::add_hook(&mut set, entry, &self.http_limits).unwrap_or_else(|error| {
                Some(format!("{}: a {} hook does not run: {error}.", hook.origin, hook.entry.event))
            }));
        }
        warnings.extend(set.warnings().iter().cloned());
        (set, warnings)
    }
}

impl Setup {
    /// Discovers all extensions again, with additional plugins. Returns warnings that the host has not received yet.
    /// Reads files.
    pub fn reload_extensions(&mut self, more: &[PluginConfig]) -> Vec<String> {
        let extensions = &mut self.extensions;
        let mut configs = extensions.plugins.configs().to_vec();
        configs.extend(more.iter().filter(|config| !extensions.plugins.configs().contains(config)).cloned());
        let mut warnings = Vec::new();
        // Plugins may have been enabled or disabled since; everything else in the settings stays as it is.
        match self.permissions.state.settings().read_again() {
            Ok(settings) => {
                extensions.enabled_plugins =
                    EnabledPlugins::from_settings(&settings, extensions.plugin_dir.clone());
            }
            Err(error) => warnings.push(error.to_string()),
        }
        extensions.plugins = Plugins::load(&configs, &extensions.enabled_plugins, &extensions.cwd);
        let (commands, command_warnings) =
            find_commands(&self.config_locations, &extensions.plugins, extensions.commands_disabled);
        warnings.extend(command_warnings);
        let (styles, style_warnings) = OutputStyles::discover(&self.config_locations, &extensions.plugins);
        warnings.extend(style_warnings);
        warnings.extend(extensions.plugins.errors().iter().map(|error| error.message.clone()));
        extensions.skills.set_commands(&commands);
        extensions.styles = styles;
        self.commands = commands;
        let new_warnings = warnings
            .iter()
            .filter(|warning| !extensions.reported_warnings.contains(warning))
            .cloned()
            .collect();
        extensions.reported_warnings = warnings;
        self.update_skill_tool();
        new_warnings
    }

    /// Adds the Skill tool if it is enabled and there are skills; removes it otherwise.
    pub fn update_skill_tool(&mut self) {
        let Extensions { skills, skill_tool_enabled, .. } = &self.extensions;
        let is_available =
            *skill_tool_enabled && !skills.is_empty() && !self.permissions.state.denies_tool_named(SKILL);
        let tool_set = &self.tools.tool_set;
        self.tools.tool_set = Arc::new(match is_available {
            true => tool_set.with_tool(SkillTool::for_listing(skills.clone())),
            false => tool_set.without_tools(&[SKILL]),
        });
    }
}
