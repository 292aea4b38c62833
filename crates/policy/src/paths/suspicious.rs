//! File names that file systems interpret differently, such as `a.`, `X~1` and UNC paths.

use std::path::{Component, Path};

/// Returns true if file systems interpret the name differently: trailing dots or blanks, `...`, short names, UNC
/// paths.
pub(crate) fn is_suspicious(path: &Path) -> bool {
    path.components().any(|component| match component {
        Component::Normal(name) => is_suspicious_name(&name.to_string_lossy()),
        Component::RootDir | Component::CurDir | Component::ParentDir | Component::Prefix(_) => false,
    })
}

fn is_suspicious_name(name: &str) -> bool {
    let short_name = name.rsplit_once('~').is_some_and(|(stem, number)| {
        !stem.is_empty() && number.split_once('.').map_or(number, |(number, _)| number).parse::<u16>().is_ok()
    });
    name.ends_with(['.', ' ']) || short_name || name.starts_with("\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suspicious_names() {
        for name in ["/a/b.", "/a/b ", "/a/...", "/a/GIT~1", "/a/GIT~1/x", "/a/PROGRA~1.TXT"] {
            assert!(is_suspicious(Path::new(name)), "{name}");
        }
        for name in ["/a/b", "/a/b~", "/a/.b", "/a/b.c", "/a/~1"] {
            assert!(!is_suspicious(Path::new(name)), "{name}");
        }
    }
}
