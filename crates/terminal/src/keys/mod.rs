//! The keys: one table of actions, their default keys and what they do. The table of `docs/terminal.md` and the page of
//! `?` are made from it.

mod documentation;

use std::collections::BTreeMap;

use crate::screen::Key;

pub(crate) use documentation::render_help;

/// Place where a key counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyGroup {
    /// The input line.
    Input,
    /// A menu, a question or a permission prompt.
    Menu,
    /// The transcript and other pages.
    Pager,
}

/// Lists the actions once: variant, group, name in the settings, default keys, description.
macro_rules! actions {
    ($($group:ident { $($action:ident $name:literal [$($key:literal),*] $description:literal;)* })*) => {
        /// Something that a key does.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Action { $($($action,)*)* }

        /// All actions in the order of the documentation.
        const ACTIONS: &[ActionRow] = &[$($(ActionRow {
            action: Action::$action,
            group: KeyGroup::$group,
            name: $name,
            default_keys: &[$($key),*],
            description: $description,
        },)*)*];
    };
}

/// A row of the table.
#[derive(Debug)]
struct ActionRow {
    action: Action,
    group: KeyGroup,
    name: &'static str,
    default_keys: &'static [&'static str],
    description: &'static str,
}

actions! {
    Input {
        Submit "submit" ["Enter"] "send the message; while a turn runs, queue it";
        Newline "newline" ["Ctrl+J", "Alt+Enter", "Shift+Enter"] "begin a new line; a backslash before Enter does the same";
        Interrupt "interrupt" ["Esc"] "interrupt the turn; twice on an empty line: go back to an earlier prompt";
        Cancel "cancel" ["Ctrl+C"] "clear the line; on an empty line interrupt the turn, or leave when pressed twice";
        Leave "leave" ["Ctrl+D"] "leave, on an empty line";
        Steer "steer" ["Ctrl+S"] "hand the queued messages to the running turn";
        CycleMode "cycle-mode" ["Shift+Tab", "Alt+M"] "next permission mode";
        ChooseModel "choose-model" ["Alt+P"] "choose the model";
        Background "background" ["Ctrl+B", "Alt+G"] "on an empty line: send what runs to the background";
        ToggleTasks "toggle-tasks" ["Ctrl+T", "Alt+T"] "on an empty line: fold or show the list of tasks";
        Transcript "transcript" ["Ctrl+O"] "show the full transcript";
        SearchHistory "search-history" ["Ctrl+R"] "search the history of prompts";
        ExternalEditor "external-editor" ["Ctrl+G", "Ctrl+X"] "edit the message in $VISUAL or $EDITOR";
        PastePicture "paste-picture" ["Ctrl+V"] "add the picture of the clipboard";
        Complete "complete" ["Tab"] "complete a file, a command or a path";
        Help "help" ["?", "F1"] "on an empty line: show the keys";
        Redraw "redraw" ["Ctrl+L"] "draw the screen anew";
        Suspend "suspend" ["Ctrl+Z"] "suspend the program";
        MoveLeft "move-left" ["Left", "Ctrl+B"] "move left";
        MoveRight "move-right" ["Right", "Ctrl+F"] "move right";
        MoveUp "move-up" ["Up", "Ctrl+P"] "move up, or to the previous prompt";
        MoveDown "move-down" ["Down", "Ctrl+N"] "move down, or to the next prompt";
        MoveWordLeft "move-word-left" ["Alt+B", "Ctrl+Left", "Alt+Left"] "move left by a word";
        MoveWordRight "move-word-right" ["Alt+F", "Ctrl+Right", "Alt+Right"] "move right by a word";
        MoveLineStart "move-line-start" ["Home", "Ctrl+A"] "move to the start of the line";
        MoveLineEnd "move-line-end" ["End", "Ctrl+E"] "move to the end of the line";
        MoveStart "move-start" ["Ctrl+Home", "Alt+<"] "move to the start of the message";
        MoveEnd "move-end" ["Ctrl+End", "Alt+>"] "move to the end of the message";
        DeleteLeft "delete-left" ["Backspace", "Ctrl+H", "Shift+Backspace"] "delete to the left";
        DeleteRight "delete-right" ["Delete", "Ctrl+D"] "delete to the right";
        KillWordLeft "kill-word-left" ["Alt+Backspace", "Ctrl+Backspace"] "kill the word to the left";
        KillWordRight "kill-word-right" ["Alt+D", "Ctrl+Delete"] "kill the word to the right";
        KillToBlankLeft "kill-to-blank-left" ["Ctrl+W"] "kill back to a blank";
        KillToLineStart "kill-to-line-start" ["Ctrl+U"] "kill to the start of the line";
        KillToLineEnd "kill-to-line-end" ["Ctrl+K"] "kill to the end of the line";
        Yank "yank" ["Ctrl+Y"] "insert what was killed";
        YankPrevious "yank-previous" ["Alt+Y"] "after a yank: insert what was killed before instead";
        Transpose "transpose" ["Ctrl+T"] "exchange two characters";
        Undo "undo" ["Ctrl+_", "Ctrl+/"] "undo";
        Redo "redo" ["Alt+_", "Alt+/"] "redo";
    }
    Menu {
        MenuUp "menu-up" ["Up", "Ctrl+P"] "previous choice";
        MenuDown "menu-down" ["Down", "Ctrl+N"] "next choice";
        MenuAccept "menu-accept" ["Enter"] "take the choice";
        MenuCancel "menu-cancel" ["Esc", "Ctrl+C"] "close; a permission prompt: refuse and interrupt";
        MenuToggle "menu-toggle" ["Space"] "mark a choice, where several can be taken";
        MenuNext "menu-next" ["Tab", "Right"] "next question, or another set of choices";
        MenuPrevious "menu-previous" ["Shift+Tab", "Left"] "previous question";
        MenuPageUp "menu-page-up" ["PageUp"] "a page up";
        MenuPageDown "menu-page-down" ["PageDown"] "a page down";
    }
    Pager {
        PagerUp "pager-up" ["Up", "k", "Ctrl+P"] "a line up";
        PagerDown "pager-down" ["Down", "j", "Ctrl+N", "Enter"] "a line down";
        PagerPageUp "pager-page-up" ["PageUp", "b", "Ctrl+B"] "a page up";
        PagerPageDown "pager-page-down" ["PageDown", "Space", "f", "Ctrl+F"] "a page down";
        PagerTop "pager-top" ["Home", "g"] "to the start";
        PagerBottom "pager-bottom" ["End", "G"] "to the end";
        PagerSearch "pager-search" ["/"] "search";
        PagerNextMatch "pager-next-match" ["n"] "next match";
        PagerPreviousMatch "pager-previous-match" ["N"] "previous match";
        PagerClose "pager-close" ["q", "Esc", "Ctrl+O", "Ctrl+C"] "close";
    }
}

