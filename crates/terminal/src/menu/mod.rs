//! A list of choices: numbered, filtered while typing, with several marks, or with a line for the user's own words. All
//! questions, permission prompts and pickers are menus.

mod render;

use unicode_segmentation::UnicodeSegmentation;

use crate::editor::{Edit, Editor, Movement};
use crate::keys::{Action, KeyGroup, KeyTable};
use crate::screen::{Key, KeyCode};

/// Number of choices that are shown at once.
pub(crate) const MAX_SHOWN_CHOICES: usize = 10;

/// One choice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) detail: String,
    /// A letter that takes it at once.
    pub(crate) letter: Option<char>,
    pub(crate) is_marked: bool,
    /// What the line for own words asks for, if the choice opens one.
    pub(crate) text_hint: Option<String>,
    /// It is the value in force.
    pub(crate) is_current: bool,
}

impl Choice {
    pub(crate) fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    #[must_use]
    pub(crate) fn detail(self, detail: impl Into<String>) -> Self {
        Self { detail: detail.into(), ..self }
    }

    #[must_use]
    pub(crate) fn letter(self, letter: char) -> Self {
        Self { letter: Some(letter), ..self }
    }

    /// Opens a line for the user's own words when it is taken.
    #[must_use]
    pub(crate) fn with_text(self, hint: impl Into<String>) -> Self {
        Self { text_hint: Some(hint.into()), ..self }
    }

    #[must_use]
    pub(crate) fn current(self, is_current: bool) -> Self {
        Self { is_current, ..self }
    }
}

/// How a menu treats typed characters and marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MenuStyle {
    /// Digits and letters take a choice.
    #[default]
    Numbered,
    /// Typed text filters the choices.
    Filtered,
    /// Several choices can be marked.
    Marked,
}

/// A list of choices.
#[derive(Debug, Clone, Default)]
pub(crate) struct Menu {
    pub(crate) title: String,
    /// Lines between the title and the choices.
    pub(crate) notes: Vec<String>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) style: MenuStyle,
    /// A line below the choices.
    pub(crate) footer: String,
    filter: String,
    /// Index among the choices that match the filter.
    selected: usize,
    /// The line for own words, while it is open.
    own_words: Option<Editor>,
}

/// What a key did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MenuOutcome {
    /// The menu is still open.
    Open,
    /// A choice was taken, by its index.
    Taken(usize),
    /// A choice was taken, with the user's own words.
    TakenWithText(usize, String),
    /// The marked choices were taken.
    Marked(Vec<usize>),
    Cancelled,
    Next,
    Previous,
}

impl Menu {
    pub(crate) fn new(title: impl Into<String>, choices: Vec<Choice>) -> Self {
        let selected = choices.iter().position(|choice| choice.is_current).unwrap_or(0);
        Self { title: title.into(), choices, selected, ..Self::default() }
    }

    #[must_use]
    pub(crate) fn style(self, style: MenuStyle) -> Self {
        Self { style, ..self }
    }

    #[must_use]
    pub(crate) fn notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    #[must_use]
    pub(crate) fn footer(self, footer: impl Into<String>) -> Self {
        Self { footer: footer.into(), ..self }
    }

    /// Selects a choice by its index.
    #[must_use]
    pub(crate) fn select(self, index: usize) -> Self {
        Self { selected: index.min(self.choices.len().saturating_sub(1)), ..self }
    }

    /// Indices of the choices that match the filter: all words have to occur.
    fn matching(&self) -> Vec<usize> {
        let filter = self.filter.to_lowercase();
        let matches = |choice: &Choice| {
            let text = format!("{} {}", choice.label, choice.detail).to_lowercase();
            filter.split_whitespace().all(|word| text.contains(word))
        };
        (0..self.choices.len()).filter(|index| matches(&self.choices[*index])).collect()
    }

    /// Index of the selected choice.
    pub(crate) fn selected(&self) -> Option<usize> {
        self.matching().get(self.selected).copied()
    }

    /// What was typed to filter the choices.
    pub(crate) fn filter(&self) -> &str {
        &self.filter
    }

    /// Returns whether the line for own words is open.
    #[cfg(test)]
    fn is_typing(&self) -> bool {
        self.own_words.is_some()
    }

