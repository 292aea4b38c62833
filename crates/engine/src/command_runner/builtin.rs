//! The small built-in commands: `/clear`, `/context`, `/cost`, `/help` and `/model`.

use tokio_util::sync::CancellationToken;
use whimbrel_tools::cost::Spend;
use whimbrel_tools::hooks::HookDispatcher;
use whimbrel_wire::control::ContextUsage;
use whimbrel_wire::hook::HookEvent;
use whimbrel_wire::message::User;

use crate::agent::Agent;
use crate::commands::Commands;
use crate::next_step::TurnEnd;
use crate::turn::TurnOutcome;
use crate::turn_start::{self, SessionStart, TurnNotices};

/// Ends the cleared session and starts the new one: SessionEnd and SessionStart hooks run, because the model loses
/// their context too. The host gets an empty result.
pub(super) async fn run_clear(
    agent: &mut Agent,
    prompt: &User,
    old_hooks: &HookDispatcher,
    notices: TurnNotices,
    cancel: &CancellationToken,
) -> TurnOutcome {
    old_hooks.dispatch(HookEvent::SessionEnd, |input| input.session_end("clear"), cancel).await;
    notices.send(&agent.frame_sender).await;
    let start = SessionStart { source: "clear", setup_hooks: None };
    let stopped = turn_start::run_session_start_hooks(agent, Some(start), cancel).await;
    agent.conversation.record_local_command(prompt);
    agent.conversation.end_turn().await;
    let end = if stopped { TurnEnd::HookStopped } else { TurnEnd::Done };
    TurnOutcome { num_turns: 0, local_command: Some("clear"), ..TurnOutcome::new(end) }
}

/// Renders the context usage as Markdown.
pub fn render_context(usage: &ContextUsage) -> String {
    let mut text = match usage.max_tokens {
        0 => format!("{}: {} tokens (context window unknown)\n", usage.model, usage.total_tokens),
        window => {
            format!("{}: {} of {window} tokens ({}%)\n", usage.model, usage.total_tokens, usage.percentage)
        }
    };
    text += "\n| Part | Tokens |\n|---|---|\n";
    for part in &usage.categories {
        text += &format!("| {} | {} |\n", part.name, part.tokens);
    }
    if !usage.memory_files.is_empty() {
        text += "\n| Memory file | Tokens |\n|---|---|\n";
        for file in &usage.memory_files {
            text += &format!("| {} | {} |\n", file["path"].as_str().unwrap_or_default(), file["tokens"]);
        }
    }
    text += "\nThe total is counted by the provider; the parts are estimates.";
    text
}

/// Renders the cost of the session, by model and agent.
pub fn render_cost(spend: &Spend) -> String {
    let mut text = format!("Total cost: ${:.4}", spend.total_usd());
    for (model, usage) in &spend.models {
        text += &format!(
            "\n{model}: {} input, {} output, {} cache read, {} cache write tokens (${:.4})",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
            usage.cost_usd,
        );
    }
    for (agent, share) in &spend.agents {
        text += &format!("\nof which {agent}: {} tokens (${:.4})", share.tokens, share.cost_usd);
    }
    text
}

/// Renders the list of commands.
pub fn render_help(commands: &Commands) -> String {
    let lines = commands.slash_commands().into_iter().map(|command| {
        let hint = Some(command.argument_hint).filter(|hint| !hint.is_empty());
        let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
        format!("/{}{hint}: {}", command.name, command.description)
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The answer after the model has been changed.
pub(crate) fn render_model_switch(model: &str) -> String {
    format!("The model is now {model}.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use whimbrel_config::locations::ConfigLocations;
    use whimbrel_config::plugins::Plugins;
    use whimbrel_tools::cost::AgentCostTotal;
    use whimbrel_wire::control::ContextCategory;
    use whimbrel_wire::message::ModelUsage;

    use super::*;

    #[test]
    fn context_parts_are_listed_in_a_table() {
        let part = ContextCategory { name: "Messages".into(), tokens: 40, ..ContextCategory::default() };
        let usage = ContextUsage {
            model: "m".into(),
            total_tokens: 40,
            max_tokens: 200,
            percentage: 20.0,
            categories: vec![part],
            memory_files: vec![json!({"path": "/w/CLAUDE.md", "tokens": 3})],
            ..ContextUsage::default()
        };
        let shown = render_context(&usage);
        for part in ["m: 40 of 200 tokens (20%)", "| Messages | 40 |", "| /w/CLAUDE.md | 3 |"] {
            assert!(shown.contains(part), "{shown}");
        }
        assert!(render_context(&ContextUsage::default()).contains("unknown"));
    }

    #[test]
    fn cost_has_a_line_per_model_and_agent() {
        assert_eq!(render_cost(&Spend::default()), "Total cost: $0.0000");
        let mut spend = Spend::default();
        let usage = ModelUsage { input_tokens: 7, output_tokens: 3, cost_usd: 0.5, ..ModelUsage::default() };
        spend.models.push(("m".into(), usage));
        spend.agents.insert("Explore (a1)".into(), AgentCostTotal { tokens: 4, cost_usd: 0.25 });
        assert_eq!(
            render_cost(&spend),
            "Total cost: $0.5000\nm: 7 input, 3 output, 0 cache read, 0 cache write tokens ($0.5000)\nof which Explore (a1): 4 tokens ($0.2500)"
        );
    }

    #[test]
    fn help_lists_every_command() {
        let shown = render_help(&Commands::discover(&ConfigLocations::default(), &Plugins::default()).0);
        assert!(shown.contains("/compact [what the summary should keep]: Replace"), "{shown}");
        assert!(shown.contains("\n/help: List the commands"), "{shown}");
    }
}
