//! `whimbrel sandbox status`: each tier is tried, and what is missing is explained.

use std::fmt::Write;

use serde_json::{Value, json};
use whimbrel_sandbox::ladder::{Obstacle, Tier, find_bwrap, probe_tier};
use whimbrel_sandbox::program::LauncherProgram;

use crate::arg_list::ListFormat;
use crate::exit_code::FAILURE;

/// Tries all tiers and returns the page and the exit code.
pub(super) fn show(format: ListFormat) -> Result<(String, i32), String> {
    let launcher = LauncherProgram::this_program()
        .map_err(|error| format!("Cannot find the file of this program: {error}."))?;
    let tiers: Vec<(Tier, Option<Obstacle>)> = Tier::ALL
        .iter()
        .map(|tier| (*tier, probe_tier(&launcher, find_bwrap().as_deref(), *tier).err()))
        .collect();
    let page = match format {
        ListFormat::Text => render_text(&tiers),
        ListFormat::Json => format!("{:#}\n", render_json(&tiers)),
    };
    // The weakest tier is used only if it is asked for.
    let is_usable = tiers.iter().any(|(tier, obstacle)| *tier != Tier::MachineProc && obstacle.is_none());
    Ok((page, if is_usable { 0 } else { FAILURE }))
}

fn render_text(tiers: &[(Tier, Option<Obstacle>)]) -> String {
    let mut page = String::new();
    let mut is_first = true;
    for (tier, obstacle) in tiers {
        let state = match obstacle {
            None if is_first => "works, and is used",
            None => "works",
            Some(_) => "does not work",
        };
        is_first &= obstacle.is_some();
        // Writing to a string does not fail.
        let _ = writeln!(page, "{:<14} {state}", tier.name());
        if let Some(Obstacle { cause, remedy }) = obstacle {
            let _ = writeln!(page, "               {cause}.\n               {remedy}.");
        }
        for loss in tier.losses() {
            let _ = writeln!(page, "               - {loss}");
        }
    }
    page
}

fn render_json(tiers: &[(Tier, Option<Obstacle>)]) -> Value {
    let tier = |(tier, obstacle): &(Tier, Option<Obstacle>)| {
        json!({
            "tier": tier.name(),
            "works": obstacle.is_none(),
            "losses": tier.losses(),
            "cause": obstacle.as_ref().map(|obstacle| &obstacle.cause),
            "remedy": obstacle.as_ref().map(|obstacle| &obstacle.remedy),
        })
    };
    Value::Array(tiers.iter().map(tier).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_working_tier_is_the_used_one() {
        let obstacle = Obstacle { cause: "it is refused".into(), remedy: "Allow it".into() };
        let tiers = [(Tier::Namespaces, Some(obstacle)), (Tier::Bwrap, None), (Tier::MachineProc, None)];
        let page = render_text(&tiers);
        assert!(page.starts_with("namespaces     does not work\n               it is refused.\n               Allow it.\nbwrap          works, and is used\n"));
        assert!(page.contains("machine-proc   works\n"));
        assert_eq!(render_json(&tiers)[0]["remedy"], "Allow it");
    }
}
