//! The input line with all that belongs to it: vi keys, shell mode, history, search and completion.

use std::ops::Range;

use crate::completion::Completion;
use crate::editor::vim::Vim;
use crate::editor::{Editor, Piece};
use crate::history::{History, HistorySearch};

/// The input line.
#[derive(Debug, Default)]
pub(crate) struct InputLine {
    pub(crate) editor: Editor,
    /// The vi keys, if they are on.
    pub(crate) vim: Option<Vim>,
    /// The line is a command line.
    pub(crate) is_shell: bool,
    pub(crate) history: History,
    pub(crate) search: Option<HistorySearch>,
    pub(crate) completion: Option<Completion>,
    /// The query of the files that were asked for, and what they would replace.
    pub(crate) file_query: Option<(String, Range<usize>)>,
}

impl InputLine {
    /// Puts a text into the line, for a recalled prompt.
    pub(crate) fn set_text(&mut self, text: &str) {
        let (is_shell, text) = match text.strip_prefix('!') {
            Some(command) => (true, command),
            None => (false, text),
        };
        self.is_shell = is_shell;
        self.editor.set_text(text);
        self.close_lists();
    }

    /// Puts a prompt back into the line, with its pictures.
    pub(crate) fn set_pieces(&mut self, pieces: Vec<Piece>) {
        self.is_shell = false;
        self.editor.set_pieces(pieces);
        self.close_lists();
    }

    /// The text as it is kept in the history.
    pub(crate) fn history_text(&self) -> String {
        let mark = if self.is_shell { "!" } else { "" };
        format!("{mark}{}", self.editor.expanded_text())
    }

    /// Clears the line.
    pub(crate) fn clear(&mut self) {
        self.editor.clear();
        self.is_shell = false;
        self.close_lists();
        if let Some(vim) = &mut self.vim {
            vim.reset();
        }
    }

    /// Closes the completion.
    pub(crate) fn close_lists(&mut self) {
        self.completion = None;
        self.file_query = None;
    }

    /// Returns whether there is nothing in the line.
    pub(crate) fn is_empty(&self) -> bool {
        self.editor.is_empty() && !self.is_shell
    }
}
