//! Truncates long hook texts for the model; the whole text goes to a file.

use std::path::Path;

use whimbrel_os::{files, ids};

use super::output::ParsedOutput;

/// Longer texts are truncated.
const MAX_TEXT_CHARS: usize = 10_000;
/// Length of the part shown.
const SHOWN_CHARS: usize = 2_000;

/// Truncates long texts. The whole text is saved under `spill`.
pub(super) fn truncate_texts(said: &mut ParsedOutput, spill: &Path) {
    for text in said.model_texts() {
        if text.char_indices().nth(MAX_TEXT_CHARS).is_some() {
            *text = spill_text(text, spill);
        }
    }
}

fn spill_text(text: &str, spill: &Path) -> String {
    let end = text.char_indices().nth(SHOWN_CHARS).map_or(text.len(), |(end, _)| end);
    let left_out = text.len() - end;
    let path = spill.join("hooks").join(format!("{}.txt", ids::new_task_id('h')));
    let rest = match files::create(&path, text.as_bytes()) {
        Ok(_) => format!("The whole text is in {}", path.display()),
        Err(error) => format!("The rest is lost: {} cannot be written: {error}", path.display()),
    };
    format!("{}\n[... {left_out} more bytes. {rest}]", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_saved_and_a_short_one_kept() {
        let folder = tempfile::tempdir().unwrap();
        let whole = "ü".repeat(MAX_TEXT_CHARS + 1);
        let mut said = ParsedOutput::Text(whole.clone());
        truncate_texts(&mut said, folder.path());
        let ParsedOutput::Text(text) = &said else { panic!() };
        assert!(text.len() < 2 * SHOWN_CHARS + 500 && text.starts_with("üüü"), "{text}");
        let path = text.split("The whole text is in ").nth(1).unwrap().trim_end_matches(']');
        assert_eq!(std::fs::read_to_string(path).unwrap(), whole);

        let mut said = ParsedOutput::Text("ü".repeat(MAX_TEXT_CHARS));
        truncate_texts(&mut said, folder.path());
        assert_eq!(said, ParsedOutput::Text("ü".repeat(MAX_TEXT_CHARS)));
    }

    #[test]
    fn a_failure_to_save_is_reported() {
        let mut said = ParsedOutput::Block { reason: "x".repeat(MAX_TEXT_CHARS + 1), output: None };
        truncate_texts(&mut said, Path::new("/dev/null"));
        let ParsedOutput::Block { reason, .. } = said else { panic!() };
        assert!(reason.contains("The rest is lost"), "{reason}");
    }
}
