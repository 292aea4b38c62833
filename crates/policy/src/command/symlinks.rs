//! Commands that follow symbolic links below their directories.

use crate::shell::SimpleCommand;

/// Programs with the letters and long options that make them follow links; `*` if they always do.
const LINK_FOLLOWERS: &[(&str, &str, &[&str])] = &[
    ("diff", "*", &[]),
    ("grep", "R", &["--dereference-recursive"]),
    ("egrep", "R", &["--dereference-recursive"]),
    ("fgrep", "R", &["--dereference-recursive"]),
    ("rg", "L", &["--follow"]),
    ("find", "L", &["-follow"]),
    ("ls", "L", &["--dereference"]),
    ("du", "L", &["--dereference"]),
    ("tree", "l", &[]),
    ("cp", "LH", &["--dereference"]),
    ("tar", "h", &["--dereference"]),
    ("rsync", "Lk", &["--copy-links", "--copy-dirlinks", "--copy-unsafe-links"]),
];

/// Returns true if a simple command follows links below its directories.
pub(super) fn follows_symlinks(part: &SimpleCommand) -> bool {
    if !part.recursive {
        return false;
    }
    let program = part.program.as_deref().and_then(|program| program.rsplit('/').next()).unwrap_or_default();
    let Some((_, letters, long)) = LINK_FOLLOWERS.iter().find(|(listed, ..)| *listed == program) else {
        return false;
    };
    let asked = |text: &str| {
        long.contains(&text)
            || !text.starts_with("--")
                && text
                    .strip_prefix('-')
                    .is_some_and(|bundle| bundle.contains(|letter| letters.contains(letter)))
    };
    *letters == "*" || part.words.iter().any(|word| word.value.as_literal().is_some_and(asked))
}
