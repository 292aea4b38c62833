//! Renders the list of skills for the model within a size limit. Pure.

/// Maximum length of all names and descriptions.
const MAX_TOTAL_CHARS: usize = 8_000;

const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// A description with less room than this is left out.
const MIN_DESCRIPTION_CHARS: usize = 20;

/// Renders names and descriptions; `None` if there are no entries.
pub fn render(entries: &[(&str, &str)]) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let name_sizes: Vec<usize> = entries.iter().map(|(name, _)| name.chars().count() + 4).collect();
    let shown = count_fitting(&name_sizes);
    let used: usize = name_sizes[..shown].iter().sum();
    let limit = description_limit(
        entries[..shown].iter().map(|(_, text)| text.chars().count()),
        MAX_TOTAL_CHARS - used.min(MAX_TOTAL_CHARS),
    );
    let mut lines: Vec<String> =
        entries[..shown].iter().map(|(name, text)| render_line(name, text, limit)).collect();
    if shown < entries.len() {
        lines.push(format!("- and {} more that are not listed", entries.len() - shown));
    }
    Some(format!(
        "<system-reminder>\nSkills that you can load with the Skill tool, each for the task in its description:\n\n{}\n</system-reminder>",
        lines.join("\n")
    ))
}

/// Number of names that fit.
fn count_fitting(name_sizes: &[usize]) -> usize {
    let mut used = 0;
    name_sizes
        .iter()
        .take_while(|size| {
            used += **size;
            used <= MAX_TOTAL_CHARS
        })
        .count()
}

/// Maximum length of each description so that all fit; short ones leave their rest to the others.
fn description_limit(sizes: impl Iterator<Item = usize>, budget: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.map(|size| size.min(MAX_DESCRIPTION_CHARS)).collect();
    sizes.sort_unstable();
    let mut budget = budget;
    for (done, size) in sizes.iter().enumerate() {
        let share = budget / (sizes.len() - done);
        if *size > share {
            return share;
        }
        budget -= size;
    }
    MAX_DESCRIPTION_CHARS
}

fn render_line(name: &str, text: &str, limit: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(limit) {
        _ if text.is_empty() || limit < MIN_DESCRIPTION_CHARS => format!("- {name}"),
        Some((end, _)) => format!("- {name}: {}...", &text[..end]),
        None => format!("- {name}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_skill_has_one_line() {
        assert_eq!(render(&[]), None);
        let text = render(&[("pdf", "Reads\n  PDF files"), ("x", "")]).unwrap();
        assert!(text.contains("\n- pdf: Reads PDF files\n- x\n"), "{text}");
    }

    #[test]
    fn long_lists_stay_within_the_limit() {
        let long = "word ".repeat(2_000);
        let one = render(&[("a", &long)]).unwrap();
        assert!(one.chars().count() < MAX_DESCRIPTION_CHARS + 200 && one.contains("..."), "{}", one.len());
        let names: Vec<String> = (0..40).map(|number| format!("skill-{number}")).collect();
        let mut entries: Vec<(&str, &str)> =
            names.iter().map(|name| (name.as_str(), long.as_str())).collect();
        entries[7].1 = "Short and whole";
        let text = render(&entries).unwrap();
        assert!(text.chars().count() < MAX_TOTAL_CHARS + 400, "{}", text.len());
        assert!(text.contains("- skill-7: Short and whole\n") && text.contains("- skill-39: word"));
        let names: Vec<String> = (0..5_000).map(|number| format!("skill-{number}")).collect();
        let entries: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "Does it")).collect();
        let text = render(&entries).unwrap();
        assert!(text.chars().count() < MAX_TOTAL_CHARS + 400, "{}", text.len());
        assert!(text.contains("- skill-0\n") && text.contains("more that are not listed"));
    }
}
