//! Ranks tools by keywords. Pure.

use whimbrel_models::ToolSpec;

/// A tool prepared for searching.
#[derive(Debug)]
pub(super) struct SearchableTool {
    name: String,
    lowercase_name: String,
    name_words: Vec<String>,
    description_words: Vec<String>,
}

impl SearchableTool {
    pub(super) fn from_spec(spec: &ToolSpec) -> Self {
        Self::new(&spec.name, &spec.description)
    }

    fn new(name: &str, description: &str) -> Self {
        Self {
            name: name.to_owned(),
            lowercase_name: name.to_lowercase(),
            name_words: split_words(name),
            description_words: split_words(description),
        }
    }

    /// Scores one term: highest for a word of the name, lowest for part of a word of the description.
    fn score_term(&self, term: &str) -> u32 {
        // Ignore a plural "s": issue, issues.
        let stem = term.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(term);
        let same = |word: &String| word == term || word.strip_suffix('s').unwrap_or(word) == stem;
        if self.name_words.iter().any(same) {
            10
        } else if self.lowercase_name.contains(stem) {
            5
        } else if self.description_words.iter().any(same) {
            3
        } else if stem.len() > 2 && self.description_words.iter().any(|word| word.contains(stem)) {
            1
        } else {
            0
        }
    }
}

/// Names of matching tools, best first, at most `limit`. A term after `+` must match.
pub(super) fn rank_tools(query: &str, tools: &[SearchableTool], limit: usize) -> Vec<String> {
    if let Some(tool) = tools.iter().find(|tool| tool.lowercase_name == query.to_lowercase()) {
        return vec![tool.name.clone()];
    }
    let (required, optional): (Vec<&str>, Vec<&str>) =
        query.split_whitespace().partition(|term| term.starts_with('+'));
    let required: Vec<String> = required.iter().flat_map(|term| split_words(term)).collect();
    let optional: Vec<String> = optional.iter().flat_map(|term| split_words(term)).collect();
    let score = |tool: &SearchableTool| {
        let all = required.iter().map(|term| tool.score_term(term)).collect::<Vec<_>>();
        let missing = all.contains(&0);
        let sum = all.iter().sum::<u32>() + optional.iter().map(|term| tool.score_term(term)).sum::<u32>();
        (!missing && sum > 0).then_some(sum)
    };
    let mut found: Vec<(u32, &SearchableTool)> =
        tools.iter().filter_map(|tool| Some((score(tool)?, tool))).collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(limit).map(|(_, tool)| tool.name.clone()).collect()
}

/// Words in lower case; `CronCreate` and `cron_create` are two words each.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lowercase = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lowercase) {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lowercase = c.is_lowercase();
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_matches_come_first() {
        let tools = [
            SearchableTool::new("CronCreate", "Posts a prompt at times that repeat."),
            SearchableTool::new("CronList", "Lists what was planned."),
            SearchableTool::new("mcp__github__list_issues", "Lists the issues of a repository."),
            SearchableTool::new("mcp__github__create_issue", "Opens a new one."),
            SearchableTool::new("mcp__slack__send_message", "Sends a message to a channel on Slack."),
        ];
        let rows: [(&str, usize, &[&str]); 9] = [
            ("cron", 5, &["CronCreate", "CronList"]),
            ("cron", 1, &["CronCreate"]),
            ("CRONLIST", 5, &["CronList"]),
            ("list issue", 2, &["mcp__github__list_issues", "CronList"]),
            ("+github create", 1, &["mcp__github__create_issue"]),
            ("+slack +github", 5, &[]),
            ("channels", 5, &["mcp__slack__send_message"]),
            ("repeat", 5, &["CronCreate"]),
            ("xylophone", 5, &[]),
        ];
        for (query, limit, expected) in rows {
            assert_eq!(rank_tools(query, &tools, limit), expected, "{query}");
        }
    }

    #[test]
    fn words_are_split_in_any_spelling() {
        assert_eq!(
            split_words("mcp__gitHub__list-issues2 Of ÄrzteBlatt"),
            ["mcp", "git", "hub", "list", "issues2", "of", "ärzte", "blatt"]
        );
    }
}
