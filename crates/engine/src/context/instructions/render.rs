//! Renders instruction files for the model (pure).

use super::InstructionKind;
use super::load::InstructionText;

/// Renders the initial files; none if there are none.
pub(super) fn render_initial(told: &[InstructionText]) -> Option<String> {
    let head = "Instructions of the person and the project, for every task here. Follow them as far as they apply; they go before your habits.";
    render_files(head, told)
}

/// Renders files of subdirectories.
pub(super) fn render_nested(told: &[InstructionText]) -> Option<String> {
    let head = "Further instructions, for the files in and below the folder of each:";
    render_files(head, told)
}

fn render_files(head: &str, told: &[InstructionText]) -> Option<String> {
    if told.is_empty() {
        return None;
    }
    let files: Vec<String> = told.iter().map(render_file).collect();
    Some(format!("<system-reminder>\n{head}\n\n{}\n</system-reminder>", files.join("\n\n")))
}

fn render_file(told: &InstructionText) -> String {
    let InstructionText { file, text, full_size: cut_from } = told;
    let whose = match file.kind {
        InstructionKind::Managed => "the administrator's",
        InstructionKind::User => "the person's, for all projects",
        InstructionKind::Project => "the project's",
        InstructionKind::Local => "the person's, for this project",
    };
    let imported =
        file.parent.as_ref().map(|parent| format!(", imported by {}", parent.display())).unwrap_or_default();
    let rest = cut_from
        .map(|size| format!("\n(Cut off: the file has {size} bytes. Read it if you need the rest.)"))
        .unwrap_or_default();
    format!("{} ({whose}{imported}):\n{text}{rest}", file.path.display())
}