    /// Handles pasted text.
    pub(crate) fn handle_paste(&mut self, text: &str) {
        match &mut self.own_words {
            Some(editor) => editor.paste(text),
            None if self.style == MenuStyle::Filtered => {
                self.filter.push_str(text.lines().next().unwrap_or_default());
                self.selected = 0;
            }
            // A paste never answers.
            None => {}
        }
    }

    /// Handles a typed line: a number or letter, with the user's own words behind it; numbers, where several can be marked;
    /// or only the words, if a choice takes some. An empty line closes the menu.
    pub(crate) fn answer_line(&mut self, line: &str) -> MenuOutcome {
        let line = line.trim();
        if line.is_empty() {
            return MenuOutcome::Cancelled;
        }
        let (first, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let index_of = |word: &str| {
            let by_number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            let letter = word.chars().next().filter(|_| word.chars().count() == 1);
            let by_letter =
                self.choices.iter().position(|choice| letter.is_some() && choice.letter == letter);
            by_number.or(by_letter).filter(|index| *index < self.choices.len())
        };
        if self.style == MenuStyle::Marked {
            let marked: Option<Vec<usize>> =
                line.split([',', ' ']).filter(|word| !word.is_empty()).map(index_of).collect();
            if let Some(marked) = marked
                && marked.iter().all(|index| self.choices[*index].text_hint.is_none())
            {
                return MenuOutcome::Marked(marked);
            }
        }
        match index_of(first) {
            Some(index) if self.choices[index].text_hint.is_some() => {
                MenuOutcome::TakenWithText(index, words.trim().to_owned())
            }
            Some(index) if words.is_empty() => MenuOutcome::Taken(index),
            _ => match self.choices.iter().position(|choice| choice.text_hint.is_some()) {
                Some(index) => MenuOutcome::TakenWithText(index, line.to_owned()),
                None => MenuOutcome::Open,
            },
        }
    }

    /// Handles a key.
    pub(crate) fn handle_key(&mut self, key: &Key, keys: &KeyTable) -> MenuOutcome {
        if self.own_words.is_some() {
            return self.handle_own_words(key, keys);
        }
        if let Some(action) = keys.actions(KeyGroup::Menu, key).next()
            && let Some(outcome) = self.handle_action(action)
        {
            return outcome;
        }
        match (key.code, self.style) {
            (KeyCode::Char(typed), MenuStyle::Filtered) if !key.modifiers.control && !key.modifiers.alt => {
                self.filter.push(typed);
                self.selected = 0;
                MenuOutcome::Open
            }
            (KeyCode::Backspace, MenuStyle::Filtered) => {
                self.filter.pop();
                self.selected = 0;
                MenuOutcome::Open
            }
            (KeyCode::Char(typed), MenuStyle::Numbered | MenuStyle::Marked)
                if !key.modifiers.control && !key.modifiers.alt =>
            {
                self.handle_shortcut(typed)
            }
            _ => MenuOutcome::Open,
        }
    }

    /// Handles an action; `None` if it does not apply to this menu.
    fn handle_action(&mut self, action: Action) -> Option<MenuOutcome> {
        let count = self.matching().len();
        match action {
            Action::MenuUp => self.selected = self.selected.checked_sub(1).unwrap_or(count.saturating_sub(1)),
            Action::MenuDown => self.selected = if self.selected + 1 < count { self.selected + 1 } else { 0 },
            Action::MenuPageUp => self.selected = self.selected.saturating_sub(MAX_SHOWN_CHOICES),
            Action::MenuPageDown => {
                self.selected = (self.selected + MAX_SHOWN_CHOICES).min(count.saturating_sub(1));
            }
            Action::MenuAccept => return Some(self.accept()),
            Action::MenuCancel => return Some(MenuOutcome::Cancelled),
            Action::MenuToggle if self.style == MenuStyle::Marked => self.toggle_selected(),
            Action::MenuNext => return Some(MenuOutcome::Next),
            Action::MenuPrevious => return Some(MenuOutcome::Previous),
            _ => return None,
        }
        Some(MenuOutcome::Open)
    }

    fn accept(&mut self) -> MenuOutcome {
        let Some(index) = self.selected() else { return MenuOutcome::Open };
        if self.choices[index].text_hint.is_some() {
            self.own_words = Some(Editor::default());
            return MenuOutcome::Open;
        }
        if self.style == MenuStyle::Marked {
            let marked: Vec<usize> =
                (0..self.choices.len()).filter(|index| self.choices[*index].is_marked).collect();
            // Enter without a mark takes the selected choice.
            return MenuOutcome::Marked(if marked.is_empty() { vec![index] } else { marked });
        }
        MenuOutcome::Taken(index)
    }

    fn toggle_selected(&mut self) {
        if let Some(index) = self.selected()
            && self.choices[index].text_hint.is_none()
        {
            self.choices[index].is_marked ^= true;
        }
    }

    /// Returns whether a key is text that the menu has no use for.
    pub(crate) fn is_unrelated_text(&self, key: &Key, keys: &KeyTable) -> bool {
        let KeyCode::Char(typed) = key.code else { return false };
        self.own_words.is_none()
            && self.style == MenuStyle::Numbered
            && !(key.modifiers.control || key.modifiers.alt)
            && keys.actions(KeyGroup::Menu, key).next().is_none()
            && self.shortcut(typed).is_none()
    }

    /// The choice with this digit or letter.
    fn shortcut(&self, typed: char) -> Option<usize> {
        let by_digit = typed.to_digit(10).and_then(|digit| (digit as usize).checked_sub(1));
        let by_letter =
            self.choices.iter().position(|choice| choice.letter == Some(typed.to_ascii_lowercase()));
        by_digit.or(by_letter).filter(|index| *index < self.choices.len())
    }

    fn handle_shortcut(&mut self, typed: char) -> MenuOutcome {
        let Some(index) = self.shortcut(typed) else { return MenuOutcome::Open };
        self.selected = index;
        if self.style == MenuStyle::Marked && self.choices[index].text_hint.is_none() {
            self.toggle_selected();
            return MenuOutcome::Open;
        }
        self.accept()
    }

    fn handle_own_words(&mut self, key: &Key, keys: &KeyTable) -> MenuOutcome {
        let Some(editor) = &mut self.own_words else { return MenuOutcome::Open };
        match keys.actions(KeyGroup::Menu, key).next() {
            Some(Action::MenuAccept) => {
                let text = editor.expanded_text();
                let index = self.selected().unwrap_or(0);
                return MenuOutcome::TakenWithText(index, text);
            }
            Some(Action::MenuCancel) => {
                self.own_words = None;
                return MenuOutcome::Open;
            }
            _ => {}
        }
        if let Some(action) = keys.actions(KeyGroup::Input, key).find_map(line_action) {
            match action {
                LineAction::Move(movement) => editor.move_caret(movement),
                LineAction::Edit(edit) => editor.edit(edit),
                LineAction::Newline => editor.insert("\n"),
            }
        } else if let Some(typed) = typed_text(key) {
            editor.insert(&typed);
        }
        MenuOutcome::Open
    }
}

/// An action that any line of text understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineAction {
    Move(Movement),
    Edit(Edit),
    Newline,
}

