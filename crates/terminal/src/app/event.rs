//! Everything that can wake the application.

use whimbrel::wire::control::{McpServerStatus, ModelInfo, RewindScope, RewindSessionReply, SlashCommand};
use whimbrel::{CanUseTool, Frame, PermissionMode};

use crate::editor::Picture;
use crate::pickers::{NoteTarget, SessionScope};
use crate::prompts::RequestId;
use crate::screen::{Key, Size, Termination};
use crate::sessions::{RecordedPrompt, StoredSession};
use crate::transcript::{Item, ShellExit};

/// An event of the application.
#[derive(Debug)]
pub(crate) enum AppEvent {
    Key(Key),
    Paste(String),
    FocusGained,
    FocusLost,
    Resized(Size),
    /// A line of linear input.
    Line(String),
    /// Linear input has ended.
    InputEnded,
    /// Ctrl+C with linear input.
    InterruptSignal,
    /// A signal asks the program to end, or the terminal is gone.
    Terminate(Termination),
    SessionOpened,
    SessionFailed(String),
    Frame(Box<Frame>),
    /// A frame of an engine process could not be read.
    Malformed(String),
    SessionEnded,
    /// A tool call needs permission.
    Permission {
        id: RequestId,
        request: Box<CanUseTool>,
    },
    /// A request no longer needs an answer.
    Withdrawn(RequestId),
    Reply(Reply),
}

/// The result of an effect.
#[derive(Debug)]
pub(crate) enum Reply {
    /// What the engine offers.
    Info {
        commands: Vec<SlashCommand>,
        models: Vec<ModelInfo>,
        mode: Option<PermissionMode>,
    },
    /// Prompts of earlier sessions.
    History(Vec<String>),
    /// The branch of the project.
    Branch(Option<String>),
    /// Files for a completion.
    Files {
        query: String,
        paths: Vec<String>,
    },
    /// A page for the transcript, in Markdown.
    Page(String),
    /// Something did not work.
    Failed(String),
    /// Something worked.
    Done(String),
    /// The model was changed.
    Model(Option<String>),
    /// The mode was changed.
    Mode(PermissionMode),
    McpServers(Vec<McpServerStatus>),
    TaskOutput {
        task_id: String,
        output: String,
        total_bytes: u64,
    },
    /// Live output of the running command line.
    ShellOutput(String),
    ShellEnded {
        command: String,
        output: String,
        exit: ShellExit,
    },
    /// The text from the external editor, or why there is none.
    Edited(Result<String, String>),
    /// A picture, or why there is none.
    Picture(Result<Picture, String>),
    /// What a pasted path names, if it is a picture; the text that was pasted.
    PastedPicture {
        pasted: String,
        picture: Option<Picture>,
    },
    /// Stored sessions, and the time in milliseconds since 1970.
    Sessions {
        scope: SessionScope,
        sessions: Vec<StoredSession>,
        now_ms: u64,
    },
    /// The entries of a resumed session before its last turns, those of its last turns, and all its prompts.
    Resumed {
        earlier: Vec<Item>,
        last: Vec<Item>,
        prompts: Vec<RecordedPrompt>,
    },
    RewindPlan {
        prompt: String,
        reply: Box<RewindSessionReply>,
    },
    Rewound {
        prompt: String,
        scope: RewindScope,
        text: String,
        summary: String,
    },
    Appended(NoteTarget),
}
