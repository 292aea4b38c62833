//! Builds the parts of a session: `init` frame, system prompt, agent spawner, permission checker and hooks.

use std::sync::Arc;

use serde_json::json;
use whimbrel_session_store::transcript_log::SessionIdentity;
use whimbrel_wire::PROTOCOL_VERSION;
use whimbrel_wire::hook::HookBase;
use whimbrel_wire::system::Init;

use super::Session;
use crate::agents::registry::AgentRegistry;
use crate::agents::spawn_limits::SpawnLimits;
use crate::agents::{AgentContext, AgentSpawner};
use crate::context::instructions::Instructions;
use crate::context::{environment, system_prompt};
use crate::cost::CostLedger;
use crate::denial_log::DenialLog;
use crate::event_loop::control::CAPABILITIES;
use crate::frame_sender::FrameSender;
use crate::hooks::{self, HookDispatcher, HookExecutor, HookSet};
use crate::host_requests::HostRequests;
use crate::permission_checker::{PermissionChecker, Prompter};
use crate::runtime_settings::RuntimeSettingsReader;
use crate::setup::Setup;
use crate::tasks::TaskRegistry;

/// Builds the hook dispatcher of the session.
pub(crate) fn build_hooks(
    setup: &Setup,
    ask: &HostRequests,
    tasks: &TaskRegistry,
    frame_sender: &FrameSender,
) -> HookDispatcher {
    let transcript = setup.project_dir.as_ref().map(|project_dir| project_dir.transcript(&setup.session));
    let deps = hook_deps(setup, ask, tasks, frame_sender);
    let base = HookBase {
        session_id: setup.session.clone(),
        transcript_path: transcript.map(|path| path.display().to_string()).unwrap_or_default(),
        ..HookBase::default()
    };
    let hooks = HookExecutor::new(setup.hooks.clone(), deps);
    HookDispatcher::new(
        hooks,
        setup.permission_state.clone(),
        Arc::clone(&setup.workspace),
        frame_sender.clone(),
        base,
    )
}

/// Dependencies of the hook executor.
fn hook_deps(
    setup: &Setup,
    ask: &HostRequests,
    tasks: &TaskRegistry,
    frame_sender: &FrameSender,
) -> hooks::HookDeps {
    hooks::HookDeps {
        requests: ask.clone(),
        frames: frame_sender.clone(),
        tasks: tasks.clone(),
        workspace: Arc::clone(&setup.workspace),
        progress: setup.hook_progress,
    }
}

impl Session {
    pub(super) fn build_init(&self) -> Init {
        let runtime_settings = self.runtime_settings.borrow();
        self.with_extensions(Init {
            cwd: self.setup.workspace.base_dir().display().to_string(),
            tools: self.setup.tool_set.names_for_init(),
            agents: Some(self.setup.agent_definitions.names()),
            model: runtime_settings.model.clone(),
            permission_mode: self.setup.permission_state.mode(),
            api_key_source: self.engine.models().key_source().into(),
            claude_code_version: PROTOCOL_VERSION.into(),
            mcp_servers: self.mcp.init_statuses(),
            betas: (!self.setup.limits.betas.is_empty()).then(|| self.setup.limits.betas.clone()),
            effort: runtime_settings.effort.and_then(|effort| json!(effort).as_str().map(str::to_owned)),
            capabilities: Some(CAPABILITIES.map(str::to_owned).to_vec()),
            ..Init::default()
        })
    }

    pub(super) fn system_prompt(&self) -> Vec<String> {
        let Setup { system_prompt, append_system_prompt, extensions, .. } = &*self.setup;
        system_prompt::system_blocks(
            system_prompt.as_ref(),
            extensions.style.as_deref(),
            append_system_prompt.as_deref(),
        )
    }

    /// Builds the spawner for the session's agents.
    pub(super) fn build_agent_spawner(&self) -> AgentSpawner {
        let Setup {
            workspace,
            project_dir,
            session,
            tool_set,
            limits,
            small_model,
            agent_definitions: types,
            output_schema: shape,
            ..
        } = &*self.setup;
        AgentSpawner::new(AgentContext {
            models: self.engine.models().clone(),
            frame_sender: self.frame_sender.clone(),
            runtime_settings: RuntimeSettingsReader::new(self.runtime_settings.subscribe()),
            tool_set: Arc::clone(tool_set),
            mcp_tools: self.setup.mcp_tool_cache.clone(),
            deferred_tools: self.setup.deferred_tools.clone(),
            permission_checker: self.build_permission_checker(),
            limits: limits.clone(),
            ledger: CostLedger::with_budget(limits.max_budget_usd),
            denials: DenialLog::default(),
            identity: SessionIdentity {
                session: session.clone(),
                cwd: workspace.root().display().to_string(),
                git_branch: environment::git_branch(workspace.root()).unwrap_or_default(),
                entrypoint: self.setup.entrypoint.clone(),
            },
            project_dir: project_dir.clone(),
            persistence: self.setup.persistence.clone(),
            definitions: types.clone(),
            spawn_limits: SpawnLimits::new(self.setup.max_concurrent_agents),
            registry: AgentRegistry::default(),
            team: self.team.clone(),
            event_sender: self.event_sender.clone(),
            workspace: Arc::clone(workspace),
            tasks: self.tasks.clone(),
            task_list: self.setup.task_list.clone(),
            small_model: small_model.clone(),
            output_schema: shape.clone(),
            forward_subagent_text: self.setup.forward_subagent_text,
            instructions: Instructions::new(
                Arc::clone(&self.setup.config_locations),
                workspace.home_dir().as_deref(),
            ),
            skills: self.setup.extensions.skills.clone(),
            config_locations: Arc::clone(&self.setup.config_locations),
            server_starter: self.mcp.server_starter(),
            hook_deps: (self.setup.extensions.has_hooks_enabled())
                .then(|| hook_deps(&self.setup, &self.host_requests, &self.tasks, &self.frame_sender)),
        })
    }

    fn build_permission_checker(&self) -> PermissionChecker {
        PermissionChecker {
            permissions: self.setup.permission_state.clone(),
            prompter: match &self.setup.prompt_tool {
                Some(tool) => Prompter::Tool(self.setup.mcp_tool_cache.clone(), tool.clone()),
                None if self.setup.host_answers => Prompter::Host(self.host_requests.clone()),
                None => Prompter::Unavailable,
            },
            state_notifier: self.state_notifier.clone(),
            frames: self.frame_sender.clone(),
            hooks: self.hooks.clone(),
            prompt_timeout: self.setup.permission_timeout,
        }
    }

    /// Adds hooks to those of the settings.
    pub(crate) fn add_hooks(&mut self, more: HookSet) {
        self.add_warnings(more.warnings().to_vec());
        self.setup.hooks.append(more);
        self.setup.tool_set = Arc::new(self.setup.tool_set.with_hook_responders(&self.setup.hooks));
        self.hooks = build_hooks(&self.setup, &self.host_requests, &self.tasks, &self.frame_sender);
        self.mcp.set_hooks(&self.hooks);
    }

    /// Queues warnings; the host gets them with the next turn.
    pub(super) fn add_warnings(&mut self, more: Vec<String>) {
        let warnings = self.setup.warning.take().into_iter().chain(more);
        self.setup.warning = warnings.reduce(|one, other| format!("{one}\n{other}"));
    }
}
