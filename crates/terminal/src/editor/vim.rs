//! The vi keys: turns typed keys into movements and changes of the input line, in normal and insert mode.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::boundaries::{is_word, next_grapheme, previous_grapheme};
use super::{Edit, Editor, Movement};

/// Mode of the vi keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum VimMode {
    #[default]
    Insert,
    Normal,
}

/// A key as the vi keys see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VimKey {
    Char(char),
    Escape,
}

/// Whether a key was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VimOutcome {
    Used,
    /// The key means what it means without the vi keys.
    Unused,
    /// Up or down, which may leave the input line for the history.
    Up,
    Down,
}

/// State of the vi keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vim {
    mode: VimMode,
    /// Keys of a command that is not complete.
    pending: Vec<char>,
    /// Last search within a line, for `;` and `,`.
    find: Option<Find>,
    /// Keys of the last change, for `.`, with the text that was inserted.
    last_change: Option<Change>,
    /// Change that is being made, while its text is typed.
    recording: Option<Change>,
    /// What a yank took: whole lines are put below the line.
    linewise: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    keys: Vec<char>,
    inserted: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Find {
    target: char,
    forward: bool,
    till: bool,
}

impl Vim {
    /// The mode.
    pub(crate) fn mode(&self) -> VimMode {
        self.mode
    }

    /// Back to insert mode, for an empty line.
    pub(crate) fn reset(&mut self) {
        self.mode = VimMode::Insert;
        self.pending.clear();
        self.recording = None;
    }

    /// Handles a key.
    pub(crate) fn handle(&mut self, key: VimKey, editor: &mut Editor) -> VimOutcome {
        match (self.mode, key) {
            (VimMode::Insert, VimKey::Char(typed)) => {
                if let Some(change) = &mut self.recording {
                    change.inserted.push(typed);
                }
                VimOutcome::Unused
            }
            (VimMode::Insert, VimKey::Escape) => {
                self.leave_insert(editor);
                VimOutcome::Used
            }
            (VimMode::Normal, VimKey::Escape) if self.pending.is_empty() => VimOutcome::Unused,
            (VimMode::Normal, VimKey::Escape) => {
                self.pending.clear();
                VimOutcome::Used
            }
            (VimMode::Normal, VimKey::Char(typed)) => {
                self.pending.push(typed);
                self.run_pending(editor)
            }
        }
    }

    fn leave_insert(&mut self, editor: &mut Editor) {
        self.mode = VimMode::Normal;
        if let Some(change) = self.recording.take() {
            self.last_change = Some(change);
        }
        if editor.caret() > line_range(editor).start {
            editor.move_caret(Movement::Left);
        }
    }

    /// Runs the typed keys if they are a complete command.
    fn run_pending(&mut self, editor: &mut Editor) -> VimOutcome {
        let keys = std::mem::take(&mut self.pending);
        let count_len = count_length(&keys);
        let count: usize = keys[..count_len].iter().collect::<String>().parse().unwrap_or(1).clamp(1, 999);
        let command = &keys[count_len..];
        let outcome = match command {
            [] => None,
            ['k'] => return VimOutcome::Up,
            ['j'] => return VimOutcome::Down,
            ['.'] => {
                self.repeat(editor);
                return VimOutcome::Used;
            }
            ['u'] => {
                (0..count).for_each(|_| editor.edit(Edit::Undo));
                return VimOutcome::Used;
            }
            [operator @ ('d' | 'c' | 'y'), motion @ ..] => {
                self.run_operator(*operator, motion, count, editor)
            }
            [insert @ ('i' | 'a' | 'I' | 'A' | 'o' | 'O')] => {
                self.start_insert(*insert, editor);
                Some(())
            }
            [simple @ ('x' | 'D' | 'C' | 'p' | 'P' | 's')] => {
                self.run_simple(*simple, count, editor);
                Some(())
            }
            motion => match self.find_motion(motion, count, editor) {
                MotionResult::Complete(target) => {
                    editor.move_to(target.offset.min(last_place(editor, target.offset)));
                    return VimOutcome::Used;
                }
                MotionResult::Incomplete => None,
                MotionResult::Invalid => return VimOutcome::Used,
            },
        };
        match outcome {
            None => self.pending = keys,
            Some(()) => self.record_change(keys),
        }
        VimOutcome::Used
    }

