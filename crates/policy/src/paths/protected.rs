//! Protected paths: writing them always requires permission, because they determine what other programs run.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use whimbrel_wire::invisible::is_invisible;

use crate::paths::folded_path::fold_path;

/// Directories whose content is protected.
const PROTECTED_DIRS: [&str; 12] = [
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".whimbrel",
    ".jj",
    ".hg",
    ".svn",
];

/// Our configuration directory. Like the others, except that paths below its `worktrees` are checked on their own.
const CONFIG_DIR: &str = ".claude";

/// Files protected by their name.
const PROTECTED_FILES: [&str; 38] = [
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
    ".whimbrel.json",
];

/// Returns true if writing this path requires permission.
pub fn is_protected(path: &Path) -> bool {
    let names: Vec<Cow<'_, str>> = path.components().filter_map(fold_component).collect();
    let names = names.as_slice();
    names.last().is_some_and(|last| PROTECTED_FILES.iter().any(|file| is_named(last, file)))
        || has_protected_dir(names)
}

/// Compares two names, ignoring the case of ASCII letters.
fn is_named(name: &str, wanted: &str) -> bool {
    name.len() == wanted.len() && name.eq_ignore_ascii_case(wanted)
}

/// Returns true if a path equals or lies below one of these paths, ignoring case.
pub(crate) fn is_in_any(path: &Path, dirs: &[PathBuf]) -> bool {
    !dirs.is_empty() && {
        let path = fold_path(path);
        dirs.iter().any(|dir| path.starts_with(fold_path(dir)))
    }
}

/// Returns true if one of these paths equals or lies below this directory, ignoring case.
pub(crate) fn contains_any(directory: &Path, dirs: &[PathBuf]) -> bool {
    !dirs.is_empty() && {
        let directory = fold_path(directory);
        dirs.iter().any(|dir| fold_path(dir).starts_with(&directory))
    }
}

fn has_protected_dir(names: &[Cow<'_, str>]) -> bool {
    let Some((at, name)) = names.iter().enumerate().find(|(at, name)| {
        let next = || names.get(at + 1).is_some_and(|next| is_named(next, "git"));
        name.starts_with('.')
            && (is_named(name, CONFIG_DIR)
                || PROTECTED_DIRS.iter().any(|directory| is_named(name, directory))
                || is_named(name, ".config") && next())
    }) else {
        return false;
    };
    match names.get(at + 1..).unwrap_or_default() {
        [worktrees, below @ ..]
            if is_named(name, CONFIG_DIR) && is_named(worktrees, "worktrees") && !below.is_empty() =>
        {
            has_protected_dir(below)
        }
        _ => true,
    }
}

/// Folds a component for comparison: removes invisible characters and lowers letters beyond ASCII.
fn fold_component(component: Component<'_>) -> Option<Cow<'_, str>> {
    let Component::Normal(name) = component else { return None };
    let name = name.to_string_lossy();
    if name.is_ascii() {
        return Some(name);
    }
    let seen = |character: &char| !is_invisible(*character) && !matches!(character, '\u{fe00}'..='\u{fe0f}');
    Some(name.chars().filter(seen).flat_map(char::to_lowercase).collect::<String>().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_and_unprotected_paths() {
        let protected = [
            "/w/.git",
            "/w/.git/hooks/x",
            "/w/.GIT/config",
            "/w/a/.vscode/settings.json",
            "/w/.claude/settings.json",
            "/w/.claude/worktrees",
            "/w/.claude/worktrees/.git",
            "/w/.claude/worktrees/w/.git/config",
            "/w/.claude/worktrees/w/.npmrc",
            "/h/.config/git/config",
            "/h/.bashrc",
            "/h/.BashRC",
            "/w/.g\u{200b}it/config",
            "/w/.jj/x",
            "/w/x/gradle-wrapper.properties",
        ];
        for path in protected {
            assert!(is_protected(Path::new(path)), "{path}");
        }
        let unprotected = [
            "/w/src/a",
            "/w/.github/workflows/x",
            "/w/.gitignore",
            "/w/.claude/worktrees/w/f.txt",
            "/h/.config/x",
            "/h/.bashrc/x",
            "/w/git",
        ];
        for path in unprotected {
            assert!(!is_protected(Path::new(path)), "{path}");
        }
    }
}
