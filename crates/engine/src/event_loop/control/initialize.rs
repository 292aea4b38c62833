//! The `initialize` request: what it may change, when it rejects the session, and the reply.

use whimbrel_tools::hooks::HookSet;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::control::{AccountInfo, AgentInfo, ControlResponse, Initialize, InitializeReply};
use whimbrel_wire::options::SystemPrompt;

use super::{extensions, model_infos};
use crate::agents::ResolvedDefinition;
use crate::event_loop::Session;
use crate::setup::SetupError;

/// Capabilities announced to hosts, by their wire names.
pub(in crate::event_loop) const CAPABILITIES: [&str; 4] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "mcp_read_resource_v1",
    "reload_plugins_refuse_if_busy_v1",
];

/// Handles the request; `None` if the response is sent later.
pub(super) fn handle_initialize(
    session: &mut Session,
    id: String,
    initialize: &Initialize,
) -> Option<ControlResponse> {
    if let Some(error) = unsupported_field(initialize) {
        // The host can initialize without the field, but must not prompt a session that lacks what it asked for.
        if !session.has_begun() {
            session.refused_initialize = Some(SetupError::Unsupported(error.to_owned()));
        }
        return Some(ControlResponse::error(id, error));
    }
    session.refused_initialize = None;
    match apply_initialize(session, initialize) {
        Ok(reply) => respond_to_initialize(session, id, reply),
        Err(error) => {
            // A session that has started continues unchanged.
            if !session.has_begun() {
                session.setup_error = Some(SetupError::Unsupported(error.clone()));
            }
            Some(ControlResponse::error(id, error))
        }
    }
}

/// Rejects a session whose `initialize` cannot be read, unless it has started.
pub(super) fn reject_unreadable(session: &mut Session, error: &str) {
    // The unreadable part may contain something that protects the session, such as hooks.
    if !session.has_begun() {
        session.setup_error = Some(SetupError::Invalid(error.to_owned()));
    }
}

/// Why the session cannot be what `initialize` asks for.
fn unsupported_field(initialize: &Initialize) -> Option<&'static str> {
    if initialize.tool_aliases.as_ref().is_some_and(|aliases| !aliases.is_empty()) {
        return Some("`toolAliases` is not supported: tools keep their names. Leave it out.");
    }
    (initialize.system_prompt_snapshot == Some(true)).then_some(
        "`systemPromptSnapshot` is not supported: the system prompt is built anew at every start. Leave it out.",
    )
}

fn apply_initialize(session: &mut Session, initialize: &Initialize) -> Result<InitializeReply, String> {
    session.mcp.add_sdk_servers(initialize);
    let has_begun = session.has_begun();
    if !has_begun {
        let hooks = HookSet::from_initialize(initialize).map_err(|error| format!("Hooks: {error}."))?;
        session.add_hooks(hooks);
        extensions::apply_initialize(session, initialize);
        if let Some(blocks) = &initialize.system_prompt {
            session.setup.prompt.system_prompt = Some(SystemPrompt::Text(blocks.join("\n\n")));
        }
        if initialize.append_system_prompt.is_some() {
            session.setup.prompt.appended.clone_from(&initialize.append_system_prompt);
        }
        if let Some(schema) = &initialize.json_schema {
            session.setup.require_output_schema(schema)?;
        }
        session.add_agent_definitions(initialize.agents.clone().unwrap_or_default());
        if initialize.title.is_some() {
            session.setup.session.title.clone_from(&initialize.title);
        }
        session.setup.agents.forward_subagent_text |= initialize.forward_subagent_text == Some(true);
        if let Some(text) = initialize.plan_mode_instructions.as_deref() {
            session
                .settings
                .runtime
                .send_modify(|runtime_settings| runtime_settings.plan_mode_instructions = Some(text.into()));
        }
    }
    if has_begun && initialize.hooks.as_ref().is_some_and(|hooks| !hooks.is_empty()) {
        return Err("Hooks can only be registered before the first turn.".into());
    }
    let mode = session.setup.permissions.state.mode();
    let reply = InitializeReply {
        commands: session.setup.commands.slash_commands(),
        agents: session.setup.agents.definitions.iter().map(agent_info).collect(),
        models: model_infos(session),
        account: AccountInfo {
            api_key_source: Some(session.engine.models().key_source().into()),
            ..AccountInfo::default()
        },
        pid: Some(std::process::id()),
        claude_code_version: Some(PROTOCOL_VERSION.into()),
        current_permission_mode: Some(mode),
        hook_on_failure_supported: Some(true),
        capabilities: Some(CAPABILITIES.map(str::to_owned).to_vec()),
        ..InitializeReply::default()
    };
    Ok(extensions::describe_extensions(session, initialize, reply))
}

/// Responds to `initialize`, after a short wait for servers, which contribute slash commands.
fn respond_to_initialize(
    session: &mut Session,
    id: String,
    mut reply: InitializeReply,
) -> Option<ControlResponse> {
    let requests = session.host.requests.clone();
    let answer = move |reply: &InitializeReply| {
        ControlResponse::success(id, reply)
            .with_pending_requests(requests.pending_permission_requests(), Vec::new())
    };
    let Some(servers) = session.mcp.startup_wait() else { return Some(answer(&reply)) };
    let commands = session.setup.commands.clone();
    session.mcp.respond_later(async move {
        servers.await;
        reply.commands = commands.slash_commands();
        answer(&reply)
    });
    None
}

pub(super) fn agent_info(definition: &ResolvedDefinition) -> AgentInfo {
    AgentInfo {
        name: definition.name.clone(),
        description: definition.description.clone(),
        model: definition.model.clone(),
    }
}
