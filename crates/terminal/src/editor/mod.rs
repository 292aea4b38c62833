//! The input line: text, caret, undo, killed text and attachments. It knows no keys and no screen; see [`layout`] for its
//! rows on a screen and [`vim`] for the vi keys.

mod attachments;
mod boundaries;
mod kill_ring;
pub(crate) mod layout;
mod undo;
pub(crate) mod vim;

use std::ops::Range;

use attachments::AttachmentList;
pub(crate) use attachments::{Attachment, Picture, Piece};
use boundaries::{next_grapheme, previous_grapheme};
use kill_ring::{KillDirection, KillRing};
use layout::Layout;
use undo::{ChangeKind, UndoHistory};

/// A paste above one of these limits is shown as a placeholder.
const MAX_INLINE_PASTE_LINES: usize = 10;
const MAX_INLINE_PASTE_CHARS: usize = 1000;

/// Movement of the caret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Movement {
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    Start,
    End,
}

/// A change of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edit {
    DeleteLeft,
    DeleteRight,
    KillWordLeft,
    KillWordRight,
    /// Kills back to a blank, as a shell does on Ctrl+W.
    KillToBlankLeft,
    KillToLineStart,
    KillToLineEnd,
    Yank,
    /// Replaces what was just yanked by what was killed before it.
    YankPrevious,
    Transpose,
    Undo,
    Redo,
}

/// The input line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Editor {
    /// Attachments are single characters in it; see [`attachments`].
    text: String,
    /// Byte offset, always between graphemes.
    caret: usize,
    attachments: AttachmentList,
    undo: UndoHistory,
    kills: KillRing,
    /// Column that moving up and down aims at.
    goal_column: Option<usize>,
    /// What was yanked last, as long as nothing else happened.
    last_yank: Option<Range<usize>>,
}

impl Editor {
    /// The text, with one character for each attachment.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Byte offset of the caret.
    pub(crate) fn caret(&self) -> usize {
        self.caret
    }

    /// Returns whether there is neither text nor attachment.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text with pasted text in place, and `[picture 1]` for pictures.
    pub(crate) fn expanded_text(&self) -> String {
        self.pieces()
            .into_iter()
            .map(|piece| match piece {
                Piece::Text(text) => text,
                Piece::Picture(number, _) => format!("[picture {number}]"),
            })
            .collect()
    }

    /// The content in order, with pasted text in place.
    pub(crate) fn pieces(&self) -> Vec<Piece> {
        self.attachments.split(&self.text)
    }

    /// Clears the content; what was killed stays.
    pub(crate) fn clear(&mut self) {
        *self = Self { kills: std::mem::take(&mut self.kills), ..Self::default() };
    }

    /// Replaces the content by a text; the caret is at its end. A long text becomes a placeholder.
    pub(crate) fn set_text(&mut self, text: &str) {
        self.record(ChangeKind::Other);
        self.text.clear();
        self.caret = 0;
        self.insert_pasted(text);
    }

    /// Replaces the content by the pieces of a prompt; the caret is at its end.
    pub(crate) fn set_pieces(&mut self, pieces: Vec<Piece>) {
        self.record(ChangeKind::Other);
        self.text.clear();
        self.caret = 0;
        for piece in pieces {
            match piece {
                Piece::Text(text) => self.insert_pasted(&text),
                Piece::Picture(_, picture) => self.insert_attachment(Attachment::Picture(picture)),
            }
        }
    }

    /// Replaces the content by a text that the user edited elsewhere: it is shown completely, and where it still names a
    /// picture, as [`Self::expanded_text`] did, the picture stands.
    pub(crate) fn set_edited_text(&mut self, text: &str) {
        let mut edited = attachments::without_placeholders(text);
        for placeholder in self.text.chars().filter(|character| self.attachments.is_picture(*character)) {
            if let Some(label) = self.attachments.label(placeholder) {
                edited = edited.replacen(&label, placeholder.encode_utf8(&mut [0; 4]), 1);
            }
        }
        self.record(ChangeKind::Other);
        self.caret = edited.len();
        self.text = edited;
    }

    /// Replaces the content by a text that is shown completely.
    #[cfg(test)]
    pub(crate) fn set_inline_text(&mut self, text: &str, caret: usize) {
        self.record(ChangeKind::Other);
        self.text = attachments::without_placeholders(text);
        self.caret = boundaries::floor_grapheme(&self.text, caret.min(self.text.len()));
    }

