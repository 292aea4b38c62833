//! What the application wants done. Effects are carried out at the edge; their results come back as events.

use std::path::PathBuf;

use whimbrel::PermissionMode;
use whimbrel::PermissionResult;
use whimbrel::wire::control::RewindScope;
use whimbrel::wire::message::Priority;
use whimbrel::wire::options::Effort;

use crate::editor::Piece;
use crate::pickers::{NoteTarget, SessionScope};
use crate::preferences::Preferences;
use crate::prompts::RequestId;
use crate::transcript::Item;

/// An effect.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Writes an entry to the scrollback.
    Show(Item),
    /// Writes the last lines of these entries to the scrollback.
    ShowEnd(Vec<Item>),
    /// Writes a piece of the model's text.
    Text(String),
    /// Ends the model's text.
    TextEnd,
    /// Shows the request of a prompt completely, if the live area has no room for it.
    ShowRequest(RequestId),
    Send {
        uuid: String,
        content: Vec<Piece>,
        priority: Option<Priority>,
    },
    Answer {
        id: RequestId,
        answer: PermissionResult,
    },
    Interrupt,
    SetMode(PermissionMode),
    SetModel(Option<String>),
    SetEffort(Effort),
    Background,
    StopTask(String),
    ReadTask(String),
    SuggestFiles(String),
    ShowContext,
    ShowCost,
    ShowPermissions,
    ShowDiff,
    ListMcpServers,
    ReconnectMcp(String),
    ToggleMcp {
        name: String,
        enabled: bool,
    },
    /// Opens a session; the one before is closed.
    OpenSession(SessionChoice, Box<ChosenSettings>),
    ListSessions(SessionScope),
    PlanRewind {
        prompt: String,
    },
    Rewind {
        prompt: String,
        scope: RewindScope,
    },
    AppendHistory(String),
    LoadHistory,
    FindBranch,
    SavePreferences(Box<Preferences>),
    RunShell(String),
    StopShell,
    /// Adds a command line and its output to the conversation without asking the model.
    RecordShell {
        command: String,
        output: String,
    },
    EditExternally(String),
    ReadClipboardPicture,
    /// Reads the picture that a pasted path names.
    ReadPicture {
        path: PathBuf,
        pasted: String,
    },
    Copy(String),
    WriteFile {
        path: PathBuf,
        text: String,
    },
    AppendNote {
        target: NoteTarget,
        note: String,
    },
    Notify(String),
    SetTitle(String),
    Suspend,
    Redraw,
    OpenOverlay,
    CloseOverlay,
    SetTheme(String),
    Leave(i32),
}

/// What the user chose while the program ran. It holds for later sessions as well.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChosenSettings {
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<Effort>,
    pub(crate) mode: Option<PermissionMode>,
}

/// Which session to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionChoice {
    /// What the options say.
    AsConfigured,
    New,
    Resume(String),
}