/// Translates an action; `None` if it is not about a line of text.
pub(crate) fn line_action(action: Action) -> Option<LineAction> {
    use LineAction::{Edit as E, Move};
    Some(match action {
        Action::MoveLeft => Move(Movement::Left),
        Action::MoveRight => Move(Movement::Right),
        Action::MoveWordLeft => Move(Movement::WordLeft),
        Action::MoveWordRight => Move(Movement::WordRight),
        Action::MoveLineStart => Move(Movement::LineStart),
        Action::MoveLineEnd => Move(Movement::LineEnd),
        Action::MoveStart => Move(Movement::Start),
        Action::MoveEnd => Move(Movement::End),
        Action::DeleteLeft => E(Edit::DeleteLeft),
        Action::DeleteRight => E(Edit::DeleteRight),
        Action::KillWordLeft => E(Edit::KillWordLeft),
        Action::KillWordRight => E(Edit::KillWordRight),
        Action::KillToBlankLeft => E(Edit::KillToBlankLeft),
        Action::KillToLineStart => E(Edit::KillToLineStart),
        Action::KillToLineEnd => E(Edit::KillToLineEnd),
        Action::Yank => E(Edit::Yank),
        Action::YankPrevious => E(Edit::YankPrevious),
        Action::Transpose => E(Edit::Transpose),
        Action::Undo => E(Edit::Undo),
        Action::Redo => E(Edit::Redo),
        Action::Newline => LineAction::Newline,
        _ => return None,
    })
}

