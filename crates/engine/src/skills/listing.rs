//! What the model is told of skills, pure: names and descriptions, within a bound whatever there is.

/// How many characters the descriptions and names may have together.
const MAX_TOTAL_CHARS: usize = 8_000;

/// How many characters one description may have.
const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// The least that a description is worth showing with.
const MIN_DESCRIPTION_CHARS: usize = 20;

/// The list, if there is anything on it: name and description of each.
pub fn render(entries: &[(&str, &str)]) -> Option<String> {
    if entries.is_empty() {
        return None;
    }
    let names: Vec<usize> = entries.iter().map(|(name, _)| name.chars().count() + 4).collect();
    let shown = count_fitting(&names);
    let spent: usize = names[..shown].iter().sum();
    let share = description_limit(entries[..shown].iter().map(|(_, text)| text.chars().count()), MAX_TOTAL_CHARS - spent.min(MAX_TOTAL_CHARS));
    let mut lines: Vec<String> =
        entries[..shown].iter().map(|(name, text)| render_line(name, text, share)).collect();
    if shown < entries.len() {
        lines.push(format!("- and {} more that are not listed", entries.len() - shown));
    }
    Some(format!(
        "<system-reminder>\nSkills that you can load with the tool Skill, each for what it says:\n\n{}\n</system-reminder>",
        lines.join("\n")
    ))
}

/// How many names fit.
fn count_fitting(names: &[usize]) -> usize {
    let mut spent = 0;
    names
        .iter()
        .take_while(|size| {
            spent += **size;
            spent <= MAX_TOTAL_CHARS
        })
        .count()
}

/// How long descriptions may be so that all of them fit: short ones leave their rest to the others.
fn description_limit(sizes: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut sizes: Vec<usize> = sizes.map(|size| size.min(MAX_DESCRIPTION_CHARS)).collect();
    sizes.sort_unstable();
    let mut room = room;
    for (done, size) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - done);
        if *size > share {
            return share;
        }
        room -= size;
    }
    MAX_DESCRIPTION_CHARS
}

fn render_line(name: &str, text: &str, share: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(share) {
        _ if text.is_empty() || share < MIN_DESCRIPTION_CHARS => format!("- {name}"),
        Some((end, _)) => format!("- {name}: {}...", &text[..end]),
        None => format!("- {name}: {text}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_descriptions_are_told_in_one_line_each() {
        assert_eq!(render(&[]), None);
        let text = render(&[("pdf", "Reads\n  PDF files"), ("x", "")]).unwrap();
        assert!(text.contains("\n- pdf: Reads PDF files\n- x\n"), "{text}");
    }

    #[test]
    fn many_or_long_ones_stay_within_the_bound() {
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
