//! Paths that a git configuration names and git obeys: folders of hooks and included files. Pure.

/// A path in a git configuration.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ConfiguredPath {
    /// `core.hooksPath`, relative to the working tree.
    Hooks(String),
    /// `include.path` and `includeIf.*.path`, relative to the configuration.
    Include(String),
}

/// Facts about a git configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ConfigFacts {
    pub(crate) paths: Vec<ConfiguredPath>,
    /// Whether `config.worktree` is read.
    pub(crate) worktree_config: bool,
}

/// Reads what matters here. Where a line is unclear, more is protected rather than less.
pub(crate) fn read_config(text: &str) -> ConfigFacts {
    let mut facts = ConfigFacts::default();
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[') {
            let Some((header, rest)) = rest.split_once(']') else { continue };
            section = header.split([' ', '\t', '.', '"']).next().unwrap_or_default().to_lowercase();
            line = rest.trim();
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let value = value.trim().trim_matches('"').replace("\\\\", "\\");
        match (section.as_str(), key.trim().to_lowercase().as_str()) {
            ("core", "hookspath") => facts.paths.push(ConfiguredPath::Hooks(value)),
            ("include" | "includeif", "path") => facts.paths.push(ConfiguredPath::Include(value)),
            ("extensions", "worktreeconfig") => facts.worktree_config = true,
            _ => {}
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_their_sections() {
        let text = "[core]\n\tbare = false\n\thooksPath = .githooks\n[remote \"path\"]\n\tpath = no\n\
                    [includeIf \"gitdir:x\"] path = \"../extra\"\n[extensions]\nworktreeConfig\n";
        assert_eq!(
            read_config(text),
            ConfigFacts {
                paths: vec![
                    ConfiguredPath::Hooks(".githooks".into()),
                    ConfiguredPath::Include("../extra".into())
                ],
                worktree_config: true,
            }
        );
        assert_eq!(read_config("hooksPath = x\n[user]\nname = [core]\n"), ConfigFacts::default());
    }
}