/// The text that a key types.
pub(crate) fn typed_text(key: &Key) -> Option<String> {
    match key.code {
        KeyCode::Char(typed) if !key.modifiers.control && !key.modifiers.alt => {
            let text = typed.to_string();
            debug_assert!(text.graphemes(true).count() <= 1);
            Some(text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu(style: MenuStyle) -> Menu {
        let choices = vec![
            Choice::new("Allow").letter('y'),
            Choice::new("Always"),
            Choice::new("Refuse").letter('n'),
            Choice::new("Refuse and say why").with_text("why"),
        ];
        Menu::new("Run?", choices).style(style)
    }

    fn press(menu: &mut Menu, keys: &[KeyCode]) -> MenuOutcome {
        let table = KeyTable::default();
        let mut outcome = MenuOutcome::Open;
        for code in keys {
            outcome = menu.handle_key(&Key::plain(*code), &table);
        }
        outcome
    }

    #[test]
    fn choices_are_taken_by_digit_letter_and_arrows() {
        use KeyCode::{Char, Down, Enter, Escape, Up};
        let rows: [(&str, &[KeyCode], MenuOutcome); 7] = [
            ("first", &[Enter], MenuOutcome::Taken(0)),
            ("digit", &[Char('2')], MenuOutcome::Taken(1)),
            ("letter", &[Char('n')], MenuOutcome::Taken(2)),
            ("arrows", &[Down, Down, Up, Enter], MenuOutcome::Taken(1)),
            ("around the end", &[Up, Up, Enter], MenuOutcome::Taken(2)),
            ("unknown digit", &[Char('9')], MenuOutcome::Open),
            ("cancelled", &[Escape], MenuOutcome::Cancelled),
        ];
        for (name, keys, expected) in rows {
            assert_eq!(press(&mut menu(MenuStyle::Numbered), keys), expected, "{name}");
        }
    }

    #[test]
    fn own_words_are_typed_and_left_by_escape() {
        use KeyCode::{Backspace, Char, Enter, Escape};
        let mut open = menu(MenuStyle::Numbered);
        assert_eq!(
            press(&mut open, &[Char('4'), Char('n'), Char('o'), Char('2'), Backspace]),
            MenuOutcome::Open
        );
        assert!(open.is_typing());
        assert_eq!(press(&mut open.clone(), &[Enter]), MenuOutcome::TakenWithText(3, "no".into()));
        assert_eq!(press(&mut open, &[Escape]), MenuOutcome::Open);
        assert!(!open.is_typing());
    }

    #[test]
    fn typed_text_filters() {
        use KeyCode::{Char, Enter};
        let mut open = menu(MenuStyle::Filtered);
        assert_eq!(press(&mut open, &[Char('r'), Char('e'), Char('f'), Enter]), MenuOutcome::Taken(2));
        assert_eq!(open.filter(), "ref");
        assert_eq!(press(&mut open, &[Char('x'), Enter]), MenuOutcome::Open);
    }

    #[test]
    fn several_choices_can_be_marked() {
        use KeyCode::{Char, Down, Enter};
        let mut open = menu(MenuStyle::Marked);
        assert_eq!(
            press(&mut open, &[Char(' '), Down, Down, Char(' '), Enter]),
            MenuOutcome::Marked(vec![0, 2])
        );
        assert_eq!(press(&mut menu(MenuStyle::Marked), &[Down, Enter]), MenuOutcome::Marked(vec![1]));
    }

    #[test]
    fn lines_answer_by_number_letter_or_words() {
        let rows = [
            ("2", MenuOutcome::Taken(1)),
            (" y ", MenuOutcome::Taken(0)),
            ("4 use tabs", MenuOutcome::TakenWithText(3, "use tabs".into())),
            ("use tabs", MenuOutcome::TakenWithText(3, "use tabs".into())),
            ("", MenuOutcome::Cancelled),
        ];
        for (line, expected) in rows {
            assert_eq!(menu(MenuStyle::Numbered).answer_line(line), expected, "{line}");
        }
        assert_eq!(menu(MenuStyle::Marked).answer_line("1, 3"), MenuOutcome::Marked(vec![0, 2]));
        assert_eq!(menu(MenuStyle::Numbered).answer_line("9"), MenuOutcome::TakenWithText(3, "9".into()));
    }

    #[test]
    fn paste_never_answers() {
        let mut open = menu(MenuStyle::Numbered);
        open.handle_paste("y\n");
        assert!(!open.is_typing());
        assert_eq!(open.selected(), Some(0));
    }
}
