//! The tools that start and message agents: Agent, ListAgents, SendMessage, the team tools, and Skill, which may run in
//! a subagent.

mod agent;
mod list_agents;
mod send_message;
mod skill;
mod skill_fork;
mod team;

use std::sync::Arc;

use whimbrel_tools::api::AnyTool;
use whimbrel_wire::tool_names::TASK_UPDATE;

pub(crate) use self::agent::describe_tool as agent_description;
pub use self::skill::SkillTool;
pub(crate) use self::skill_fork::spawn_request as skill_request;

/// Adds the agent tools to the built-in tools, in the order in which the model sees them: the tools for messages follow
/// the task list.
pub fn with_agent_tools(mut tools: Vec<Arc<dyn AnyTool>>) -> Vec<Arc<dyn AnyTool>> {
    let after_task_list =
        tools.iter().position(|tool| tool.name() == TASK_UPDATE).map_or(tools.len(), |at| at + 1);
    let messages: [Arc<dyn AnyTool>; 2] =
        [Arc::new(list_agents::ListAgentsTool), Arc::new(send_message::SendMessageTool)];
    tools.splice(after_task_list..after_task_list, messages);
    tools.insert(0, Arc::new(agent::AgentTool));
    tools
}

/// Returns the tools of a session that may have a team. They replace built-in tools of the same name or are added to
/// them.
pub fn team_tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(agent::TeamAgentTool),
        Arc::new(team::TeamCreateTool),
        Arc::new(team::TeamDeleteTool),
        Arc::new(send_message::TeamSendMessageTool),
    ]
}
