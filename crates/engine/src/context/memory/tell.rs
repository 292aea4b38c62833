//! Instruction files as the model reads them, pure.

use super::Kind;
use super::gather::Told;

/// The files of the start; none if there are none.
pub(super) fn at_start(told: &[Told]) -> Option<String> {
    let head = "Instructions of the person and the project, for every task here. Follow them as far as they apply; they go before your habits.";
    text(head, told)
}

/// The files of folders that the model has come to.
pub(super) fn nested(told: &[Told]) -> Option<String> {
    let head = "Further instructions, for the files in and below the folder of each:";
    text(head, told)
}

fn text(head: &str, told: &[Told]) -> Option<String> {
    if told.is_empty() {
        return None;
    }
    let files: Vec<String> = told.iter().map(one).collect();
    Some(format!("<system-reminder>\n{head}\n\n{}\n</system-reminder>", files.join("\n\n")))
}

fn one(told: &Told) -> String {
    let Told { file, text, cut_from } = told;
    let whose = match file.kind {
        Kind::Managed => "the administrator's",
        Kind::User => "the person's, for all projects",
        Kind::Project => "the project's",
        Kind::Local => "the person's, for this project",
    };
    let imported =
        file.parent.as_ref().map(|parent| format!(", imported by {}", parent.display())).unwrap_or_default();
    let rest = cut_from
        .map(|size| format!("\n(Cut off: the file has {size} bytes. Read it if you need the rest.)"))
        .unwrap_or_default();
    format!("{} ({whose}{imported}):\n{text}{rest}", file.path.display())
}
