//! The Python wheel: the program in a package `whimbrel`, with `python -m whimbrel`, a script `whimbrel` and
//! `whimbrel.cli_path()`.

use anyhow::{Context, Result};

use super::archive::{Entry, write_zip};
use super::compression::{Compression, sha256};
use super::contents::Contents;
use super::executable::Executable;
use super::{Package, REPOSITORY, SUMMARY, VERSION, version};

const INIT: &str = include_str!("../../../packaging/python/__init__.py");
const MAIN: &str = include_str!("../../../packaging/python/__main__.py");
const README: &str = include_str!("../../../packaging/python/README.md");

pub(super) fn build(
    contents: &Contents,
    executable: &Executable,
    compression: Compression,
) -> Result<Package> {
    let version = version::to_python(VERSION)?;
    let tag = format!("py3-none-{}", executable.wheel_tag()?);
    let info_dir = format!("whimbrel-{version}.dist-info");
    let mut entries = vec![
        Entry::plain("whimbrel/__init__.py", INIT.replace("@VERSION@", &version)),
        Entry::plain("whimbrel/__main__.py", MAIN),
        Entry::plain("whimbrel/py.typed", ""),
        Entry::executable("whimbrel/bin/whimbrel", contents.program.as_slice()),
    ];
    let licenses = contents.license_entries();
    let info = [
        Entry::plain("METADATA", render_metadata(&version, &licenses)),
        Entry::plain(
            "WHEEL",
            format!(
                "Wheel-Version: 1.0\nGenerator: whimbrel ({VERSION})\nRoot-Is-Purelib: false\nTag: {tag}\n"
            ),
        ),
        Entry::plain("entry_points.txt", "[console_scripts]\nwhimbrel = whimbrel.__main__:main\n"),
    ];
    let licenses = licenses.into_iter().map(|entry| entry.below("licenses"));
    entries.extend(info.into_iter().chain(licenses).map(|entry| entry.below(&info_dir)));
    let record = render_record(&entries, &info_dir)?;
    entries.push(Entry::plain(format!("{info_dir}/RECORD"), record));
    Ok(Package {
        file_name: format!("whimbrel-{version}-{tag}.whl"),
        content: write_zip(&entries, compression)?,
    })
}

fn render_metadata(version: &str, licenses: &[Entry]) -> String {
    let files: String = licenses.iter().map(|entry| format!("License-File: {}\n", entry.path)).collect();
    format!(
        "Metadata-Version: 2.4
Name: whimbrel
Version: {version}
Summary: {SUMMARY}
License-Expression: MIT OR Apache-2.0
{files}Project-URL: Source, {REPOSITORY}
Keywords: agent,llm,claude
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{README}"
    )
}

/// Lists every file with its checksum and size.
fn render_record(entries: &[Entry], info_dir: &str) -> Result<String> {
    let mut record = String::new();
    for Entry { path, content, .. } in entries {
        record += &format!("{path},sha256={},{}\n", url_base64(&sha256(content)?)?, content.len());
    }
    Ok(record + &format!("{info_dir}/RECORD,,\n"))
}

/// Converts hexadecimal digits to the base64 of URLs, without padding.
fn url_base64(hex: &str) -> Result<String> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let bits: Option<Vec<u32>> = hex.chars().map(|digit| digit.to_digit(16)).collect();
    let bits: String =
        bits.context("a checksum is not hexadecimal")?.iter().map(|digit| format!("{digit:04b}")).collect();
    let groups = bits.as_bytes().chunks(6).map(|group| {
        let value = group.iter().fold(0, |value, bit| value * 2 + usize::from(*bit == b'1'));
        char::from(DIGITS[value << (6 - group.len())])
    });
    Ok(groups.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_letters_of_urls_and_no_padding() {
        for (hex, expected) in
            [("", ""), ("00", "AA"), ("fbff", "-_8"), ("616263", "YWJj"), ("61626364", "YWJjZA")]
        {
            assert_eq!(url_base64(hex).unwrap(), expected, "{hex}");
        }
        assert!(url_base64("xy").is_err());
    }
}
