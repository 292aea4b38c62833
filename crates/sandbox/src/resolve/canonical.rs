//! Paths without links, with the links that were passed on the way.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Number of links that one path may pass, as in the kernel.
const MAX_LINKS: usize = 40;

/// Where a path leads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Located {
    Present {
        path: PathBuf,
        links: Vec<PathBuf>,
    },
    /// The first missing path on the way.
    Missing {
        path: PathBuf,
        links: Vec<PathBuf>,
    },
    /// The path cannot be looked at; `folder` is the nearest folder above that can.
    Unknown {
        folder: PathBuf,
        links: Vec<PathBuf>,
    },
}

impl Located {
    /// Returns the links on the way, by their own real paths.
    pub(crate) fn links(&self) -> &[PathBuf] {
        match self {
            Self::Present { links, .. } | Self::Missing { links, .. } | Self::Unknown { links, .. } => links,
        }
    }
}

/// Follows an absolute path component by component.
pub(crate) fn locate(path: &Path) -> Located {
    let mut rest = components(path);
    let mut real = PathBuf::from("/");
    let mut links = Vec::new();
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        let metadata = match next.symlink_metadata() {
            Ok(metadata) => metadata,
            Err(error) if is_missing(&error) => return Located::Missing { path: next, links },
            Err(_) => return Located::Unknown { folder: real, links },
        };
        if !metadata.is_symlink() {
            real = next;
            continue;
        }
        links.push(next.clone());
        let target = match std::fs::read_link(&next) {
            Ok(target) if links.len() <= MAX_LINKS => target,
            _ => return Located::Unknown { folder: real, links },
        };
        if target.is_absolute() {
            real = PathBuf::from("/");
        }
        for name in components(&target).into_iter().rev() {
            rest.push_front(name);
        }
    }
    Located::Present { path: real, links }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn components(path: &Path) -> VecDeque<OsString> {
    let name = |component: Component<'_>| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_on_the_way_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/deep")).unwrap();
        symlink("real", base.join("link")).unwrap();
        symlink("../real/deep", base.join("real/again")).unwrap();
        symlink("nowhere", base.join("dangling")).unwrap();
        symlink("loop", base.join("loop")).unwrap();

        let links = |names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
        assert_eq!(
            locate(&base.join("link/again")),
            Located::Present { path: base.join("real/deep"), links: links(&["link", "real/again"]) }
        );
        assert_eq!(
            locate(&base.join("dangling/x")),
            Located::Missing { path: base.join("nowhere"), links: links(&["dangling"]) }
        );
        assert_eq!(
            locate(&base.join("real/../link/./deep")),
            Located::Present { path: base.join("real/deep"), links: links(&["link"]) }
        );
        assert!(matches!(locate(&base.join("loop")), Located::Unknown { folder, .. } if folder == base));
    }
}