    /// Inserts typed text.
    pub(crate) fn insert(&mut self, text: &str) {
        let is_blank = text.chars().all(char::is_whitespace);
        self.record(if is_blank { ChangeKind::Blank } else { ChangeKind::Typed });
        self.insert_raw(&attachments::without_placeholders(text));
    }

    /// Inserts pasted text: CRLF becomes LF, and a long text becomes a placeholder.
    pub(crate) fn paste(&mut self, text: &str) {
        self.record(ChangeKind::Other);
        self.insert_pasted(text);
    }

    fn insert_pasted(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_long =
            text.len() > MAX_INLINE_PASTE_CHARS && text.chars().nth(MAX_INLINE_PASTE_CHARS).is_some();
        if is_long || text.lines().nth(MAX_INLINE_PASTE_LINES).is_some() {
            self.insert_attachment(Attachment::Paste(text.into()));
        } else {
            self.insert_raw(&attachments::without_placeholders(&text));
        }
    }

    /// Inserts an attachment at the caret.
    pub(crate) fn attach(&mut self, attachment: Attachment) {
        self.record(ChangeKind::Other);
        self.insert_attachment(attachment);
    }

    fn insert_attachment(&mut self, attachment: Attachment) {
        let placeholder = self.attachments.add(attachment);
        self.insert_raw(placeholder.encode_utf8(&mut [0; 4]));
    }

    fn insert_raw(&mut self, text: &str) {
        self.text.insert_str(self.caret, text);
        self.caret += text.len();
        // A combining character joins the grapheme before it.
        self.caret = boundaries::ceil_grapheme(&self.text, self.caret);
    }

