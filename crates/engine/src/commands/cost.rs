//! `/cost`: shows the cost of the session.

use crate::commands::{BuiltinAction, BuiltinCommand};
use crate::cost::Spend;

pub const COMMAND: BuiltinCommand = BuiltinCommand {
    name: "cost",
    description: "Show what the session has cost so far",
    argument_hint: "",
    action: BuiltinAction::Cost,
};

pub fn render(spend: &Spend) -> String {
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
        text += &format!("\n{agent}: {} tokens of these (${:.4})", share.tokens, share.cost_usd);
    }
    text
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::message::ModelUsage;

    use super::*;
    use crate::cost::AgentShare;

    #[test]
    fn every_model_and_agent_has_a_line() {
        assert_eq!(render(&Spend::default()), "Total cost: $0.0000");
        let mut spend = Spend::default();
        let usage = ModelUsage { input_tokens: 7, output_tokens: 3, cost_usd: 0.5, ..ModelUsage::default() };
        spend.models.push(("m".into(), usage));
        spend.agents.insert("Explore (a1)".into(), AgentShare { tokens: 4, cost_usd: 0.25 });
        assert_eq!(
            render(&spend),
            "Total cost: $0.5000\nm: 7 input, 3 output, 0 cache read, 0 cache write tokens ($0.5000)\nExplore (a1): 4 tokens of these ($0.2500)"
        );
    }
}