    /// Keeps the keys for `.`, unless the command changed nothing.
    fn record_change(&mut self, keys: Vec<char>) {
        if keys.iter().find(|key| !key.is_ascii_digit()) == Some(&'y') {
            return;
        }
        let change = Change { keys, inserted: String::new() };
        match self.mode {
            VimMode::Insert => self.recording = Some(change),
            VimMode::Normal => self.last_change = Some(change),
        }
    }

    fn repeat(&mut self, editor: &mut Editor) {
        let Some(change) = self.last_change.clone() else { return };
        self.pending = change.keys[..change.keys.len() - 1].to_vec();
        self.handle(VimKey::Char(change.keys[change.keys.len() - 1]), editor);
        if self.mode == VimMode::Insert {
            editor.insert(&change.inserted);
            self.recording = Some(change);
            self.leave_insert(editor);
        }
    }

    /// Runs `d`, `c` or `y` over a motion or over whole lines; `None` if keys are missing.
    fn run_operator(
        &mut self,
        operator: char,
        motion: &[char],
        count: usize,
        editor: &mut Editor,
    ) -> Option<()> {
        let inner_count = count_length(motion);
        let count = count
            * motion[..inner_count].iter().collect::<String>().parse::<usize>().unwrap_or(1).clamp(1, 999);
        let motion = &motion[inner_count..];
        if motion == [operator] {
            self.linewise = true;
            let range = lines_range(editor, count);
            match operator {
                'y' => editor.copy_range(range),
                'c' => {
                    editor.kill_range(range);
                    self.mode = VimMode::Insert;
                }
                _ => {
                    let with_newline = whole_lines(editor, range.clone());
                    let killed = editor.text()[range].to_owned();
                    editor.kill_range(with_newline);
                    editor.move_caret(Movement::LineStart);
                    // A put inserts the lines without the newline that went with them.
                    self.keep_lines(editor, &killed);
                }
            }
            return Some(());
        }
        // `cw` changes to the end of the word, not to the next one.
        let motion: Vec<char> = if operator == 'c' && motion == ['w'] { vec!['e'] } else { motion.to_vec() };
        let target = match self.find_motion(&motion, count, editor) {
            MotionResult::Complete(target) => target,
            MotionResult::Incomplete => return None,
            MotionResult::Invalid => return Some(()),
        };
        self.linewise = false;
        let range = operator_range(editor, target);
        match operator {
            'y' => {
                let start = range.start;
                editor.copy_range(range);
                editor.move_to(start);
            }
            'c' => {
                editor.kill_range(range);
                self.mode = VimMode::Insert;
            }
            _ => {
                editor.kill_range(range);
                stay_on_line(editor);
            }
        }
        Some(())
    }

    fn keep_lines(&mut self, editor: &mut Editor, lines: &str) {
        editor.kills.break_chain();
        editor.kills.add(lines, super::KillDirection::Right);
        editor.kills.break_chain();
    }

    fn run_simple(&mut self, command: char, count: usize, editor: &mut Editor) {
        let line = line_range(editor);
        match command {
            'x' | 's' => {
                let end =
                    (0..count).fold(editor.caret(), |at, _| next_grapheme(editor.text(), at)).min(line.end);
                self.linewise = false;
                editor.kill_range(editor.caret()..end);
                if command == 's' {
                    self.mode = VimMode::Insert;
                } else {
                    stay_on_line(editor);
                }
            }
            'D' | 'C' => {
                self.linewise = false;
                editor.kill_range(editor.caret()..line.end);
                if command == 'C' {
                    self.mode = VimMode::Insert;
                } else {
                    stay_on_line(editor);
                }
            }
            _ => self.put(command == 'p', count, editor),
        }
    }

