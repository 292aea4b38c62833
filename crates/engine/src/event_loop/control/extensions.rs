//! Control requests about plugins, skills and output styles.

use std::path::Path;

use serde_json::{Value, json};
use whimbrel_config::output_styles;
use whimbrel_wire::control::{
    ControlResponse, Initialize, InitializeReply, ReloadOutputStylesReply, ReloadPlugins, ReloadPluginsReply,
    ReloadSkillsReply,
};

use super::initialize::agent_info;
use crate::event_loop::Session;

/// Applies plugins and skills of `initialize` before the first turn.
pub(crate) fn apply_initialize(session: &mut Session, initialize: &Initialize) {
    if let Some(plugins) = initialize.plugins.as_ref().filter(|plugins| !plugins.is_empty()) {
        session.load_plugins(plugins);
    }
    if initialize.skills.is_some() {
        session.setup.extensions.skills.set_allowed(initialize.skills.clone());
        session.setup.update_skill_tool();
    }
}

/// Adds the extensions to the reply to `initialize`.
pub(crate) fn describe_extensions(
    session: &Session,
    initialize: &Initialize,
    reply: InitializeReply,
) -> InitializeReply {
    let extensions = &session.setup.extensions;
    let requested = initialize.plugins.as_ref().filter(|plugins| !plugins.is_empty());
    let styles_dir = output_styles::user_styles_dir(&session.setup.config_locations);
    InitializeReply {
        output_style: extensions.style_name().into(),
        available_output_styles: extensions.styles.names(),
        plugins_applied: requested.map(|plugins| extensions.has_plugins(plugins).into()),
        user_output_styles_dir: styles_dir.map(|dir| dir.display().to_string()),
        ..reply
    }
}

/// Reloads plugins, and loads additional ones.
pub(crate) async fn reload_plugins(
    session: &mut Session,
    id: String,
    request: ReloadPlugins,
) -> ControlResponse {
    if request.refuse_if_busy == Some(true) && session.is_busy() {
        let text = "Plugins were not reloaded: the session is busy. Try again when it is idle.";
        return ControlResponse::error_with_code(id, text, "reload_plugins_busy");
    }
    let more = request.add_plugins.unwrap_or_default();
    if let Some(config) = more.iter().find(|config| !Path::new(&config.path).is_absolute()) {
        let text = format!("add_plugins: {} is not an absolute path.", config.path);
        return ControlResponse::error(id, text);
    }
    session.reload_extensions(&more).await;
    let plugins = &session.setup.extensions.plugins;
    let listed = plugins.init_plugins().into_iter().filter_map(|plugin| serde_json::to_value(plugin).ok());
    let reply = ReloadPluginsReply {
        commands: session.setup.commands.slash_commands(),
        agents: session.setup.agents.definitions.iter().map(agent_info).collect(),
        plugins: listed.collect(),
        error_count: plugins.errors().len() as u64,
        // The session's tools do not depend on it.
        held: request.hold_on_cache_impact.filter(|hold| *hold).map(|_| false),
        ..ReloadPluginsReply::default()
    };
    ControlResponse::success(id, &reply)
}

pub(crate) async fn reload_skills(session: &mut Session, id: String) -> ControlResponse {
    session.reload_extensions(&[]).await;
    let listed = session.setup.extensions.skills.slash_commands().into_iter();
    let skills: Vec<Value> = listed.map(|skill| json!(skill)).collect();
    ControlResponse::success(id, &ReloadSkillsReply { skills })
}

pub(crate) async fn reload_output_styles(session: &mut Session, id: String) -> ControlResponse {
    session.reload_extensions(&[]).await;
    let available_output_styles = session.setup.extensions.styles.names();
    ControlResponse::success(id, &ReloadOutputStylesReply { available_output_styles })
}
