//! Pickers about sessions: resuming one, and going back within one.

use whimbrel::wire::control::{RewindScope, RewindSessionReply};

use super::{Picker, Purpose, SessionScope};
use crate::menu::{Choice, Menu, MenuStyle};
use crate::sessions::{RecordedPrompt, StoredSession, age, size};

/// The stored sessions.
pub(crate) fn resume(sessions: &[StoredSession], scope: SessionScope, now_ms: u64) -> Picker {
    let choices = sessions.iter().map(|session| {
        let mut details = vec![age(session.modified_ms, now_ms)];
        if scope == SessionScope::AllFolders && !session.folder.is_empty() {
            details.push(session.folder.clone());
        }
        if !session.branch.is_empty() {
            details.push(session.branch.clone());
        }
        details.push(size(session.bytes));
        if !session.first_prompt.is_empty() && session.first_prompt != session.title {
            details.push(session.first_prompt.lines().next().unwrap_or_default().to_owned());
        }
        let title = session.title.lines().next().unwrap_or_default();
        Choice::new(title.chars().take(60).collect::<String>()).detail(details.join(" · "))
    });
    let (title, footer) = match scope {
        SessionScope::ThisFolder => ("Sessions of this folder", "Tab lists all folders, Esc closes"),
        SessionScope::AllFolders => ("Sessions of all folders", "Tab lists this folder, Esc closes"),
    };
    let menu = Menu::new(title, choices.collect()).style(MenuStyle::Filtered).footer(footer);
    let ids = sessions.iter().map(|session| session.id.clone()).collect();
    Picker { menu, purpose: Purpose::Resume { scope, sessions: ids } }
}

/// The prompts to which one can go back, newest first.
pub(crate) fn rewind(prompts: &[RecordedPrompt]) -> Picker {
    let newest_first = prompts.iter().rev();
    let choices = newest_first.clone().map(|prompt| {
        let line = prompt.text.lines().next().unwrap_or_default();
        Choice::new(line.chars().take(100).collect::<String>())
    });
    let menu = Menu::new("Go back to before which prompt?", choices.collect()).style(MenuStyle::Filtered);
    Picker { menu, purpose: Purpose::Rewind(newest_first.map(|prompt| prompt.uuid.clone()).collect()) }
}

/// What goes back.
pub(crate) fn rewind_scope(prompt: String, plan: &RewindSessionReply) -> Picker {
    let files = plan.files.as_ref();
    let changed = files.and_then(|files| files.files_changed.as_ref()).map_or(0, Vec::len);
    let can_restore = files.is_some_and(|files| files.can_rewind) && changed > 0;
    let lines = files.map_or_else(String::new, |files| {
        format!("+{} -{} lines", files.insertions.unwrap_or_default(), files.deletions.unwrap_or_default())
    });
    let talk = format!("{} messages are dropped", plan.messages_dropped);
    let files_text = format!("{changed} files change ({lines})");
    let mut rows = Vec::new();
    if can_restore {
        let both = Choice::new("Conversation and files").detail(format!("{talk}, {files_text}"));
        rows.push((both, Some(RewindScope::Both)));
    }
    rows.push((Choice::new("Conversation only").detail(talk), Some(RewindScope::Conversation)));
    if can_restore {
        rows.push((Choice::new("Files only").detail(files_text), Some(RewindScope::Files)));
    }
    rows.push((Choice::new("Stay here"), None));
    let notes = match files {
        Some(files) if !can_restore => {
            let reason = files.error.clone().unwrap_or_else(|| "no file changed since".into());
            vec![format!("files stay as they are: {reason}")]
        }
        Some(files) => files.files_changed.iter().flatten().take(10).cloned().collect(),
        None => Vec::new(),
    };
    let (choices, scopes): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
    let menu = Menu::new("What goes back?", choices).notes(notes);
    Picker { menu, purpose: Purpose::RewindScope { prompt, scopes } }
}