/// The keys in force.
#[derive(Debug, Clone)]
pub(crate) struct KeyTable {
    rows: Vec<(&'static ActionRow, Vec<Key>)>,
}

impl Default for KeyTable {
    fn default() -> Self {
        Self::new(&BTreeMap::new()).0
    }
}

impl KeyTable {
    /// The default keys, with those of the settings in their place; and what is wrong with the settings.
    pub(crate) fn new(changes: &BTreeMap<String, Vec<String>>) -> (Self, Vec<String>) {
        let mut warnings: Vec<String> = changes
            .keys()
            .filter(|name| ACTIONS.iter().all(|row| row.name != name.as_str()))
            .map(|name| format!("there is no action {name:?}: see the table of keys"))
            .collect();
        let rows = ACTIONS.iter().map(|row| {
            let changed = changes.get(row.name);
            let names: Vec<&str> = match changed {
                Some(names) => names.iter().map(String::as_str).collect(),
                None => row.default_keys.to_vec(),
            };
            let mut keys = Vec::new();
            for name in names {
                match name.parse() {
                    Ok(key) => keys.push(key),
                    Err(_) => warnings.push(format!("{name:?} is not a key, for the action {:?}", row.name)),
                }
            }
            (row, keys)
        });
        let rows = rows.collect();
        (Self { rows }, warnings)
    }

    /// The actions of a key in the order of the table. Most keys have one; the first that applies counts.
    pub(crate) fn actions(&self, group: KeyGroup, key: &Key) -> impl Iterator<Item = Action> {
        self.rows
            .iter()
            .filter(move |(row, keys)| row.group == group && keys.iter().any(|bound| is_same(bound, key)))
            .map(|(row, _)| row.action)
    }

    /// The first key of an action; empty if it has none.
    #[cfg(test)]
    fn key_name(&self, action: Action) -> String {
        let keys = self.rows.iter().find(|(row, _)| row.action == action).map(|(_, keys)| keys.as_slice());
        keys.unwrap_or_default().first().map(Key::to_string).unwrap_or_default()
    }
}

/// Compares keys without the time.
fn is_same(bound: &Key, pressed: &Key) -> bool {
    bound.code == pressed.code && bound.modifiers == pressed.modifiers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::KeyCode;

    fn actions(group: KeyGroup, key: &Key) -> Vec<Action> {
        KeyTable::default().actions(group, key).collect()
    }

    #[test]
    fn every_default_key_can_be_parsed() {
        assert_eq!(KeyTable::new(&BTreeMap::new()).1, Vec::<String>::new());
    }

    #[test]
    fn keys_have_their_actions_in_order() {
        assert_eq!(actions(KeyGroup::Input, &Key::plain(KeyCode::Enter)), [Action::Submit]);
        assert_eq!(actions(KeyGroup::Input, &Key::ctrl('b')), [Action::Background, Action::MoveLeft]);
        assert_eq!(actions(KeyGroup::Input, &Key::ctrl('d')), [Action::Leave, Action::DeleteRight]);
        assert_eq!(actions(KeyGroup::Menu, &Key::plain(KeyCode::Escape)), [Action::MenuCancel]);
        assert_eq!(actions(KeyGroup::Pager, &Key::plain(KeyCode::Char('G'))), [Action::PagerBottom]);
        assert_eq!(actions(KeyGroup::Input, &Key::plain(KeyCode::Char('a'))), []);
    }

    #[test]
    fn settings_replace_keys_and_errors_are_reported() {
        let changes = BTreeMap::from([
            ("newline".to_owned(), vec!["F5".to_owned(), "Hyper+Q".to_owned()]),
            ("dance".to_owned(), vec![]),
        ]);
        let (table, warnings) = KeyTable::new(&changes);
        let pressed = |key: Key| table.actions(KeyGroup::Input, &key).collect::<Vec<_>>();
        assert_eq!(pressed(Key::plain(KeyCode::F(5))), [Action::Newline]);
        assert_eq!(pressed(Key::ctrl('j')), []);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert_eq!(table.key_name(Action::Newline), "F5");
    }

    #[test]
    fn every_action_has_a_second_way_where_terminals_differ() {
        for name in ["newline", "background", "toggle-tasks", "cycle-mode", "kill-word-left"] {
            let row = ACTIONS.iter().find(|row| row.name == name).unwrap();
            assert!(row.default_keys.len() > 1, "{name}");
        }
    }
}