    fn put(&mut self, after: bool, count: usize, editor: &mut Editor) {
        let Some(text) = editor.killed_text().map(str::to_owned) else { return };
        let line = line_range(editor);
        if self.linewise {
            let text = (0..count).map(|_| text.as_str()).collect::<Vec<_>>().join("\n");
            let (at, inserted) =
                if after { (line.end, format!("\n{text}")) } else { (line.start, format!("{text}\n")) };
            editor.replace(at..at, &inserted);
            editor.move_to(if after { at + 1 } else { at });
            return;
        }
        let at = if after && editor.caret() < line.end {
            next_grapheme(editor.text(), editor.caret())
        } else {
            editor.caret()
        };
        editor.replace(at..at, &text.repeat(count));
        editor.move_caret(Movement::Left);
    }

    fn start_insert(&mut self, command: char, editor: &mut Editor) {
        let line = line_range(editor);
        self.mode = VimMode::Insert;
        match command {
            'a' if editor.caret() < line.end => editor.move_caret(Movement::Right),
            'I' => editor.move_to(first_nonblank(editor, &line)),
            'A' => editor.move_to(line.end),
            'o' => editor.replace(line.end..line.end, "\n"),
            'O' => {
                editor.replace(line.start..line.start, "\n");
                editor.move_to(line.start);
            }
            _ => {}
        }
    }

    /// Where a motion leads.
    fn find_motion(&mut self, motion: &[char], count: usize, editor: &Editor) -> MotionResult {
        let text = editor.text();
        let line = line_range(editor);
        let caret = editor.caret();
        let exclusive = |offset| MotionResult::Complete(Target { offset, kind: MotionKind::Exclusive });
        let inclusive = |offset| MotionResult::Complete(Target { offset, kind: MotionKind::Inclusive });
        let times = |step: &dyn Fn(usize) -> usize| (0..count).fold(caret, |at, _| step(at));
        match motion {
            [] | ['g'] | ['f' | 'F' | 't' | 'T'] => MotionResult::Incomplete,
            ['h'] => exclusive(times(&|at| previous_grapheme(text, at)).max(line.start)),
            ['l' | ' '] => exclusive(times(&|at| next_grapheme(text, at)).min(line.end)),
            ['w'] => exclusive(times(&|at| next_word(text, at))),
            ['b'] => exclusive(times(&|at| previous_word(text, at))),
            ['e'] => inclusive(times(&|at| word_end(text, at))),
            ['0'] => exclusive(line.start),
            ['^'] => exclusive(first_nonblank(editor, &line)),
            ['$'] => exclusive(line.end),
            ['g', 'g'] => exclusive(0),
            ['G'] => exclusive(text.rfind('\n').map_or(0, |newline| newline + 1)),
            [key @ ('f' | 'F' | 't' | 'T'), target] => {
                let find =
                    Find { target: *target, forward: key.is_lowercase(), till: matches!(key, 't' | 'T') };
                self.find = Some(find);
                find_in_line(text, &line, caret, find, (count, false))
            }
            [key @ (';' | ',')] => match self.find {
                Some(find) => {
                    let forward = find.forward == (*key == ';');
                    find_in_line(text, &line, caret, Find { forward, ..find }, (count, true))
                }
                None => MotionResult::Invalid,
            },
            _ => MotionResult::Invalid,
        }
    }
}

enum MotionResult {
    Complete(Target),
    Incomplete,
    Invalid,
}

