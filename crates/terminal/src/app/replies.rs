//! Results of effects.

use super::App;
use crate::app::effect::Effect;
use crate::app::event::Reply;
use crate::completion::Completion;
use crate::pickers::{self, NoteTarget};
use crate::transcript::{Item, NoteLevel};

/// Output of a command line that is kept while it runs.
const MAX_SHELL_OUTPUT: usize = 64 * 1024;

impl App {
    pub(super) fn handle_reply(&mut self, reply: Reply) {
        match reply {
            Reply::Info { commands, models, mode } => {
                self.slash_commands = commands;
                self.models = models;
                if let Some(mode) = mode {
                    self.conversation.mode = mode;
                }
            }
            Reply::History(prompts) => self.input.history.load(prompts),
            Reply::Branch(branch) => self.branch = branch,
            Reply::Files { query, paths } => self.handle_files(&query, paths),
            Reply::Page(text) => self.show(Item::Page(text)),
            Reply::Failed(text) => self.note(NoteLevel::Error, text),
            Reply::Done(text) => self.note(NoteLevel::Info, text),
            Reply::Model(model) => {
                if let Some(model) = model {
                    self.note(NoteLevel::Info, format!("the model is {model}"));
                    self.chosen.model = Some(model.clone());
                    self.conversation.model = Some(model);
                }
            }
            Reply::Mode(mode) => {
                self.chosen.mode = Some(mode);
                self.conversation.mode = mode;
            }
            Reply::McpServers(servers) if servers.is_empty() => {
                self.note(NoteLevel::Info, "there are no MCP servers; whimbrel mcp add adds one");
            }
            Reply::McpServers(servers) => self.picker = Some(pickers::mcp(&servers)),
            Reply::TaskOutput { task_id, output, total_bytes } => {
                let shown = crate::text::sanitize_lines(output.trim_end()).join("\n");
                let page =
                    format!("Output of task `{task_id}` ({total_bytes} bytes):\n\n````\n{shown}\n````");
                self.show(Item::Page(page));
            }
            Reply::ShellOutput(text) => {
                if let Some(shell) = &mut self.shell {
                    shell.output.push_str(&text);
                    let excess = shell.output.len().saturating_sub(MAX_SHELL_OUTPUT);
                    let start = shell.output.ceil_char_boundary(excess);
                    shell.output.drain(..start);
                }
            }
            Reply::ShellEnded { command, output, exit } => {
                self.shell = None;
                self.effect(Effect::RecordShell { command: command.clone(), output: output.clone() });
                self.show(Item::Shell { command, output, exit });
            }
            Reply::Edited(Ok(text)) => {
                self.input.close_lists();
                self.input.editor.set_edited_text(&text);
            }
            Reply::Edited(Err(error)) | Reply::Picture(Err(error)) => self.note(NoteLevel::Warning, error),
            Reply::Picture(Ok(picture)) | Reply::PastedPicture { picture: Some(picture), .. } => {
                self.attach_picture(picture);
            }
            Reply::PastedPicture { pasted, picture: None } => self.input.editor.paste(&pasted),
            Reply::Sessions { scope, sessions, now_ms } => {
                self.picker = Some(pickers::resume(&sessions, scope, now_ms));
            }
            Reply::Resumed { earlier, last, prompts } => {
                self.sent_prompts = prompts;
                self.show_resumed(earlier, last);
            }
            Reply::RewindPlan { prompt, reply } => self.picker = Some(pickers::rewind_scope(prompt, &reply)),
            Reply::Rewound { prompt, scope, text, summary } => {
                self.forget_prompts_from(&prompt, scope);
                self.show(Item::Mark(summary));
                if self.input.is_empty() && !text.is_empty() {
                    self.input.set_text(&text);
                }
            }
            Reply::Appended(target) => {
                let name = match target {
                    NoteTarget::Project => "the project's CLAUDE.md",
                    NoteTarget::User => "your own CLAUDE.md",
                };
                self.note(NoteLevel::Info, format!("the note is in {name}"));
            }
        }
    }

    fn handle_files(&mut self, query: &str, paths: Vec<String>) {
        let Some((asked, range)) = self.input.file_query.clone() else { return };
        if asked == query {
            self.input.completion = Completion::files(range, paths);
        }
    }

    /// The last turns go to the scrollback, all entries to the transcript view.
    fn show_resumed(&mut self, earlier: Vec<Item>, last: Vec<Item>) {
        let mark = match earlier.len() {
            0 => "the session is resumed".to_owned(),
            count => format!("the session is resumed; /transcript shows {count} earlier entries"),
        };
        for item in earlier.into_iter().chain(last.iter().cloned()) {
            self.conversation.transcript.push(item);
        }
        self.effect(Effect::ShowEnd(last));
        self.show(Item::Mark(mark));
    }
}
