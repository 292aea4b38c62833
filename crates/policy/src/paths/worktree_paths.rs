//! Maps paths in a git worktree of a project to the main checkout, so that deny and ask rules for a file of the project
//! also apply to its copies in worktrees.

/// Directory of a project's worktrees, one subdirectory each.
const WORKTREES_DIR: &str = "/.claude/worktrees/";

/// Paths derived for a path in nested worktrees.
const MAX_NESTED_WORKTREES: usize = 8;

/// Returns the paths in the main checkout that a folded worktree path corresponds to, one per level of nested
/// worktrees. The directory of all worktrees and its parent map to the project, because they contain its files.
pub(super) fn map_to_main_checkout(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    if !text.contains("/.claude") {
        return found;
    }
    for end in ["/.claude", "/.claude/worktrees"] {
        found.extend(text.strip_suffix(end).map(str::to_owned));
    }
    let mut index = 0;
    let mut next = Some(text.to_owned());
    while let Some(text) = next {
        for (start, _) in text.match_indices(WORKTREES_DIR) {
            let (project, rest) = (&text[..start], &text[start + WORKTREES_DIR.len()..]);
            let below = rest.find('/').map_or("", |end| &rest[end..]);
            let path = format!("{project}{below}");
            if found.len() < MAX_NESTED_WORKTREES && !found.contains(&path) {
                found.push(path);
            }
        }
        next = found.get(index).cloned();
        index += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worktree_paths_map_to_the_main_checkout() {
        let rows: [(&str, &[&str]); 6] = [
            ("/w/a", &[]),
            ("/w/.claude/settings.json", &[]),
            ("/w/.claude", &["/w"]),
            ("/w/.claude/worktrees", &["/w"]),
            ("/w/.claude/worktrees/one", &["/w"]),
            (
                "/w/.claude/worktrees/one/.claude/worktrees/two/a",
                &["/w/.claude/worktrees/two/a", "/w/.claude/worktrees/one/a", "/w/a"],
            ),
        ];
        for (path, expected) in rows {
            assert_eq!(map_to_main_checkout(path), expected, "{path}");
        }
    }
}
