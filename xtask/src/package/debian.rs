//! The Debian package, written without the tools of Debian, so that every system makes the same bytes.

use std::collections::BTreeMap;

use anyhow::Result;

use super::archive::{Entry, TarDirectories, write_ar, write_tar};
use super::compression::{Compression, md5};
use super::contents::Contents;
use super::executable::{Executable, debian_dependencies};
use super::{Package, REPOSITORY, SUMMARY, VERSION, version};

const COPYRIGHT: &str = include_str!("../../../packaging/debian/copyright");

pub(super) fn build(
    contents: &Contents,
    executable: &Executable,
    libraries: &BTreeMap<String, Vec<String>>,
    compression: Compression,
) -> Result<Package> {
    let (version, architecture) = (version::to_debian(VERSION), executable.debian_architecture());
    let files = list_files(contents)?;
    let mut sums = String::new();
    for Entry { path, content, .. } in &files {
        sums += &format!("{}  {path}\n", md5(content)?);
    }
    let size: usize = files.iter().map(|entry| entry.content.len().div_ceil(1024)).sum();
    let control = format!(
        "Package: whimbrel
Version: {version}
Architecture: {architecture}
Maintainer: The Whimbrel contributors
Installed-Size: {size}
Depends: {}
Recommends: ca-certificates
Suggests: git
Section: devel
Priority: optional
Homepage: {REPOSITORY}
Description: {}
 Whimbrel calls a model, runs the model's tool calls on this machine under
 permission rules, and reports each step as a frame that a program can read.
 It works at the terminal, in scripts, and with the official SDKs for
 TypeScript and Python.
",
        debian_dependencies(libraries)?,
        SUMMARY.to_lowercase().replace("claude agent sdks", "Claude Agent SDKs"),
    );
    let control_files = [Entry::plain("control", control), Entry::plain("md5sums", sums)];
    let control_archive = write_tar(&below_root(control_files), TarDirectories::Listed)?;
    let data_archive = write_tar(&below_root(files), TarDirectories::Listed)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", compression.gzip(&control_archive)?),
        ("data.tar.gz", compression.gzip(&data_archive)?),
    ];
    Ok(Package { file_name: format!("whimbrel_{version}_{architecture}.deb"), content: write_ar(&members) })
}

/// The installed files, with paths relative to the root.
fn list_files(contents: &Contents) -> Result<Vec<Entry>> {
    let mut files = vec![Entry::executable("usr/bin/whimbrel", contents.program.as_slice())];
    let scripts = contents.completions.iter();
    files.extend(scripts.map(|(path, script)| Entry::plain(format!("usr/share/{path}"), script.as_str())));
    for (name, text) in [
        ("doc/whimbrel/CHANGELOG.md.gz", &contents.changelog),
        ("doc/whimbrel/THIRD-PARTY.gz", &contents.third_party),
        ("man/man1/whimbrel.1.gz", &contents.man_page),
    ] {
        // A rule of Debian: these files are compressed as well as possible.
        files.push(Entry::plain(format!("usr/share/{name}"), Compression::Best.gzip(text.as_bytes())?));
    }
    files.push(Entry::plain("usr/share/doc/whimbrel/copyright", render_copyright(contents)));
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// Puts our licenses into the template.
fn render_copyright(contents: &Contents) -> String {
    let mut text = COPYRIGHT.replace("@REPOSITORY@", REPOSITORY);
    for (name, license) in &contents.licenses {
        text = text.replace(&format!("@{name}@"), &indent_paragraphs(license));
    }
    text
}

/// Indents lines by a blank, and marks empty ones, as the format of the file wants it.
fn indent_paragraphs(text: &str) -> String {
    let indent = |line: &str| if line.trim().is_empty() { " .".to_owned() } else { format!(" {line}") };
    text.trim().lines().map(indent).collect::<Vec<_>>().join("\n")
}

/// Puts entries below `./`, as dpkg expects them.
fn below_root(entries: impl IntoIterator<Item = Entry>) -> Vec<Entry> {
    entries.into_iter().map(|entry| entry.below(".")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn license_becomes_a_field_of_many_lines() {
        assert_eq!(indent_paragraphs("One\n\n  two\n"), " One\n .\n   two");
    }
}
