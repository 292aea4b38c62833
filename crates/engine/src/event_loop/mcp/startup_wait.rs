//! How long a turn, and the reply to `initialize`, wait for starting MCP servers.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use whimbrel_mcp::ServerRegistry;
use whimbrel_wire::system::Init;

use super::SessionMcp;
use crate::agent::Agent;
use crate::command_runner::CommandJob;
use crate::commands::Commands;
use crate::event_loop::turns::TurnWork;

/// Limit on a turn's wait for starting servers. The tools of a later server are available from the next model call
/// on.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(20);

/// Limit on the wait of the `initialize` reply for servers, which contribute slash commands.
const INITIALIZE_TIMEOUT: Duration = Duration::from_secs(2);

impl SessionMcp {
    /// The wait for servers that may contribute prompts, if there are servers.
    pub(crate) fn startup_wait(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        let registry = self.registry()?.clone();
        Some(async move { registry.wait_ready_external(INITIALIZE_TIMEOUT).await })
    }

    /// The startup barrier of a turn, if there are servers.
    pub(in crate::event_loop) fn startup_barrier(
        &mut self,
        commands: &Commands,
        work: &TurnWork,
    ) -> Option<StartupBarrier> {
        let registry = self.registry()?.clone();
        // Work that the engine does without the model needs no servers.
        let needs_servers = !matches!(
            work,
            TurnWork::Command {
                job: CommandJob::Answer { .. }
                    | CommandJob::Clear { .. }
                    | CommandJob::Model { .. }
                    | CommandJob::Compact(_),
                ..
            }
        );
        let time_limit =
            (needs_servers && std::mem::take(&mut self.wait_before_turn)).then_some(STARTUP_TIMEOUT);
        Some(StartupBarrier {
            registry,
            timeout: time_limit,
            commands: commands.clone(),
            session_announced: self.session_announced.clone(),
        })
    }
}

/// Waits for starting servers before a turn.
pub(crate) struct StartupBarrier {
    registry: ServerRegistry,
    timeout: Option<Duration>,
    commands: Commands,
    session_announced: CancellationToken,
}

impl StartupBarrier {
    /// Waits for starting servers up to the timeout and gives the agent their tools.
    async fn wait(&self, agent: &mut Agent, cancel: &CancellationToken) {
        if let Some(timeout) = self.timeout {
            cancel.run_until_cancelled(self.registry.wait_ready(timeout)).await;
        }
        agent.refresh_tools();
    }

    /// Updates the `init` frame with what the servers contributed meanwhile.
    fn update_init(&self, init: &mut Init, agent: &Agent) {
        init.tools = agent.tool_env.tool_set.names_for_init();
        init.mcp_servers = self.registry.init_servers();
        init.slash_commands = self.commands.names();
    }

    /// Marks the `init` frame as sent.
    pub(crate) fn mark_announced(&self) {
        self.session_announced.cancel();
    }
}

/// Waits for servers before a turn, if there are any, and updates the turn's `init` frame.
pub(in crate::event_loop) async fn wait_for_servers(
    barrier: Option<&StartupBarrier>,
    agent: &mut Agent,
    mut work: TurnWork,
    cancel: &CancellationToken,
) -> TurnWork {
    let Some(barrier) = barrier else { return work };
    barrier.wait(agent, cancel).await;
    match &mut work {
        TurnWork::Turn(input) => barrier.update_init(&mut input.init, agent),
        TurnWork::PendingCalls(input) => barrier.update_init(&mut input.init, agent),
        TurnWork::Command { notices, .. } => barrier.update_init(&mut notices.init, agent),
    }
    work
}