#[derive(Debug, Clone, Copy)]
struct Target {
    offset: usize,
    kind: MotionKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MotionKind {
    /// An operator leaves out the grapheme at the target.
    Exclusive,
    Inclusive,
}

/// Number of digits at the start of a command; `0` alone is a motion.
fn count_length(keys: &[char]) -> usize {
    match keys {
        ['1'..='9', ..] => keys.iter().take_while(|key| key.is_ascii_digit()).count(),
        _ => 0,
    }
}

/// The line of the caret, without its newline.
fn line_range(editor: &Editor) -> Range<usize> {
    editor.target(Movement::LineStart)..editor.target(Movement::LineEnd)
}

/// The line of the caret and those below it, without the last newline.
fn lines_range(editor: &Editor, count: usize) -> Range<usize> {
    let start = editor.target(Movement::LineStart);
    let text = editor.text();
    let end = text[start..].match_indices('\n').nth(count - 1).map_or(text.len(), |(at, _)| start + at);
    start..end
}

/// A range of lines with the newline that separates it from the rest.
fn whole_lines(editor: &Editor, range: Range<usize>) -> Range<usize> {
    let text = editor.text();
    match (range.end < text.len(), range.start > 0) {
        (true, _) => range.start..range.end + 1,
        (false, true) => range.start - 1..range.end,
        (false, false) => range,
    }
}

fn first_nonblank(editor: &Editor, line: &Range<usize>) -> usize {
    let text = &editor.text()[line.clone()];
    line.start + (text.len() - text.trim_start().len())
}

/// The last place of the caret in normal mode on the line of an offset.
fn last_place(editor: &Editor, offset: usize) -> usize {
    let text = editor.text();
    let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[offset..].find('\n').map_or(text.len(), |newline| offset + newline);
    if end > start { previous_grapheme(text, end) } else { start }
}

fn stay_on_line(editor: &mut Editor) {
    let last = last_place(editor, editor.caret());
    if editor.caret() > last {
        editor.move_to(last);
    }
}

fn operator_range(editor: &Editor, target: Target) -> Range<usize> {
    let (start, end) = (editor.caret().min(target.offset), editor.caret().max(target.offset));
    let end = if target.kind == MotionKind::Inclusive { next_grapheme(editor.text(), end) } else { end };
    start..end
}

/// Kind of a grapheme for the word motions.
fn word_class(grapheme: &str) -> u8 {
    match grapheme {
        _ if grapheme.chars().all(char::is_whitespace) => 0,
        _ if is_word(grapheme) => 1,
        _ => 2,
    }
}

fn next_word(text: &str, from: usize) -> usize {
    let mut class = None;
    for (at, grapheme) in text[from..].grapheme_indices(true) {
        let this = word_class(grapheme);
        if class.is_some_and(|class| class != this) && this != 0 {
            return from + at;
        }
        class = Some(this);
    }
    text.len()
}

fn previous_word(text: &str, from: usize) -> usize {
    let mut start = from;
    let mut class = 0;
    for (at, grapheme) in text[..from].grapheme_indices(true).rev() {
        let this = word_class(grapheme);
        if class != 0 && this != class {
            break;
        }
        class = this;
        start = at;
    }
    start
}

fn word_end(text: &str, from: usize) -> usize {
    let begin = next_grapheme(text, from);
    let mut end = from;
    let mut class = 0;
    for (at, grapheme) in text[begin..].grapheme_indices(true) {
        let this = word_class(grapheme);
        if class != 0 && this != class {
            break;
        }
        class = this;
        if this != 0 {
            end = begin + at;
        }
    }
    end
}

fn find_in_line(
    text: &str,
    line: &Range<usize>,
    caret: usize,
    find: Find,
    (count, is_repeated): (usize, bool),
) -> MotionResult {
    let mut at = caret;
    for round in 0..count {
        // A repeated `t` does not find the character beside the caret again.
        let skips = find.till && is_repeated && round == 0;
        let found = if find.forward {
            let mut from = next_grapheme(text, at);
            if skips && text[from..].starts_with(find.target) {
                from = next_grapheme(text, from);
            }
            let end = line.end.max(from);
            text[from..end].find(find.target).map(|found| from + found)
        } else {
            let before = previous_grapheme(text, at);
            let upto = if skips && text[before..at].starts_with(find.target) { before } else { at };
            text[line.start..upto.max(line.start)].rfind(find.target).map(|found| line.start + found)
        };
        match found {
            Some(found) => at = found,
            None => return MotionResult::Invalid,
        }
    }
    let offset = match (find.till, find.forward) {
        (false, _) => at,
        (true, true) => previous_grapheme(text, at),
        (true, false) => next_grapheme(text, at),
    };
    let kind = if find.forward { MotionKind::Inclusive } else { MotionKind::Exclusive };
    MotionResult::Complete(Target { offset, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Types keys in normal mode; `~` is Escape. Returns the text with the caret marked.
    fn type_keys(before: &str, keys: &str) -> String {
        let caret = before.find('|').unwrap();
        let mut editor = Editor::default();
        editor.set_inline_text(&before.replacen('|', "", 1), caret);
        let mut vim = Vim { mode: VimMode::Normal, ..Vim::default() };
        for key in keys.chars() {
            let pressed = if key == '~' { VimKey::Escape } else { VimKey::Char(key) };
            if vim.handle(pressed, &mut editor) == VimOutcome::Unused && key != '~' {
                editor.insert(key.encode_utf8(&mut [0; 4]));
            }
        }
        let mut text = editor.text().to_owned();
        text.insert(editor.caret(), '|');
        text
    }

    #[test]
    fn commands_move_and_change() {
        let rows = [
            ("ab|c", "h", "a|bc"),
            ("|abc", "2l", "ab|c"),
            ("ab|c", "l", "ab|c"),
            ("|one two", "w", "one |two"),
            ("|one.two", "w", "one|.two"),
            ("one two|", "b", "one |two"),
            ("|one two", "e", "on|e two"),
            ("  on|e", "0", "|  one"),
            ("  on|e", "^", "  |one"),
            ("|one", "$", "on|e"),
            ("a\nb|c", "gg", "|a\nbc"),
            ("|a\nbc", "G", "a\n|bc"),
            ("|a-b-c", "f-", "a|-b-c"),
            ("|a-b-c", "f-;", "a-b|-c"),
            ("|a-b-c", "f-;,", "a|-b-c"),
            ("|a-b-c", "2t-", "a-|b-c"),
            ("|a-b-c", "t-;", "a-|b-c"),
            ("a|bc", "x", "a|c"),
            ("|abc", "2x", "|c"),
            ("one\nt|wo\nthree", "dd", "one\n|three"),
            ("one\nt|wo", "dd", "|one"),
            ("|one two", "dw", "|two"),
            ("|one two three", "2dw", "|three"),
            ("|one two three", "d2w", "|three"),
            ("one |two", "d0", "|two"),
            ("o|ne two", "D", "|o"),
            ("|one two", "cwnew~", "ne|w two"),
            ("on|e\ntwo", "ccnew~", "ne|w\ntwo"),
            ("o|ne", "Cut~", "ou|t"),
            ("o|ne\ntwo", "yyp", "one\n|one\ntwo"),
            ("o|ne\ntwo", "yyP", "|one\none\ntwo"),
            ("|one two", "dwp", "tone| wo"),
            ("|one", "ix~", "|xone"),
            ("|one", "ax~", "o|xne"),
            ("on|e", "Ix~", "|xone"),
            ("|one", "Ax~", "one|x"),
            ("o|ne\ntwo", "ox~", "one\n|x\ntwo"),
            ("o|ne\ntwo", "Ox~", "|x\none\ntwo"),
            ("|one two", "dwu", "|one two"),
            ("|abcd", "x.", "|cd"),
            ("|one two", "cwnew~w.", "new ne|w"),
            ("|one", "d~x", "|ne"),
            ("|one", "dq", "|one"),
            ("|a👨‍👩‍👧b", "lx", "a|b"),
        ];
        for (before, keys, after) in rows {
            assert_eq!(type_keys(before, keys), after, "{keys} on {before}");
        }
    }

    #[test]
    fn escape_in_insert_mode_is_used_and_in_normal_mode_not() {
        let mut editor = Editor::default();
        let mut vim = Vim::default();
        assert_eq!(vim.handle(VimKey::Escape, &mut editor), VimOutcome::Used);
        assert_eq!(vim.mode(), VimMode::Normal);
        assert_eq!(vim.handle(VimKey::Escape, &mut editor), VimOutcome::Unused);
    }
}
