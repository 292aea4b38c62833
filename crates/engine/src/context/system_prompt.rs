//! The system prompt. Nothing in it depends on the machine or the day, so that it stays cached.

use whimbrel_wire::options::SystemPrompt;

use crate::output_styles::{CodingInstructions, OutputStyle};

/// Says who speaks; first in every prompt that is not replaced.
const IDENTITY: &str = "You are an agent run by Whimbrel. You work on a person's computer through tools.";

/// What is said where the caller wants nothing said: servers and readers of logs expect some prompt.
const MINIMAL_PROMPT: &str = "You are an agent with tools.";

/// How to work, in chapters with headings.
const DEFAULT_SECTIONS: &str = include_str!("prompt.md");

/// The chapter that every output style takes the place of.
const SPEECH_HEADING: &str = "# How you speak";

/// The chapters about work on code.
const CODING_HEADINGS: &[&str] = &["# How you work", "# Long work"];

/// The system blocks for a choice of the caller. An absent choice is the default prompt, in an output style perhaps; an
/// empty text leaves next to nothing.
pub fn system_blocks(choice: Option<&SystemPrompt>, style: Option<&OutputStyle>, append: Option<&str>) -> Vec<String> {
    let mut blocks = match choice {
        None | Some(SystemPrompt::Preset { .. }) => vec![default_prompt(style)],
        Some(SystemPrompt::Text(text)) => vec![text.clone()],
        // Read when the session was set up.
        Some(SystemPrompt::File { .. }) => Vec::new(),
    };
    blocks.extend(append.map(str::to_owned));
    blocks.retain(|block| !block.trim().is_empty());
    if blocks.is_empty() {
        blocks.push(MINIMAL_PROMPT.to_owned());
    }
    blocks
}

/// The usual prompt, in a style.
fn default_prompt(style: Option<&OutputStyle>) -> String {
    let Some(style) = style else { return format!("{IDENTITY}\n\n{}", DEFAULT_SECTIONS.trim()) };
    let stays = |chapter: &String| match style.coding_instructions {
        CodingInstructions::Keep => !chapter.starts_with(SPEECH_HEADING),
        CodingInstructions::Drop => ![&[SPEECH_HEADING], CODING_HEADINGS].concat().iter().any(|heading| chapter.starts_with(heading)),
    };
    let chapters: Vec<String> = sections().filter(stays).collect();
    let (name, text) = (&style.name, &style.text);
    format!("{IDENTITY}\n\n{}\n\n# Output style: {name}\n{text}", chapters.join("\n\n"))
}

/// The chapters of the prompt, each with its heading.
fn sections() -> impl Iterator<Item = String> {
    DEFAULT_SECTIONS.trim().split("\n\n# ").enumerate().map(|(index, chapter)| {
        // The mark of a heading went with the split, except for the first.
        if index == 0 { chapter.to_owned() } else { format!("# {chapter}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(coding: CodingInstructions) -> OutputStyle {
        OutputStyle { name: "Pirate".into(), description: String::new(), coding_instructions: coding, text: "Talk like one.".into() }
    }

    #[test]
    fn the_chapters_are_the_whole_prompt() {
        assert_eq!(sections().collect::<Vec<_>>().join("\n\n"), DEFAULT_SECTIONS.trim());
        for heading in [&[SPEECH_HEADING], CODING_HEADINGS].concat() {
            assert!(sections().any(|chapter| chapter.starts_with(heading)), "{heading}");
        }
    }

    #[test]
    fn a_style_takes_the_place_of_how_to_speak_and_perhaps_of_how_to_work() {
        let rows = [
            (None, [true, true, true, false]),
            (Some(style(CodingInstructions::Keep)), [false, true, true, true]),
            (Some(style(CodingInstructions::Drop)), [false, false, true, true]),
        ];
        for (style, expected) in rows {
            let blocks = system_blocks(None, style.as_ref(), Some("More."));
            let [prompt, more] = blocks.as_slice() else { panic!("{blocks:?}") };
            let has = [SPEECH_HEADING, "# How you work", "# Care", "# Output style: Pirate\nTalk like one."];
            assert_eq!(has.map(|part| prompt.contains(part)), expected, "{style:?}");
            assert_eq!(more, "More.");
        }
    }

    #[test]
    fn a_prompt_of_the_host_has_no_style() {
        let own = SystemPrompt::Text("Mine.".into());
        assert_eq!(system_blocks(Some(&own), Some(&style(CodingInstructions::Keep)), None), ["Mine."]);
    }
}
