//! Lists from which the user chooses: models, modes, sessions, prompts to go back to, servers, tasks. A picker is a menu
//! and what its choices stand for; what a choice does is decided by the application.

mod engine;
mod sessions;
mod text;

use whimbrel::PermissionMode;
use whimbrel::wire::control::RewindScope;
use whimbrel::wire::options::Effort;

use crate::menu::{Choice, Menu};
use crate::preferences::Preferences;
use crate::theme::Theme;

pub(crate) use engine::{McpServer, effort, mcp, mcp_server, mode, model, task, tasks};
pub(crate) use sessions::{resume, rewind, rewind_scope};
pub(crate) use text::{SETUP_PAGE, export_markdown, picture_path};

/// An open list.
#[derive(Debug, Clone)]
pub(crate) struct Picker {
    pub(crate) menu: Menu,
    pub(crate) purpose: Purpose,
}

/// What the choices stand for, in their order.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    Model(Vec<String>),
    Mode(Vec<PermissionMode>),
    Effort(Vec<Effort>),
    Theme(Vec<&'static str>),
    Config(Vec<ConfigRow>),
    Resume {
        scope: SessionScope,
        sessions: Vec<String>,
    },
    /// Ids of prompts.
    Rewind(Vec<String>),
    /// `None` closes the list.
    RewindScope {
        prompt: String,
        scopes: Vec<Option<RewindScope>>,
    },
    /// Ids and names.
    Tasks(Vec<(String, String)>),
    Task(String),
    Mcp(Vec<McpServer>),
    McpServer {
        name: String,
        is_enabled: bool,
    },
    Note(String),
    Copy(Vec<String>),
    Leave,
}

/// Which sessions are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionScope {
    ThisFolder,
    AllFolders,
}

/// An instruction file that takes notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoteTarget {
    Project,
    User,
}

/// A row of the preferences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConfigRow {
    Theme,
    Vim,
    Notifications,
    Plain,
}

/// The preferences.
pub(crate) fn config(preferences: &Preferences) -> Picker {
    let switch = |is_on: bool| if is_on { "on" } else { "off" };
    let choices = vec![
        Choice::new("Colors").detail(preferences.theme.clone()),
        Choice::new("Vi keys").detail(switch(preferences.vim)),
        Choice::new("Notifications").detail(switch(preferences.notifications)),
        Choice::new("Linear output, as for a screen reader").detail(switch(preferences.plain)),
    ];
    let rows = vec![ConfigRow::Theme, ConfigRow::Vim, ConfigRow::Notifications, ConfigRow::Plain];
    let menu = Menu::new("Preferences of the terminal", choices)
        .footer("Enter changes, Esc closes. Keys are in terminal.json; whimbrel config has the settings of the engine.");
    Picker { menu, purpose: Purpose::Config(rows) }
}

/// The themes.
pub(crate) fn theme(current: &str) -> Picker {
    let detail = |name| match name {
        "auto" => "the terminal's own colors",
        "dark" => "for a dark background",
        "light" => "for a light background",
        _ => "no colors",
    };
    let choices =
        Theme::NAMES.iter().map(|name| Choice::new(*name).detail(detail(name)).current(*name == current));
    Picker { menu: Menu::new("Colors", choices.collect()), purpose: Purpose::Theme(Theme::NAMES.to_vec()) }
}

/// Where a note is kept.
pub(crate) fn note_target(note: String) -> Picker {
    let choices = vec![
        Choice::new("In the project").detail("CLAUDE.md in this folder"),
        Choice::new("For all your projects").detail("CLAUDE.md in your configuration directory"),
    ];
    let menu = Menu::new("Where is the note kept?", choices).notes(vec![note.clone()]);
    Picker { menu, purpose: Purpose::Note(note) }
}

/// The answer, or one of its code blocks.
pub(crate) fn copy(answer: String, blocks: Vec<(Option<String>, String)>) -> Picker {
    let mut choices = vec![Choice::new("The whole answer")];
    let mut texts = vec![answer];
    for (language, code) in blocks {
        let first = code.lines().next().unwrap_or_default().trim().to_owned();
        let language = language.filter(|name| !name.is_empty()).unwrap_or_else(|| "code".into());
        choices.push(Choice::new(language).detail(first));
        texts.push(code);
    }
    Picker { menu: Menu::new("Copy what?", choices), purpose: Purpose::Copy(texts) }
}

/// Whether to leave while something runs.
pub(crate) fn leave() -> Picker {
    let choices = vec![Choice::new("Stay").letter('n'), Choice::new("Leave and stop what runs").letter('y')];
    Picker { menu: Menu::new("Something runs. Leave?", choices), purpose: Purpose::Leave }
}
