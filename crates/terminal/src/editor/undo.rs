//! Undo and redo. Typed characters up to a blank are one step.

/// Number of steps that are kept.
const MAX_STEPS: usize = 200;

/// Kind of a change; some kinds join the step before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Typed,
    /// Typed blanks: they end a step.
    Blank,
    Deleted,
    Killed,
    Other,
}

/// Text and caret.
type Snapshot = (String, usize);

#[derive(Debug, Clone, Default)]
pub(super) struct UndoHistory {
    undone: Vec<Snapshot>,
    steps: Vec<Snapshot>,
    group: Option<ChangeKind>,
}

impl UndoHistory {
    /// Records the state before a change.
    pub(super) fn record(&mut self, kind: ChangeKind, (text, caret): (&str, usize)) {
        let joins = matches!(
            (self.group, kind),
            (Some(ChangeKind::Typed), ChangeKind::Typed | ChangeKind::Blank)
                | (Some(ChangeKind::Blank), ChangeKind::Blank)
                | (Some(ChangeKind::Deleted), ChangeKind::Deleted)
        );
        self.group = Some(kind);
        self.undone.clear();
        if joins {
            return;
        }
        if self.steps.len() == MAX_STEPS {
            self.steps.remove(0);
        }
        self.steps.push((text.to_owned(), caret));
    }

    /// The next change is a step of its own.
    pub(super) fn end_group(&mut self) {
        self.group = None;
    }

    /// Returns the state before the last step.
    pub(super) fn undo(&mut self, current: Snapshot) -> Option<Snapshot> {
        let snapshot = self.steps.pop()?;
        self.undone.push(current);
        Some(snapshot)
    }

    /// Returns the state after the step that was undone last.
    pub(super) fn redo(&mut self, current: Snapshot) -> Option<Snapshot> {
        let snapshot = self.undone.pop()?;
        self.steps.push(current);
        Some(snapshot)
    }
}
