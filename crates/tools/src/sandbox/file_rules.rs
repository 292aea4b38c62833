//! Settings and permission rules as rules about files that the kernel enforces.

use std::path::{Path, PathBuf};

use whimbrel_config::settings::sandbox::SandboxPath;
use whimbrel_config::settings::{SandboxSettings, credential_files};
use whimbrel_policy::{PermissionSet, RuleSource, SourcedRule};
use whimbrel_sandbox::policy::{FileLayer, FileRules, PathRule, check_root};
use whimbrel_wire::permission::PermissionBehavior;

use super::PolicyFacts;

/// Checks the paths of the settings: patterns, and folders that can never be writable. Accesses the disk.
pub fn check_paths(settings: &SandboxSettings) -> Result<(), String> {
    let files = &settings.files;
    for (key, paths) in [("denyWrite", &files.deny_write), ("denyRead", &files.deny_read)] {
        for path in paths.iter().filter(|path| !path.is_literal) {
            // The home directory is a literal start, wherever it is.
            let absolute = format!("/{}", path.text.trim_start_matches('/'));
            PathRule::parse(&absolute).check().map_err(|error| name_key(path, key, &error))?;
        }
    }
    for path in &files.allow_write {
        let text = path.text.trim_end_matches("/**");
        check_root(Path::new(if text.is_empty() { "/" } else { text }))
            .map_err(|error| name_key(path, "allowWrite", &error))?;
    }
    Ok(())
}

fn name_key(path: &SandboxPath, key: &str, error: &dyn std::fmt::Display) -> String {
    format!("{}: sandbox.filesystem.{key}: {error}.", path.source)
}

/// Builds the file layer of a command.
pub(crate) fn build_file_layer(facts: &PolicyFacts) -> FileLayer {
    let files = &facts.settings.files;
    if files.disabled {
        return FileLayer::Open;
    }
    let rules = &facts.permissions.rules;
    let paths = |paths: &[SandboxPath]| -> Vec<PathBuf> {
        paths.iter().filter_map(|path| facts.expand(path.text.trim_end_matches("/**"))).collect()
    };
    let edit_allows = rules.edit_rules(PermissionBehavior::Allow).filter(|(rule, _)| is_trusted(rule));
    let mut allow_write = paths(&files.allow_write);
    allow_write.extend(edit_allows.filter_map(|(_, pattern)| pattern.literal_path()));
    let dirs = &facts.permissions.dirs;
    let extra = dirs.extra.iter().filter(|(_, source)| is_trusted_source(*source)).map(|(dir, _)| dir);
    let writable = std::iter::once(&dirs.primary).chain(extra).map(|dir| dir.physical.clone());
    let work_directories = writable.filter(|dir| *dir != facts.root).chain(facts.worktree.clone()).collect();

    let mut deny_write = path_rules(&files.deny_write, facts);
    let edit_denies = rules.edit_rules(PermissionBehavior::Deny).map(|(_, pattern)| pattern.absolute_glob());
    deny_write.extend(edit_denies.filter_map(|glob| enforceable_rule(&glob)));
    deny_write.extend(facts.protected_paths.iter().cloned().map(PathRule::Literal));

    let mut deny_read = path_rules(&files.deny_read, facts);
    let read_denies = rules.read_rules(PermissionBehavior::Deny).map(|(_, pattern)| pattern.absolute_glob());
    deny_read.extend(read_denies.filter_map(|glob| enforceable_rule(&glob)));

    let mut allow_read = paths(&files.allow_read);
    allow_read.extend(facts.env_files.iter().cloned());
    let hidden = facts.config_dir.iter().flat_map(|dir| credential_files(dir)).collect();
    FileLayer::Confined(FileRules {
        work_directories,
        allow_write,
        deny_write,
        deny_read,
        allow_read,
        hidden,
        ..FileRules::default()
    })
}

/// Only these sources may widen the sandbox.
pub(crate) fn is_trusted(rule: &SourcedRule) -> bool {
    is_trusted_source(rule.source)
}

fn is_trusted_source(source: RuleSource) -> bool {
    match source {
        RuleSource::Managed
        | RuleSource::CliArg
        | RuleSource::FlagSettings
        | RuleSource::UserSettings
        | RuleSource::Session => true,
        RuleSource::LocalSettings | RuleSource::ProjectSettings | RuleSource::Skill => false,
    }
}

fn path_rules(paths: &[SandboxPath], facts: &PolicyFacts) -> Vec<PathRule> {
    let rule = |path: &SandboxPath| {
        let expanded = facts.expand(&path.text)?;
        Some(match path.is_literal {
            true => PathRule::Literal(expanded),
            false => PathRule::parse(&expanded.to_string_lossy()),
        })
    };
    paths.iter().filter_map(rule).collect()
}

/// A permission rule as a rule of the kernel; `None` if its pattern could match anywhere on the machine.
fn enforceable_rule(glob: &str) -> Option<PathRule> {
    let unescaped = unescape(glob);
    match PathRule::parse(glob) {
        // `globset::escape` writes special characters of the base as classes.
        PathRule::Glob(_) if unescaped.is_some() => unescaped.map(PathRule::Literal),
        PathRule::Glob(glob) => {
            let first = glob.trim_start_matches('/').split('/').next().unwrap_or_default();
            let is_anchored = !first.is_empty() && !first.contains(['*', '?', '[', '{', '\\']);
            is_anchored.then_some(PathRule::Glob(glob))
        }
        literal @ PathRule::Literal(_) => Some(literal),
    }
}

/// The path that a glob with escaped characters only means.
fn unescape(glob: &str) -> Option<PathBuf> {
    let mut plain = String::with_capacity(glob.len());
    let mut rest = glob.chars();
    while let Some(character) = rest.next() {
        match character {
            '[' => {
                let escaped = rest.next()?;
                plain.push(escaped);
                (rest.next()? == ']').then_some(())?;
            }
            '*' | '?' | '{' | '}' | '\\' => return None,
            other => plain.push(other),
        }
    }
    Some(plain.into())
}

/// Deny rules about files that only the permission check enforces, because their pattern has no fixed start.
pub fn unenforced_rules(permissions: &PermissionSet) -> Vec<String> {
    let reads = permissions.rules.read_rules(PermissionBehavior::Deny);
    let edits = permissions.rules.edit_rules(PermissionBehavior::Deny);
    let rules =
        reads.chain(edits).filter(|(_, pattern)| enforceable_rule(&pattern.absolute_glob()).is_none());
    rules.map(|(rule, _)| rule.rule.to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_without_a_fixed_start_stay_with_the_permission_check() {
        let literal = |path: &str| Some(PathRule::Literal(path.into()));
        let glob = |text: &str| Some(PathRule::Glob(text.into()));
        let rows = [
            ("/p/secrets", literal("/p/secrets")),
            ("/p/a[[]1[]]/x", literal("/p/a[1]/x")),
            ("/p/**/.env", glob("/p/**/.env")),
            ("/p/*.pem", glob("/p/*.pem")),
            ("/**/.env", None),
            ("/*/x", None),
        ];
        for (text, expected) in rows {
            assert_eq!(enforceable_rule(text), expected, "{text}");
        }
    }
}
