//! Limit on the length of paths.
//!
//! No system opens a path of more than 4,096 bytes, and real trees are not hundreds of directories deep. Resolving
//! such a path would take quadratic time.

use crate::shell::{Script, WordValue};

/// Maximum length of a path.
const MAX_PATH_LENGTH: usize = 4_096;

/// Maximum depth of a path.
const MAX_PATH_DEPTH: usize = 256;

/// Replaces every path that is too long by an unknown path below the root.
pub(crate) fn replace_long_paths(script: &mut Script) {
    for part in script.commands.iter_mut().chain(&mut script.commands_if_empty) {
        let lists = [&mut part.reads, &mut part.writes, &mut part.bulk_write_dirs, &mut part.removals];
        lists.into_iter().flatten().for_each(replace_if_too_long);
        part.redirects.iter_mut().for_each(|redirect| replace_if_too_long(&mut redirect.target));
        for landing in &mut part.dir_targets {
            replace_if_too_long(&mut landing.directory);
            replace_if_too_long(&mut landing.source);
        }
    }
    script.cd_targets.iter_mut().flatten().for_each(replace_if_too_long);
    script
        .cd_directories
        .iter_mut()
        .chain(&mut script.option_directories)
        .chain(&mut script.cd_path)
        .for_each(replace_if_too_long);
}

fn replace_if_too_long(value: &mut WordValue) {
    let length = match value {
        WordValue::Literal(text) | WordValue::Glob(text) => text.len(),
        WordValue::Unknown { before, after, .. } => before.len() + after.len(),
    };
    let deep = |text: &str| text.bytes().filter(|byte| *byte == b'/').count() > MAX_PATH_DEPTH;
    let overlong = length > MAX_PATH_LENGTH
        || length > MAX_PATH_DEPTH
            && match value {
                WordValue::Literal(text) | WordValue::Glob(text) => deep(text),
                WordValue::Unknown { before, after, .. } => deep(before) || deep(after),
            };
    if overlong {
        *value = WordValue::Unknown { before: "/".into(), after: String::new(), nonempty: false };
    }
}
