//! What the input line holds beside typed text: long pastes and pictures. Each is one character of the text, from a
//! private area of Unicode, so that it moves and is deleted as a unit.

use std::sync::Arc;

/// First placeholder: the beginning of the last private plane.
const FIRST_PLACEHOLDER: u32 = 0x10_0000;
const LAST_PLACEHOLDER: u32 = 0x10_fffd;

/// Something that is shown as a placeholder.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Attachment {
    /// A long pasted text.
    Paste(Arc<str>),
    /// A picture.
    Picture(Picture),
}

/// A picture that goes along with a prompt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Picture {
    pub(crate) media_type: String,
    /// Its bytes in base64.
    pub(crate) data: Arc<str>,
}

/// A piece of the content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Text(String),
    /// A picture with its number.
    Picture(usize, Picture),
}

/// The attachments of an input line. None is removed while the line exists, so that an undo finds it again.
#[derive(Debug, Clone, Default)]
pub(super) struct AttachmentList {
    all: Vec<Attachment>,
}

impl AttachmentList {
    /// Adds an attachment and returns the character that stands for it.
    pub(super) fn add(&mut self, attachment: Attachment) -> char {
        let last = (LAST_PLACEHOLDER - FIRST_PLACEHOLDER) as usize;
        if self.all.len() > last {
            self.all.pop();
        }
        self.all.push(attachment);
        let index = u32::try_from(self.all.len() - 1).unwrap_or_default();
        char::from_u32(FIRST_PLACEHOLDER + index).unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    fn get(&self, character: char) -> Option<&Attachment> {
        let index = u32::from(character).checked_sub(FIRST_PLACEHOLDER)?;
        self.all.get(usize::try_from(index).ok()?)
    }

    pub(super) fn is_picture(&self, character: char) -> bool {
        matches!(self.get(character), Some(Attachment::Picture(_)))
    }

    fn picture_number(&self, character: char) -> usize {
        let upto = (u32::from(character) - FIRST_PLACEHOLDER) as usize;
        self.all
            .iter()
            .take(upto + 1)
            .filter(|attachment| matches!(attachment, Attachment::Picture(_)))
            .count()
    }

    /// The text that is shown for a placeholder.
    pub(super) fn label(&self, character: char) -> Option<String> {
        Some(match self.get(character)? {
            Attachment::Picture(_) => format!("[picture {}]", self.picture_number(character)),
            Attachment::Paste(text) => match text.lines().count() {
                1 => format!("[pasted {} characters]", text.chars().count()),
                lines => format!("[pasted {lines} lines]"),
            },
        })
    }

    /// Splits a text at its pictures and expands its pastes.
    pub(super) fn split(&self, text: &str) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut current = String::new();
        for character in text.chars() {
            match self.get(character) {
                None => current.push(character),
                Some(Attachment::Paste(pasted)) => current.push_str(pasted),
                Some(Attachment::Picture(picture)) => {
                    if !current.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut current)));
                    }
                    pieces.push(Piece::Picture(self.picture_number(character), picture.clone()));
                }
            }
        }
        if !current.is_empty() {
            pieces.push(Piece::Text(current));
        }
        pieces
    }
}

/// Returns whether a character stands for an attachment.
pub(super) fn is_placeholder(character: char) -> bool {
    (FIRST_PLACEHOLDER..=LAST_PLACEHOLDER).contains(&u32::from(character))
}

/// Replaces characters that would be taken for attachments.
pub(super) fn without_placeholders(text: &str) -> String {
    text.chars()
        .map(|character| if is_placeholder(character) { char::REPLACEMENT_CHARACTER } else { character })
        .collect()
}
