//! Which tools an agent gets: those of its parent or session, restricted by its definition and role.

use whimbrel_tools::api::AgentToolSet;
use whimbrel_wire::tool_names::{AGENT, SEND_MESSAGE, TEAM_CREATE, TEAM_DELETE};

use super::build::AgentRole;
use super::definition::{StartableAgents, split_tool_rule};
use super::{ResolvedDefinition, memory};
use crate::structured_output;

/// The parent's tools, restricted by the definition. Only the main agent creates teams, and only teammates send
/// messages.
pub(super) fn subagent_tools(
    parent: &AgentToolSet,
    definition: &ResolvedDefinition,
    role: &AgentRole,
) -> AgentToolSet {
    let mut allowed = definition.tools.as_deref().map(|tools| canonical_names(parent, tools));
    if definition.memory.is_some() {
        allowed.iter_mut().for_each(|allowed| allowed.extend(memory::MEMORY_TOOLS.map(String::from)));
    }
    let mut excluded = canonical_names(parent, &definition.disallowed_tools);
    excluded.extend([structured_output::TOOL_NAME, TEAM_CREATE, TEAM_DELETE].map(String::from));
    match role {
        AgentRole::Teammate { .. } => {
            excluded.push(AGENT.into());
            allowed.iter_mut().for_each(|allowed| allowed.push(SEND_MESSAGE.into()));
        }
        AgentRole::Subagent => {
            excluded.push(SEND_MESSAGE.into());
            if definition.startable_agents() == StartableAgents::NoAgents {
                excluded.push(AGENT.into());
            }
        }
    }
    let narrowed =
        parent.for_subagent(allowed.as_deref(), &excluded.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => narrowed,
        named => narrowed.restricted_to_servers(named),
    }
}

/// The tools of a session to which the definition is applied.
pub(crate) fn session_tools(all: &AgentToolSet, definition: &ResolvedDefinition) -> AgentToolSet {
    let mut allowed = definition.tools.as_deref().map(|tools| canonical_names(all, tools));
    let own = &definition.mcp_servers.own;
    if let Some(allowed) = &mut allowed {
        allowed.extend(own.keys().map(|server| format!("mcp__{server}")));
        allowed.extend(definition.memory.iter().flat_map(|_| memory::MEMORY_TOOLS.map(String::from)));
    }
    let excluded = canonical_names(all, &definition.disallowed_tools);
    let limited =
        all.restricted_to(allowed.as_deref(), &excluded.iter().map(String::as_str).collect::<Vec<_>>());
    match &definition.mcp_servers.referenced {
        named if named.is_empty() => limited,
        named => limited.restricted_to_servers(named.iter().chain(own.keys())),
    }
}

/// Resolves aliases in a definition's tool entries to tool names.
fn canonical_names(tool_set: &AgentToolSet, tools: &[String]) -> Vec<String> {
    let names = tools.iter().map(|tool| split_tool_rule(tool).0);
    let canonical = |name: &str| tool_set.find(name).map(|tool| tool.tool().name().to_owned());
    names.map(|name| canonical(name).unwrap_or_else(|| name.to_owned())).collect()
}
