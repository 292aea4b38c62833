//! Injects called skills into the conversation, after the tool results.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use whimbrel_tools::api::AgentToolSet;

use crate::agent::Agent;
use crate::command_expansion;
use crate::skills::InvokedSkill;

/// Injects the called skills. Their rules and model apply until the turn ends, their hooks from now on.
pub(super) async fn inject_invoked(agent: &mut Agent, cancel: &CancellationToken) {
    for skill in agent.invoked_skills.take_invoked() {
        if let Some(warning) =
            command_expansion::override_model(agent, &skill.file, &skill.parsed.front_matter)
        {
            agent.frame_sender.warn(warning).await;
        }
        let tools = Arc::clone(&agent.tool_env.tool_set);
        let text = render(agent, &skill, &tools, cancel).await;
        agent.conversation.push_synthetic(&text).await;
    }
}

/// Renders a skill and applies its rules and hooks to the agent. Shell commands in it run with `tools`, the caller's
/// tool set.
pub(crate) async fn render(
    agent: &mut Agent,
    skill: &InvokedSkill,
    tools: &Arc<AgentToolSet>,
    cancel: &CancellationToken,
) -> String {
    let InvokedSkill { file, parsed, arguments } = skill;
    let rules = match parsed.front_matter.rules().apply(
        &agent.tool_env.checker.permissions,
        file,
        agent.invoked_skills.trust(),
    ) {
        Ok(warnings) => warnings,
        Err(reason) => return format!("The skill {} could not be loaded. {reason}", file.name),
    };
    let hooks = agent.add_skill_hooks(file, &parsed.front_matter);
    // A warning that existed at discovery has been reported then.
    let error = parsed.warning.clone().filter(|error| file.warning.as_ref() != Some(error));
    for warning in error.into_iter().chain(rules).chain(hooks) {
        agent.frame_sender.warn(warning).await;
    }
    let expanded = command_expansion::expand_file(agent, tools, file, &parsed.body, arguments);
    // The output of a cancelled command must not be injected.
    let expanded = cancel.run_until_cancelled(expanded).await.filter(|_| !cancel.is_cancelled());
    match expanded {
        Some(Ok(expanded)) => expanded.text,
        Some(Err(reason)) => format!("The skill {} could not be loaded. {reason}", file.name),
        None => format!("The skill {} was not loaded: the turn was interrupted.", file.name),
    }
}
