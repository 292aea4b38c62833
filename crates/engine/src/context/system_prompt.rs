//! The system prompt. It does not depend on machine or date, so that it stays cached.

use whimbrel_config::output_styles::{CodingInstructions, OutputStyle};
use whimbrel_wire::options::SystemPrompt;

/// First paragraph of every prompt that is not replaced.
const IDENTITY: &str = "You are an agent run by Whimbrel. You work on the user's computer through tools.";

/// Used if the caller wants an empty prompt: servers and log readers expect one.
const MINIMAL_PROMPT: &str = "You are an agent with tools.";

/// The default prompt, in sections with headings.
const DEFAULT_SECTIONS: &str = include_str!("prompt.md");

/// The section that every output style replaces.
const COMMUNICATION_HEADING: &str = "# Communication";

/// The sections about coding, which an output style may drop.
const CODING_HEADINGS: &[&str] = &["# Working method", "# Long tasks"];

/// The system prompt blocks for a choice of the caller. `None` is the default prompt, with an output style if there is
/// one; an empty text leaves a minimal prompt.
pub fn system_blocks(
    choice: Option<&SystemPrompt>,
    style: Option<&OutputStyle>,
    append: Option<&str>,
) -> Vec<String> {
    let mut blocks = match choice {
        None | Some(SystemPrompt::Preset { .. }) => vec![default_prompt(style)],
        Some(SystemPrompt::Text(text)) => vec![text.clone()],
        // Read during setup.
        Some(SystemPrompt::File { .. }) => Vec::new(),
    };
    blocks.extend(append.map(str::to_owned));
    blocks.retain(|block| !block.trim().is_empty());
    if blocks.is_empty() {
        blocks.push(MINIMAL_PROMPT.to_owned());
    }
    blocks
}

/// The default prompt, with an output style if there is one.
fn default_prompt(style: Option<&OutputStyle>) -> String {
    let Some(style) = style else { return format!("{IDENTITY}\n\n{}", DEFAULT_SECTIONS.trim()) };
    let is_kept = |section: &String| match style.coding_instructions {
        CodingInstructions::Keep => !section.starts_with(COMMUNICATION_HEADING),
        CodingInstructions::Drop => ![&[COMMUNICATION_HEADING], CODING_HEADINGS]
            .concat()
            .iter()
            .any(|heading| section.starts_with(heading)),
    };
    let sections: Vec<String> = sections().filter(is_kept).collect();
    let (name, text) = (&style.name, &style.text);
    format!("{IDENTITY}\n\n{}\n\n# Output style: {name}\n{text}", sections.join("\n\n"))
}

/// The sections of the prompt, each with its heading.
fn sections() -> impl Iterator<Item = String> {
    DEFAULT_SECTIONS.trim().split("\n\n# ").enumerate().map(|(index, section)| {
        // The split removes the heading marker from all but the first.
        if index == 0 { section.to_owned() } else { format!("# {section}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(coding: CodingInstructions) -> OutputStyle {
        OutputStyle {
            name: "Pirate".into(),
            description: String::new(),
            coding_instructions: coding,
            text: "Talk like one.".into(),
        }
    }

    #[test]
    fn sections_make_up_the_whole_prompt() {
        assert_eq!(sections().collect::<Vec<_>>().join("\n\n"), DEFAULT_SECTIONS.trim());
        for heading in [&[COMMUNICATION_HEADING], CODING_HEADINGS].concat() {
            assert!(sections().any(|section| section.starts_with(heading)), "{heading}");
        }
    }

    #[test]
    fn style_replaces_communication_and_optionally_coding_sections() {
        let rows = [
            (None, [true, true, true, false]),
            (Some(style(CodingInstructions::Keep)), [false, true, true, true]),
            (Some(style(CodingInstructions::Drop)), [false, false, true, true]),
        ];
        for (style, expected) in rows {
            let blocks = system_blocks(None, style.as_ref(), Some("More."));
            let [prompt, more] = blocks.as_slice() else { panic!("{blocks:?}") };
            let parts = [
                COMMUNICATION_HEADING,
                "# Working method",
                "# Safety",
                "# Output style: Pirate\nTalk like one.",
            ];
            assert_eq!(parts.map(|part| prompt.contains(part)), expected, "{style:?}");
            assert_eq!(more, "More.");
        }
    }

    #[test]
    fn host_prompt_ignores_style() {
        let host_prompt = SystemPrompt::Text("Mine.".into());
        assert_eq!(
            system_blocks(Some(&host_prompt), Some(&style(CodingInstructions::Keep)), None),
            ["Mine."]
        );
    }
}
