//! Search in the history with a live list.

/// Number of matches that are shown.
pub(crate) const MAX_SHOWN_MATCHES: usize = 8;

/// A running search.
#[derive(Debug, Clone)]
pub(crate) struct HistorySearch {
    /// Newest first.
    entries: Vec<String>,
    query: String,
    matches: Vec<usize>,
    selected: usize,
    /// What was in the line before.
    draft: String,
}

impl HistorySearch {
    pub(super) fn new(entries: &[String], draft: &str) -> Self {
        let mut search = Self {
            entries: entries.iter().rev().cloned().collect(),
            query: String::new(),
            matches: Vec::new(),
            selected: 0,
            draft: draft.to_owned(),
        };
        search.update();
        search
    }

    /// What is searched.
    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// What was in the line before the search.
    pub(crate) fn draft(&self) -> &str {
        &self.draft
    }

    /// Adds a typed text to the query.
    pub(crate) fn push(&mut self, text: &str) {
        self.query.push_str(text);
        self.update();
    }

    /// Removes the last character of the query.
    pub(crate) fn pop(&mut self) {
        self.query.pop();
        self.update();
    }

    /// Selects the next older match; it stays at the last one.
    pub(crate) fn older(&mut self) {
        self.selected = (self.selected + 1).min(self.matches.len().saturating_sub(1));
    }

    /// Selects the next newer match.
    pub(crate) fn newer(&mut self) {
        self.selected = self.selected.saturating_sub(1);
    }

    /// The selected prompt.
    pub(crate) fn selected(&self) -> Option<&str> {
        self.matches.get(self.selected).map(|index| self.entries[*index].as_str())
    }

    /// The matches around the selected one, with a mark for it.
    pub(crate) fn shown(&self) -> impl Iterator<Item = (bool, &str)> {
        let first = (self.selected + 1).saturating_sub(MAX_SHOWN_MATCHES);
        let rows = self.matches.iter().enumerate().skip(first).take(MAX_SHOWN_MATCHES);
        rows.map(|(row, index)| (row == self.selected, self.entries[*index].as_str()))
    }

    /// Finds the prompts that contain every word of the query. Capital letters in the query have to match.
    fn update(&mut self) {
        let is_exact = self.query.chars().any(char::is_uppercase);
        let words: Vec<&str> = self.query.split_whitespace().collect();
        let has_words = |entry: &str| {
            let lower = if is_exact { entry.to_owned() } else { entry.to_lowercase() };
            words.iter().all(|word| lower.contains(word))
        };
        self.matches = (0..self.entries.len()).filter(|index| has_words(&self.entries[*index])).collect();
        self.selected = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str) -> Vec<String> {
        let entries = ["fix the Parser", "run tests", "fix tests in parser"].map(str::to_owned);
        let mut search = HistorySearch::new(&entries, "draft");
        search.push(query);
        search.shown().map(|(_, entry)| entry.to_owned()).collect()
    }

    #[test]
    fn all_words_match_and_the_newest_comes_first() {
        assert_eq!(found("parser fix"), ["fix tests in parser", "fix the Parser"]);
        assert_eq!(found("Parser"), ["fix the Parser"]);
        assert_eq!(found("x y"), Vec::<String>::new());
        assert_eq!(found("").len(), 3);
    }

    #[test]
    fn selection_moves_within_the_matches() {
        let entries: Vec<String> = (0..20).map(|number| format!("prompt {number}")).collect();
        let mut search = HistorySearch::new(&entries, "");
        (0..50).for_each(|_| search.older());
        assert_eq!(search.selected(), Some("prompt 0"));
        assert_eq!(search.shown().filter(|(is_selected, _)| *is_selected).count(), 1);
        (0..50).for_each(|_| search.newer());
        assert_eq!(search.selected(), Some("prompt 19"));
        search.push("7");
        assert_eq!(search.selected(), Some("prompt 17"));
        search.pop();
        assert_eq!(search.query(), "");
    }
}
