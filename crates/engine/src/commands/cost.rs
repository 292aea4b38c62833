//! `/cost`: says what the session has spent so far.

use crate::commands::{Action, Command};
use crate::cost::Spend;

/// The command.
pub const COMMAND: Command = Command {
    name: "cost",
    description: "Show what the session has cost so far",
    argument_hint: "",
    action: Action::Cost,
};

/// The spend as a person reads it.
pub fn text(spend: &Spend) -> String {
    let mut text = format!("Total cost: ${:.4}", spend.dollars());
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
    text
}

#[cfg(test)]
mod tests {
    use whimbrel_wire::message::ModelUsage;

    use super::*;

    #[test]
    fn every_model_has_a_line() {
        assert_eq!(text(&Spend::default()), "Total cost: $0.0000");
        let mut spend = Spend::default();
        let usage = ModelUsage { input_tokens: 7, output_tokens: 3, cost_usd: 0.5, ..ModelUsage::default() };
        spend.models.insert("m".into(), usage);
        assert_eq!(
            text(&spend),
            "Total cost: $0.5000\nm: 7 input, 3 output, 0 cache read, 0 cache write tokens ($0.5000)"
        );
    }
}
