//! Builds the parts of a session: system prompt, agent spawner, permission checker and hooks.

use std::sync::Arc;

use whimbrel_sandbox::proxy::HostApproval;
use whimbrel_session_store::transcript_recorder::SessionIdentity;
use whimbrel_tools::cost::CostLedger;
use whimbrel_tools::hooks::{self, HookDispatcher, HookExecutor, HookSet};
use whimbrel_tools::tasks::TaskRegistry;
use whimbrel_transport::frame_sender::FrameSender;
use whimbrel_transport::host_requests::HostRequests;
use whimbrel_wire::hook::HookBase;

use super::Session;
use crate::agents::awaited_agents::AwaitedAgents;
use crate::agents::context::{
    AgentContext, AgentEnvironment, AgentExtensions, AgentSpawner, AgentStorage, AgentTreeTotals,
    MainAgentConfig, SpawnContext,
};
use crate::agents::registry::AgentRegistry;
use crate::agents::spawn_limits::SpawnLimits;
use crate::context::instructions::Instructions;
use crate::context::{environment, system_prompt};
use crate::denial_log::DenialLog;
use crate::permission_checker::{PermissionChecker, PermissionRequester};
use crate::runtime_settings::RuntimeSettingsReader;
use crate::sandbox_questions::SandboxQuestions;
use crate::setup::Setup;

/// Builds the hook dispatcher of the session.
pub(crate) fn build_hooks(
    setup: &Setup,
    requests: &HostRequests,
    tasks: &TaskRegistry,
    frame_sender: &FrameSender,
) -> HookDispatcher {
    let transcript = setup
        .session
        .transcript_dir
        .as_ref()
        .map(|transcript_dir| transcript_dir.transcript(&setup.session.id));
    let deps = hook_deps(setup, requests, tasks, frame_sender);
    let base = HookBase {
        session_id: setup.session.id.clone(),
        transcript_path: transcript.map(|path| path.display().to_string()).unwrap_or_default(),
        ..HookBase::default()
    };
    let hooks = HookExecutor::new(setup.hooks.set.clone(), deps);
    HookDispatcher::new(
        hooks,
        setup.permissions.state.clone(),
        Arc::clone(&setup.session.workspace),
        frame_sender.clone(),
        base,
    )
}

/// Dependencies of the hook executor.
fn hook_deps(
    setup: &Setup,
    requests: &HostRequests,
    tasks: &TaskRegistry,
    frame_sender: &FrameSender,
) -> hooks::HookDeps {
    hooks::HookDeps {
        requests: requests.clone(),
        frames: frame_sender.clone(),
        tasks: tasks.clone(),
        workspace: Arc::clone(&setup.session.workspace),
        progress: setup.hooks.progress,
    }
}

impl Session {
    pub(super) fn system_prompt(&self) -> Vec<String> {
        let Setup { prompt, extensions, .. } = &*self.setup;
        let (base, appended) = (prompt.system_prompt.as_ref(), prompt.appended.as_deref());
        system_prompt::system_blocks(base, extensions.style.as_deref(), appended)
    }

    /// Builds the spawner for the session's agents.
    pub(super) fn build_agent_spawner(&self) -> AgentSpawner {
        let Setup { session, models, tools, mcp, agents, extensions, config_locations, .. } = &*self.setup;
        let workspace = &session.workspace;
        let locations = Arc::clone(config_locations);
        AgentSpawner::new(AgentContext {
            models: self.engine.models().clone(),
            frame_sender: self.host.frame_sender.clone(),
            event_sender: self.event_sender.clone(),
            main: MainAgentConfig {
                runtime_settings: RuntimeSettingsReader::new(self.settings.runtime.subscribe()),
                tool_set: Arc::clone(&tools.tool_set),
                deferred_tools: tools.deferred_tools.clone(),
                permission_checker: self.build_permission_checker(),
                limits: agents.limits.clone(),
                output_schema: tools.output_schema.clone(),
            },
            totals: AgentTreeTotals {
                ledger: CostLedger::with_budget(agents.limits.max_budget_usd),
                denials: DenialLog::default(),
            },
            storage: AgentStorage {
                identity: SessionIdentity {
                    session: session.id.clone(),
                    cwd: workspace.root().display().to_string(),
                    git_branch: environment::git_branch(workspace.root()).unwrap_or_default(),
                    entrypoint: session.entrypoint.clone(),
                },
                transcript_dir: session.transcript_dir.clone(),
                persistence: session.persistence.clone(),
            },
            environment: AgentEnvironment {
                workspace: Arc::clone(workspace),
                tasks: self.tasks.clone(),
                task_list: tools.task_list.clone(),
                small_model: models.small_model.clone(),
            },
            spawning: SpawnContext {
                definitions: agents.definitions.clone(),
                limits: SpawnLimits::new(agents.max_concurrent),
                registry: AgentRegistry::default(),
                team: self.team.clone(),
                awaited: AwaitedAgents::default(),
                server_starter: self.mcp.server_starter(),
                forward_subagent_text: agents.forward_subagent_text,
                appended_prompt: agents.appended_prompt.clone(),
            },
            extensions: AgentExtensions {
                instructions: Instructions::new(Arc::clone(&locations), workspace.home_dir().as_deref()),
                skills: extensions.skills.clone(),
                config_locations: locations,
                hook_deps: (extensions.has_hooks_enabled()).then(|| {
                    hook_deps(&self.setup, &self.host.requests, &self.tasks, &self.host.frame_sender)
                }),
                mcp_tools: mcp.tool_cache.clone(),
            },
        })
    }

    /// Lets the sandbox ask the host of this session.
    pub(super) fn answer_sandbox_questions(&mut self) {
        let stop = self.tasks.process_groups().closed.clone();
        let questions = Arc::new(SandboxQuestions::new(self.build_permission_checker(), stop));
        let shared: Arc<dyn HostApproval> = Arc::clone(&questions) as _;
        self.setup.session.workspace.sandbox().set_approval(Arc::downgrade(&shared));
        self.sandbox_questions = Some(questions);
    }

    fn build_permission_checker(&self) -> PermissionChecker {
        PermissionChecker {
            permissions: self.setup.permissions.state.clone(),
            requester: match &self.setup.permissions.prompt_tool {
                Some(tool) => PermissionRequester::Tool(self.setup.mcp.tool_cache.clone(), tool.clone()),
                None if self.setup.permissions.host_answers => {
                    PermissionRequester::Host(self.host.requests.clone())
                }
                None => PermissionRequester::Unavailable,
            },
            state_notifier: self.host.state_notifier.clone(),
            frames: self.host.frame_sender.clone(),
            hooks: self.hooks.clone(),
            request_timeout: self.setup.permissions.request_timeout,
        }
    }

    /// Adds hooks to those of the settings.
    pub(crate) fn add_hooks(&mut self, more: HookSet) {
        self.add_warnings(more.warnings().to_vec());
        self.setup.hooks.set.append(more);
        self.setup.tools.tool_set =
            Arc::new(self.setup.tools.tool_set.with_hook_responders(&self.setup.hooks.set));
        self.rebuild_hooks();
    }

    /// Builds the hook dispatcher again after a change of its hooks or of the session.
    pub(super) fn rebuild_hooks(&mut self) {
        self.hooks = build_hooks(&self.setup, &self.host.requests, &self.tasks, &self.host.frame_sender);
        self.mcp.set_hooks(&self.hooks);
    }

    /// Queues warnings; the host gets them with the next turn.
    pub(super) fn add_warnings(&mut self, more: Vec<String>) {
        self.setup.host.add_warnings(more);
    }
}
