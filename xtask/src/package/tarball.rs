//! The tarball: a directory with `bin` and `share`, to be unpacked over a prefix such as `/usr/local` or `~/.local`.

use anyhow::Result;

use super::archive::{Entry, TarDirectories, write_tar};
use super::compression::Compression;
use super::contents::Contents;
use super::executable::Executable;
use super::{Package, VERSION};

pub(super) fn build(
    contents: &Contents,
    executable: &Executable,
    compression: Compression,
) -> Result<Package> {
    let dir = format!("whimbrel-{VERSION}-{}", executable.target());
    let entries: Vec<Entry> = list_entries(contents).into_iter().map(|entry| entry.below(&dir)).collect();
    let archive = write_tar(&entries, TarDirectories::Listed)?;
    Ok(Package { file_name: format!("{dir}.tar.gz"), content: compression.gzip(&archive)? })
}

fn list_entries(contents: &Contents) -> Vec<Entry> {
    let mut entries = vec![Entry::executable("bin/whimbrel", contents.program.as_slice())];
    for (path, script) in &contents.completions {
        // zsh on macOS and in /usr/local looks here; `vendor-completions` is a directory of Debian.
        let path = path.replace("zsh/vendor-completions", "zsh/site-functions");
        entries.push(Entry::plain(format!("share/{path}"), script.as_str()));
    }
    entries.push(Entry::plain("share/man/man1/whimbrel.1", contents.man_page.as_str()));
    let documents = contents.license_entries().into_iter().chain([
        Entry::plain("README.md", contents.readme.as_str()),
        Entry::plain("CHANGELOG.md", contents.changelog.as_str()),
    ]);
    entries.extend(documents.map(|entry| entry.below("share/doc/whimbrel")));
    entries
}
