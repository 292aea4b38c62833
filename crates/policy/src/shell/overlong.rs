//! Paths that are too long to be followed.
//!
//! No system opens a path of more than 4,096 bytes, and nobody has files hundreds of folders deep. To look where such a path
//! leads would take time that grows with its square.

use super::{Script, Value};

/// The longest path that a system opens.
const LONGEST: usize = 4_096;

/// How many folders deep paths are followed.
const DEEPEST: usize = 256;

/// Puts something below the root that is not known in the place of every path that is too long.
pub(super) fn shorten(script: &mut Script) {
    for part in script.parts.iter_mut().chain(&mut script.supposed) {
        let lists = [&mut part.reads, &mut part.writes, &mut part.sweeps, &mut part.critical];
        lists.into_iter().flatten().for_each(shorten_one);
        part.redirects.iter_mut().for_each(|redirect| shorten_one(&mut redirect.target));
        for landing in &mut part.lands {
            shorten_one(&mut landing.directory);
            shorten_one(&mut landing.from);
        }
    }
    script.changes_dir.iter_mut().flatten().for_each(shorten_one);
    script
        .directories
        .iter_mut()
        .chain(&mut script.elsewhere)
        .chain(&mut script.cd_path)
        .for_each(shorten_one);
}

fn shorten_one(value: &mut Value) {
    let length = match value {
        Value::Literal(text) | Value::Glob(text) => text.len(),
        Value::Unknown { before, after, .. } => before.len() + after.len(),
    };
    let deep = |text: &str| text.bytes().filter(|byte| *byte == b'/').count() > DEEPEST;
    let overlong = length > LONGEST
        || length > DEEPEST
            && match value {
                Value::Literal(text) | Value::Glob(text) => deep(text),
                Value::Unknown { before, after, .. } => deep(before) || deep(after),
            };
    if overlong {
        *value = Value::Unknown { before: "/".into(), after: String::new(), guarded: false };
    }
}
