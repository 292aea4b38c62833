//! The system prompt. Nothing in it depends on the machine or the day, so that it stays cached.

use whimbrel_wire::options::SystemPrompt;

use crate::output_styles::{Coding, Style};

/// Says who speaks; first in every prompt that is not replaced.
const IDENTITY: &str = "You are an agent run by Whimbrel. You work on a person's computer through tools.";

/// What is said where the caller wants nothing said: servers and readers of logs expect some prompt.
const BARE: &str = "You are an agent with tools.";

/// How to work, in chapters with headings.
const CONDUCT: &str = include_str!("prompt.md");

/// The chapter that every output style takes the place of.
const SPEECH: &str = "# How you speak";

/// The chapters about work on code.
const CODING: &[&str] = &["# How you work", "# Long work"];

/// The system blocks for a choice of the caller. An absent choice is the default prompt, in an output style perhaps; an
/// empty text leaves next to nothing.
pub fn system(choice: Option<&SystemPrompt>, style: Option<&Style>, append: Option<&str>) -> Vec<String> {
    let mut blocks = match choice {
        None | Some(SystemPrompt::Preset { .. }) => vec![usual(style)],
        Some(SystemPrompt::Text(text)) => vec![text.clone()],
        // Read when the session was set up.
        Some(SystemPrompt::File { .. }) => Vec::new(),
    };
    blocks.extend(append.map(str::to_owned));
    blocks.retain(|block| !block.trim().is_empty());
    if blocks.is_empty() {
        blocks.push(BARE.to_owned());
    }
    blocks
}

/// The usual prompt, in a style.
fn usual(style: Option<&Style>) -> String {
    let Some(style) = style else { return format!("{IDENTITY}\n\n{}", CONDUCT.trim()) };
    let stays = |chapter: &String| match style.coding {
        Coding::Kept => !chapter.starts_with(SPEECH),
        Coding::Dropped => ![&[SPEECH], CODING].concat().iter().any(|heading| chapter.starts_with(heading)),
    };
    let chapters: Vec<String> = chapters().filter(stays).collect();
    let (name, text) = (&style.name, &style.text);
    format!("{IDENTITY}\n\n{}\n\n# Output style: {name}\n{text}", chapters.join("\n\n"))
}

/// The chapters of the prompt, each with its heading.
fn chapters() -> impl Iterator<Item = String> {
    CONDUCT.trim().split("\n\n# ").enumerate().map(|(index, chapter)| {
        // The mark of a heading went with the split, except for the first.
        if index == 0 { chapter.to_owned() } else { format!("# {chapter}") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(coding: Coding) -> Style {
        Style { name: "Pirate".into(), description: String::new(), coding, text: "Talk like one.".into() }
    }

    #[test]
    fn the_chapters_are_the_whole_prompt() {
        assert_eq!(chapters().collect::<Vec<_>>().join("\n\n"), CONDUCT.trim());
        for heading in [&[SPEECH], CODING].concat() {
            assert!(chapters().any(|chapter| chapter.starts_with(heading)), "{heading}");
        }
    }

    #[test]
    fn a_style_takes_the_place_of_how_to_speak_and_perhaps_of_how_to_work() {
        let rows = [
            (None, [true, true, true, false]),
            (Some(style(Coding::Kept)), [false, true, true, true]),
            (Some(style(Coding::Dropped)), [false, false, true, true]),
        ];
        for (style, expected) in rows {
            let blocks = system(None, style.as_ref(), Some("More."));
            let [prompt, more] = blocks.as_slice() else { panic!("{blocks:?}") };
            let has = [SPEECH, "# How you work", "# Care", "# Output style: Pirate\nTalk like one."];
            assert_eq!(has.map(|part| prompt.contains(part)), expected, "{style:?}");
            assert_eq!(more, "More.");
        }
    }

    #[test]
    fn a_prompt_of_the_host_has_no_style() {
        let own = SystemPrompt::Text("Mine.".into());
        assert_eq!(system(Some(&own), Some(&style(Coding::Kept)), None), ["Mine."]);
    }
}
