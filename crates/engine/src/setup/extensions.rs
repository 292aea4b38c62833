//! What people and plugins add to a session: plugins themselves, commands, skills, output styles and the hooks of plugins.
//! All of it is found once at the start, and again when the host asks for that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use whimbrel_wire::options::{Options, PluginConfig, ToolSet};

use super::Setup;
use super::hooks::{self, Entry};
use crate::commands::Commands;
use crate::ground::Ground;
use crate::hooks::HookSet;
use crate::output_styles::{DEFAULT, Style, Styles};
use crate::plugins::{Plugins, ROOT_VARIABLE};
use crate::settings::Settings;
use crate::settings::http_hooks::{HttpLimits, Rank};
use crate::settings::merge::other_hooks_run;
use crate::skills::{Skill, Skills};
use crate::tools::SKILL;

/// What was added to a session.
pub struct Extensions {
    /// The plugins.
    pub plugins: Plugins,
    /// What the model may call itself.
    pub skills: Skills,
    /// The output styles.
    pub styles: Styles,
    /// The style that is in force; none is the default.
    pub style: Option<Arc<Style>>,
    /// Whether the model may be offered the tool for skills.
    wanted: bool,
    /// Whether words with a slash are plain text.
    switched_off: bool,
    /// Whether hooks of plugins run.
    hooks_run: bool,
    /// Which web addresses they may tell.
    http_limits: HttpLimits,
    /// Where relative paths start.
    cwd: PathBuf,
    /// What the host has been told about them.
    told: Vec<String>,
}

/// What was found at the start of a session.
pub(super) struct Found {
    pub(super) extensions: Extensions,
    pub(super) commands: Commands,
    pub(super) hooks: HookSet,
    pub(super) warnings: Vec<String>,
}

/// Finds what the options and settings ask for. Touches the disk.
pub(super) fn find(options: &Options, settings: &Settings, ground: &Ground, cwd: &Path) -> Found {
    let plugins = Plugins::load(&options.plugins, cwd);
    let switched_off = options.extra_args.contains_key("disable-slash-commands");
    let (commands, mut warnings) = commands(ground, &plugins, switched_off);
    let (styles, about_styles) = Styles::find(ground, &plugins);
    warnings.extend(about_styles);
    warnings.extend(plugins.errors().iter().map(|error| error.message.clone()));
    let mut extensions = Extensions {
        skills: Skills::new(&commands, options.skills.clone(), ground.trust),
        wanted: is_wanted(options.tools.as_ref()),
        switched_off,
        hooks_run: other_hooks_run(settings.layers()),
        http_limits: settings.effective().http_limits.clone(),
        cwd: cwd.into(),
        told: warnings.clone(),
        style: None,
        styles,
        plugins,
    };
    warnings.extend(extensions.choose_style(settings.effective().known.output_style.as_deref()));
    let (hooks, about_hooks) = extensions.hooks(|_| true);
    warnings.extend(about_hooks);
    Found { extensions, commands, hooks, warnings }
}

fn commands(ground: &Ground, plugins: &Plugins, switched_off: bool) -> (Commands, Vec<String>) {
    match switched_off {
        true => (Commands::none(), Vec::new()),
        false => Commands::find(ground, plugins),
    }
}

fn is_wanted(tools: Option<&ToolSet>) -> bool {
    match tools {
        None | Some(ToolSet::Default) => true,
        Some(ToolSet::List(names)) => names.iter().any(|name| name == SKILL || name == "SlashCommand"),
    }
}

impl Extensions {
    /// Puts an output style in force. The answer is what is wrong with the choice.
    pub fn choose_style(&mut self, name: Option<&str>) -> Option<String> {
        let (style, wrong) = match self.styles.choose(name) {
            Ok(style) => (style, None),
            Err(text) => (None, Some(text)),
        };
        self.style = style;
        wrong
    }

    /// The name of the style that is in force.
    pub fn style_name(&self) -> &str {
        self.style.as_ref().map_or(DEFAULT, |style| &style.name)
    }

    /// Whether every one of these plugins is loaded.
    pub fn have_plugins(&self, configs: &[PluginConfig]) -> bool {
        self.plugins.have_all(configs, &self.cwd)
    }

    /// Whether hooks run that are neither the host's nor an administrator's.
    pub fn run_hooks(&self) -> bool {
        self.hooks_run
    }

    /// The hooks of the plugins that are wanted, and what cannot be had of them.
    pub fn hooks(&self, wanted: impl Fn(&str) -> bool) -> (HookSet, Vec<String>) {
        let mut set = HookSet::default();
        let mut warnings = Vec::new();
        let brought = self.plugins.hooks().filter(|(plugin, _)| self.hooks_run && wanted(&plugin.name));
        for (plugin, hook) in brought {
            let environment = [(ROOT_VARIABLE.to_owned(), plugin.root.display().to_string())].into();
            let entry = Entry {
                event: hook.entry.event,
                matcher: hook.entry.matcher.as_deref(),
                handler: &hook.entry.handler,
                origin: &hook.origin,
                rank: Rank::Person,
                environment,
            };
            warnings.extend(hooks::add(&mut set, entry, &self.http_limits).unwrap_or_else(|error| {
                Some(format!("{}: a {} hook does not run: {error}.", hook.origin, hook.entry.event))
            }));
        }
        warnings.extend(set.warnings().iter().cloned());
        (set, warnings)
    }
}

impl Setup {
    /// Finds commands, skills, styles and plugins anew, with some plugins more. The answer is what the host should know
    /// and has not been told. Touches the disk.
    pub fn renew_extensions(&mut self, more: &[PluginConfig]) -> Vec<String> {
        let extensions = &mut self.extensions;
        let mut configs = extensions.plugins.configs().to_vec();
        configs.extend(more.iter().filter(|config| !extensions.plugins.configs().contains(config)).cloned());
        extensions.plugins = Plugins::load(&configs, &extensions.cwd);
        let (commands, mut warnings) = commands(&self.ground, &extensions.plugins, extensions.switched_off);
        let (styles, about_styles) = Styles::find(&self.ground, &extensions.plugins);
        warnings.extend(about_styles);
        warnings.extend(extensions.plugins.errors().iter().map(|error| error.message.clone()));
        extensions.skills.renew(&commands);
        extensions.styles = styles;
        self.commands = commands;
        let news = warnings.iter().filter(|warning| !extensions.told.contains(warning)).cloned().collect();
        extensions.told = warnings;
        self.offer_skills();
        news
    }

    /// Offers the tool for skills if there are any and it is wanted; takes it away otherwise.
    pub fn offer_skills(&mut self) {
        let Extensions { skills, wanted, .. } = &self.extensions;
        let offered = *wanted && !skills.is_empty() && !self.rights.removes(SKILL);
        self.toolbox = Arc::new(match offered {
            true => self.toolbox.with(Skill::to_offer(skills.clone())),
            false => self.toolbox.without(&[SKILL]),
        });
    }
}
