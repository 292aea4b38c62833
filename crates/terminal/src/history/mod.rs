//! Earlier prompts of a project: recalled one by one, or searched. The draft is kept while they are recalled.

pub(crate) mod file;
mod search;

use std::collections::HashSet;

pub(crate) use search::HistorySearch;

/// The prompts, oldest first, and the place of the recall.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    /// Index of the recalled prompt, and the draft that it replaced.
    recalled: Option<(usize, String)>,
}

impl History {
    /// Adds the prompts of earlier sessions below those of this one.
    pub(crate) fn load(&mut self, earlier: Vec<String>) {
        self.recalled = None;
        let own = std::mem::take(&mut self.entries);
        let mut seen = HashSet::new();
        // The newest of equal prompts counts.
        let newest_first = earlier.into_iter().chain(own).rev();
        self.entries =
            newest_first.filter(|entry| !entry.trim().is_empty() && seen.insert(entry.clone())).collect();
        self.entries.reverse();
    }

    /// Adds a prompt and ends the recall. A prompt that is there already moves to the end.
    pub(crate) fn add(&mut self, prompt: &str) {
        self.recalled = None;
        if prompt.trim().is_empty() {
            return;
        }
        self.entries.retain(|entry| entry != prompt);
        self.entries.push(prompt.to_owned());
    }

    /// Recalls the prompt before; `None` at the oldest one.
    pub(crate) fn previous(&mut self, current: &str) -> Option<String> {
        let (index, draft) = match self.recalled.take() {
            Some((index, draft)) => (index, draft),
            None => (self.entries.len(), current.to_owned()),
        };
        let Some(previous) = index.checked_sub(1) else {
            self.recalled = (index < self.entries.len()).then_some((index, draft));
            return None;
        };
        self.recalled = Some((previous, draft));
        Some(self.entries[previous].clone())
    }

    /// Recalls the prompt after, or the draft; `None` if nothing is recalled.
    pub(crate) fn next(&mut self) -> Option<String> {
        let (index, draft) = self.recalled.take()?;
        match self.entries.get(index + 1) {
            Some(entry) => {
                self.recalled = Some((index + 1, draft));
                Some(entry.clone())
            }
            None => Some(draft),
        }
    }

    /// Ends the recall: what is in the line is the draft now.
    pub(crate) fn keep_recalled(&mut self) {
        self.recalled = None;
    }

    /// Starts a search.
    pub(crate) fn search(&self, draft: &str) -> HistorySearch {
        HistorySearch::new(&self.entries, draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> History {
        let mut history = History::default();
        ["one", "two", "one", "  ", "three"].into_iter().for_each(|prompt| history.add(prompt));
        history
    }

    #[test]
    fn recall_goes_back_without_duplicates_and_keeps_the_draft() {
        let mut history = history();
        let recalled: Vec<_> = (0..4).map(|_| history.previous("draft")).collect();
        assert_eq!(recalled, [Some("three".into()), Some("one".into()), Some("two".into()), None]);
        let back: Vec<_> = (0..4).map(|_| history.next()).collect();
        assert_eq!(back, [Some("one".into()), Some("three".into()), Some("draft".into()), None]);
    }

    #[test]
    fn recall_of_an_empty_history_changes_nothing() {
        let mut history = History::default();
        assert_eq!((history.previous("draft"), history.next()), (None, None));
    }

    #[test]
    fn earlier_prompts_are_below_those_of_this_session() {
        let mut history = history();
        history.load(vec!["old".into(), "two".into()]);
        assert_eq!(history.entries, ["old", "two", "one", "three"].map(str::to_owned).to_vec());
    }
}