    /// Replaces a range by a text and puts the caret behind it.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.record(ChangeKind::Other);
        self.text.replace_range(range.clone(), "");
        self.caret = range.start;
        self.insert_raw(text);
    }

    /// Moves the caret.
    pub(crate) fn move_caret(&mut self, movement: Movement) {
        self.end_group();
        self.caret = self.target(movement);
    }

    /// Moves the caret to an offset, or to the grapheme boundary before it.
    pub(crate) fn move_to(&mut self, offset: usize) {
        self.end_group();
        self.caret = boundaries::floor_grapheme(&self.text, offset.min(self.text.len()));
    }

    /// Moves up one row of a screen of this width; false on the first row.
    pub(crate) fn move_up(&mut self, width: usize) -> bool {
        self.move_by_row(width, |row| row.checked_sub(1))
    }

    /// Moves down one row of a screen of this width; false on the last row.
    pub(crate) fn move_down(&mut self, width: usize) -> bool {
        self.move_by_row(width, |row| Some(row + 1))
    }

    fn move_by_row(&mut self, width: usize, next: impl Fn(usize) -> Option<usize>) -> bool {
        let layout = Layout::new(self, width);
        let Some(row) = next(layout.caret.row).filter(|row| *row < layout.rows.len()) else { return false };
        let goal = self.goal_column.unwrap_or(layout.caret.column);
        let offset = layout.offset_at(row, goal);
        self.end_group();
        self.goal_column = Some(goal);
        self.caret = offset;
        true
    }

    /// Changes the text.
    pub(crate) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::DeleteLeft => self.delete(self.target(Movement::Left)..self.caret),
            Edit::DeleteRight => self.delete(self.caret..self.target(Movement::Right)),
            Edit::KillWordLeft => {
                self.kill(self.target(Movement::WordLeft)..self.caret, KillDirection::Left);
            }
            Edit::KillWordRight => {
                self.kill(self.caret..self.target(Movement::WordRight), KillDirection::Right);
            }
            Edit::KillToBlankLeft => {
                let start = boundaries::blank_left(&self.text, self.caret);
                self.kill(start..self.caret, KillDirection::Left);
            }
            Edit::KillToLineStart => {
                let start = self.target(Movement::LineStart);
                // At the start of a line its newline goes, so that repeated kills come on.
                let start = if start == self.caret { self.target(Movement::Left) } else { start };
                self.kill(start..self.caret, KillDirection::Left);
            }
            Edit::KillToLineEnd => {
                let end = self.target(Movement::LineEnd);
                let end = if end == self.caret { self.target(Movement::Right) } else { end };
                self.kill(self.caret..end, KillDirection::Right);
            }
            Edit::Yank => self.yank(),
            Edit::YankPrevious => self.yank_previous(),
            Edit::Transpose => self.transpose(),
            Edit::Undo => self.undo(),
            Edit::Redo => self.redo(),
        }
    }

    fn delete(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.record(ChangeKind::Deleted);
        self.caret = range.start;
        self.text.replace_range(range, "");
    }

    /// Deletes a range and keeps it for a yank.
    pub(crate) fn kill_range(&mut self, range: Range<usize>) {
        self.end_group();
        self.kill(range, KillDirection::Right);
    }

    /// Keeps a range for a yank without deleting it.
    pub(crate) fn copy_range(&mut self, range: Range<usize>) {
        self.kills.break_chain();
        self.kills.add(&self.text[range], KillDirection::Right);
        self.kills.break_chain();
    }

    /// What a yank would insert.
    pub(crate) fn killed_text(&self) -> Option<&str> {
        self.kills.latest()
    }

    fn kill(&mut self, range: Range<usize>, direction: KillDirection) {
        if range.is_empty() {
            return;
        }
        let killed = self.text[range.clone()].to_owned();
        self.record_keeping_chain(ChangeKind::Killed);
        self.kills.add(&killed, direction);
        self.caret = range.start;
        self.text.replace_range(range, "");
    }

    fn yank(&mut self) {
        let Some(text) = self.kills.latest().map(str::to_owned) else { return };
        self.record(ChangeKind::Other);
        let start = self.caret;
        self.insert_raw(&text);
        self.last_yank = Some(start..self.caret);
    }

    fn yank_previous(&mut self) {
        let Some(range) = self.last_yank.clone() else { return };
        let Some(text) = self.kills.rotate().map(str::to_owned) else { return };
        self.record(ChangeKind::Other);
        self.text.replace_range(range.clone(), "");
        self.caret = range.start;
        self.insert_raw(&text);
        self.last_yank = Some(range.start..self.caret);
    }

    /// Exchanges the graphemes around the caret, or the last two at the end of a line.
    fn transpose(&mut self) {
        let at_end = self.caret == self.target(Movement::LineEnd);
        let middle = if at_end { previous_grapheme(&self.text, self.caret) } else { self.caret };
        let (start, end) = (previous_grapheme(&self.text, middle), next_grapheme(&self.text, middle));
        if start == middle || middle == end || self.text[start..end].contains('\n') {
            return;
        }
        self.record(ChangeKind::Other);
        let swapped = format!("{}{}", &self.text[middle..end], &self.text[start..middle]);
        self.text.replace_range(start..end, &swapped);
        self.caret = end;
    }

    fn undo(&mut self) {
        self.end_group();
        if let Some((text, caret)) = self.undo.undo((self.text.clone(), self.caret)) {
            (self.text, self.caret) = (text, caret);
        }
    }

    fn redo(&mut self) {
        self.end_group();
        if let Some((text, caret)) = self.undo.redo((self.text.clone(), self.caret)) {
            (self.text, self.caret) = (text, caret);
        }
    }

    /// Replaces a backslash before the caret by a newline; false if there is none.
    pub(crate) fn continue_line(&mut self) -> bool {
        let has_backslash = self.text[..self.caret].ends_with('\\');
        if has_backslash {
            self.replace(self.caret - 1..self.caret, "\n");
        }
        has_backslash
    }

    /// Where a movement leads.
    pub(crate) fn target(&self, movement: Movement) -> usize {
        let (text, caret) = (&self.text, self.caret);
        match movement {
            Movement::Left => previous_grapheme(text, caret),
            Movement::Right => next_grapheme(text, caret),
            Movement::WordLeft => boundaries::word_left(text, caret),
            Movement::WordRight => boundaries::word_right(text, caret),
            Movement::LineStart => text[..caret].rfind('\n').map_or(0, |newline| newline + 1),
            Movement::LineEnd => text[caret..].find('\n').map_or(text.len(), |newline| caret + newline),
            Movement::Start => 0,
            Movement::End => text.len(),
        }
    }

    fn record(&mut self, kind: ChangeKind) {
        self.kills.break_chain();
        self.record_keeping_chain(kind);
    }

    fn record_keeping_chain(&mut self, kind: ChangeKind) {
        self.undo.record(kind, (&self.text, self.caret));
        self.goal_column = None;
        self.last_yank = None;
    }

    /// Ends what one undo takes back.
    fn end_group(&mut self) {
        self.undo.end_group();
        self.kills.break_chain();
        self.goal_column = None;
        self.last_yank = None;
    }
}

#[cfg(test)]
mod tests;
