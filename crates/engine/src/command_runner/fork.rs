//! Command files with `context: fork`: a subagent runs them, and its report is the answer. The model is not called; it
//! sees the report with the next prompt.

use tokio_util::sync::CancellationToken;
use whimbrel_os::ids;
use whimbrel_tools::api::ToolContext;
use whimbrel_tools::hooks::{HookInputBuilder, join_reasons};
use whimbrel_wire::hook::HookEvent;

use super::answer_without_model;
use super::command_file::{self, CommandFileCall};
use crate::agent::Agent;
use crate::agents::tools::skill_request;
use crate::agents::{AgentSpawner, SpawnOutcome};
use crate::next_step::TurnEnd;
use crate::prompt_submission;
use crate::skills::InvokedSkill;
use crate::turn::TurnOutcome;

/// Runs the command in a subagent and answers with its report.
pub(super) async fn run(
    agent: &mut Agent,
    agents: &AgentSpawner,
    call: CommandFileCall,
    cancel: &CancellationToken,
) -> TurnOutcome {
    let CommandFileCall { file, parsed, arguments, prompt, mode } = call;
    let build_input =
        |input: &HookInputBuilder| input.user_prompt_expansion(&file.name, &arguments, parsed.body.as_str());
    let expanded =
        agent.tool_env.checker.hooks.dispatch(HookEvent::UserPromptExpansion, build_input, cancel).await;
    if !expanded.blocked.is_empty() {
        let reason = join_reasons(&expanded.blocked);
        return answer_without_model(
            agent,
            &prompt,
            format!("/{} was not run. A hook blocked it: {reason}", file.name),
        )
        .await;
    }
    let text = prompt.message.content.joined_text();
    let submitted =
        match prompt_submission::run_host_prompt_hooks(agent, prompt.uuid.as_deref(), &text, cancel).await {
            Ok(submitted) => submitted,
            Err(error) => return error.into(),
        };
    if expanded.stop.is_some() || submitted.stop.is_some() {
        return TurnOutcome::new(TurnEnd::HookStopped);
    }
    agent.inject_hook_context(&[expanded.contexts, submitted.contexts].concat());
    let (name, command) = (file.name.clone(), command_file::command_header(&file.name, &arguments));
    let request = skill_request(InvokedSkill { file, parsed, arguments });
    let call =
        ToolContext { id: ids::new_task_id('c'), cancel: cancel.clone(), ..agent.tool_env.context.clone() };
    let spawned = cancel.run_until_cancelled(agents.spawn(request, &call)).await;
    let outcome = match spawned {
        None => {
            agent.conversation.push_local_command(&prompt, "Interrupted.").await;
            return TurnOutcome::new(TurnEnd::AbortedStreaming);
        }
        Some(Ok(SpawnOutcome::Finished(report))) => report.text(),
        Some(Ok(SpawnOutcome::Background(spawned))) => {
            format!("/{name} continues in the background as {}.", spawned.agent_id)
        }
        Some(Err(error)) => {
            return answer_without_model(agent, &prompt, format!("/{name} was not run. {}", error.reason()))
                .await;
        }
    };
    let uuid = prompt.uuid.unwrap_or_default();
    agent.conversation.push_side_result((&uuid, &command), &outcome, &mode).await;
    agent.conversation.end_turn().await;
    TurnOutcome { text: outcome, ..TurnOutcome::new(TurnEnd::Done) }
}
