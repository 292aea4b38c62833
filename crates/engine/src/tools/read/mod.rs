//! Read: shows the model a file. This file decides what kind of file it is and keeps away from those that never end;
//! each kind has a file of its own.

mod image;
pub(super) mod notebook;
mod pdf;
mod text;

use std::io::{self, Read as _};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use self::text::Span;
use super::encoding::{self, Encoding};
use super::fault::{self, not_a_file, unreadable};
use super::target::{self, Site};
use super::{Call, Example, Output, Tool, Touches, Trouble, lenient};
use crate::compare;
use crate::files::{self, Kind, Spot, Stamp};
use crate::workspace::Workspace;

pub(crate) use self::image::picture;

/// The tool.
pub(super) struct Read;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Input {
    file_path: String,
    /// First line, from 1
    #[serde(default, deserialize_with = "lenient::count")]
    #[schemars(with = "Option<usize>")]
    offset: Option<usize>,
    /// Number of lines
    #[serde(default, deserialize_with = "lenient::count")]
    #[schemars(with = "Option<usize>")]
    limit: Option<usize>,
    /// Of a PDF, e.g. "1-5"; at most 20
    #[serde(default)]
    pages: Option<String>,
}

/// The largest text that is read without being asked for a part of it.
const LARGEST_TEXT: u64 = 256 * 1024;
/// The largest picture, document or notebook.
const LARGEST: u64 = 64 * 1024 * 1024;
/// How much of a picture or document the line on the wire has room for, in base64.
const WIRE_ROOM: usize = 950_000;

impl Tool for Read {
    type Input = Input;

    const NAME: &'static str = "Read";

    const DESCRIPTION: &'static str = "Reads a file: text with line numbers, an image, a PDF or a notebook. Of large \
        files, read a part with offset and limit.";

    fn touches(input: &Input) -> Touches {
        Touches::Reads(vec![input.file_path.clone()])
    }

    async fn run(&self, input: Input, call: Call) -> Output {
        let work = files::aside(move || read(&input, &call)).await;
        work.unwrap_or_else(|error| Err(Trouble::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let three = &[("a.txt", "alpha\nbeta\n\tgamma\n")];
        vec![
            Example::new("numbers the lines of a text", json!({"file_path": "a.txt"}))
                .files(three)
                .says(&["1\talpha\n2\tbeta\n3\t\tgamma\n4\t"]),
            Example::new("shows a part", json!({"file_path": "a.txt", "offset": "2", "limit": 1}))
                .files(three)
                .says(&["2\tbeta"]),
            Example::new("says that a file is empty", json!({"file_path": "a.txt"}))
                .files(&[("a.txt", "")])
                .says(&["<system-reminder>", "empty"]),
            Example::new("finds the name that was meant", json!({"file_path": "src/mian.rs"}))
                .files(&[("src/main.rs", "fn main() {}")])
                .fails(&["does not exist", "src/main.rs"]),
            Example::new("does not take a folder for a file", json!({"file_path": "."})).fails(&["EISDIR"]),
            Example::new("shows the cells of a notebook", json!({"file_path": "n.ipynb"}))
                .files(&[(
                    "n.ipynb",
                    r##"{"cells": [{"cell_type": "markdown", "id": "c1", "source": "# t"}]}"##,
                )])
                .says(&[r#"<cell id="c1" type="markdown">"#, "# t"]),
        ]
    }
}

fn read(input: &Input, call: &Call) -> Output {
    let site = Site::of(call, &input.file_path)?;
    match site.kind()? {
        Kind::File(_) => {}
        Kind::Missing => return Err(Trouble::Failed(missing(&site, &call.workspace))),
        Kind::Folder => {
            let text =
                format!("EISDIR: {} is a folder, not a file. List it with Glob or ls.", site.path.display());
            return Err(Trouble::Failed(text));
        }
        other => return Err(Trouble::Refused(not_a_file(&site.path, other))),
    }
    if site.is_off_limits() {
        return Err(target::off_limits(&site.path));
    }
    match site.spot().read(LARGEST_TEXT) {
        Ok((bytes, stamp)) => show(input, &call.workspace, &site, bytes, stamp),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => read_large(input, call, &site),
        Err(error) => Err(unreadable(&site.path, &error)),
    }
}

/// Reads a large file: as a whole if it makes sense only so, otherwise the part that is asked for.
fn read_large(input: &Input, call: &Call, site: &Site) -> Output {
    let (path, workspace) = (site.path.as_path(), &*call.workspace);
    let head = head(site.spot()).map_err(|error| unreadable(path, &error))?;
    let asks_for_part = input.offset.is_some() || input.limit.is_some();
    let is_utf16 = encoding::is_utf16(&head);
    if is_whole(path, &head) || (asks_for_part && is_utf16) {
        return match site.spot().read(LARGEST) {
            Ok((bytes, stamp)) => show(input, workspace, site, bytes, stamp),
            Err(error) => Err(unreadable(path, &error)),
        };
    }
    let (file, stamp) = site.spot().open().map_err(|error| unreadable(path, &error))?;
    if head.contains(&0) && !is_utf16 {
        return Err(binary(workspace, site, stamp));
    }
    if !asks_for_part {
        return Err(too_large(path));
    }
    let part = text::scan(file, input.span(), &call.cancel).map_err(|error| unreadable(path, &error))?;
    let Some(done) = part.show(path) else { return Err(binary(workspace, site, stamp)) };
    site.note(workspace, stamp, None);
    Ok(done)
}

/// Picks the way of showing that fits the content.
fn show(input: &Input, workspace: &Workspace, site: &Site, bytes: Vec<u8>, stamp: Stamp) -> Output {
    let path = site.path.as_path();
    // Even one that cannot be shown is known from now on: otherwise a damaged picture could never be overwritten.
    if let Some(format) = image::format(&bytes) {
        site.note(workspace, stamp, None);
        return image::show(path, &bytes, format);
    }
    if pdf::is_pdf(&bytes) {
        site.note(workspace, stamp, None);
        return pdf::show(path, &bytes, input.pages.as_deref());
    }
    let Some(decoded) = encoding::decode(bytes) else { return Err(binary(workspace, site, stamp)) };
    let known = (decoded.encoding != Encoding::Broken).then_some(decoded.text.as_str());
    if is_notebook(path)
        && let Some(done) = notebook::show(path, &decoded.text, input.span())
    {
        site.note(workspace, stamp, known);
        return Ok(done);
    }
    let (done, whole) = text::show(path, &decoded.text, input.span());
    site.note(workspace, stamp, known.filter(|_| whole));
    Ok(done)
}

impl Input {
    fn span(&self) -> Span {
        Span { first: self.offset.unwrap_or(1).max(1), count: self.limit.filter(|limit| *limit > 0) }
    }
}

/// The first bytes of a file: enough to tell what it is.
fn head(spot: &Spot) -> io::Result<Vec<u8>> {
    let (file, _) = spot.open()?;
    let mut head = Vec::new();
    file.take(64).read_to_end(&mut head)?;
    Ok(head)
}

/// Whether a file of this kind can only be understood as a whole.
fn is_whole(path: &Path, head: &[u8]) -> bool {
    image::format(head).is_some() || pdf::is_pdf(head) || is_notebook(path)
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Says that a file is no text. The model knows it from now on, as far as one can, and may have it overwritten.
fn binary(workspace: &Workspace, site: &Site, stamp: Stamp) -> Trouble {
    site.note(workspace, stamp, None);
    let text = format!(
        "{} is a binary file: it has no text to show. Look at it with a program; Write can replace it.",
        site.path.display()
    );
    Trouble::Refused(text)
}

fn too_large(path: &Path) -> Trouble {
    let text = format!(
        "{} is larger than {} KB and cannot be read at once. Read a part with offset and limit, or search in it.",
        path.display(),
        LARGEST_TEXT / 1024
    );
    Trouble::Refused(text)
}

/// Says that a file is not there, from where it was looked for, and which name may have been meant.
fn missing(site: &Site, workspace: &Workspace) -> String {
    let (path, cwd) = (site.path.as_path(), workspace.cwd());
    let gone =
        if matches!(files::kind(&cwd), Ok(Kind::Folder)) { "" } else { ", which does not exist any more" };
    if files::blocker(path).is_some() || files::link_target(path).is_some() {
        return fault::nothing_at(path, &cwd);
    }
    let text =
        format!("File does not exist: {}. The current folder is {}{gone}.", path.display(), cwd.display());
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return text };
    let names = site.spot().names(2000);
    match compare::nearest(&name.to_string_lossy(), names.iter().map(String::as_str)) {
        Some(near) => format!("{text} Did you mean {}?", folder.join(near).display()),
        None => text,
    }
}

/// Base64 for the host, who gets the same bytes as the model unless the line on the wire would grow too long.
fn copy_for_host(base64: &str) -> &str {
    if base64.len() * 2 <= WIRE_ROOM { base64 } else { "" }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::tools::example::Bench;

    #[tokio::test]
    async fn the_host_gets_the_text_and_where_it_stands() {
        let bench = Bench::new(&[("a.txt", "one\r\ntwo\r\nthree\r\n")]);
        let done = bench.call("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 2})).await.unwrap();
        let file = json!({
            "filePath": bench.path("a.txt"), "content": "two\nthree", "numLines": 2, "startLine": 2, "totalLines": 4,
        });
        assert_eq!(done.meta, json!({"type": "text", "file": file}));
    }

    #[tokio::test]
    async fn what_never_ends_is_never_opened() {
        let bench = Bench::new(&[]);
        nix::unistd::mkfifo(&bench.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/proc/self/environ", bench.path("link")).unwrap();
        symlink("/dev/zero", bench.path("zero")).unwrap();
        for path in [
            "pipe",
            "link",
            "zero",
            "/dev/zero",
            "/dev/stdin",
            "/proc/self/environ",
            "/proc/1/mem",
            "/proc/kmsg",
        ] {
            let trouble = bench.call("Read", json!({"file_path": path})).await.unwrap_err();
            assert!(matches!(trouble, Trouble::Refused(_) | Trouble::Failed(_)), "{path}: {trouble:?}");
        }
    }

    #[tokio::test]
    async fn files_whose_size_is_unknown_are_shown() {
        let bench = Bench::new(&[]);
        assert!(bench.says("Read", json!({"file_path": "/proc/meminfo"})).await.starts_with("1\tMemTotal"));
    }

    #[tokio::test]
    async fn a_large_file_is_shown_in_parts_only() {
        let bench = Bench::new(&[]);
        let text: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        fs::write(bench.path("big.txt"), &text).unwrap();
        let trouble = bench.call("Read", json!({"file_path": "big.txt"})).await.unwrap_err();
        assert!(trouble.reason().contains("offset and limit"), "{trouble:?}");
        let done = bench.call("Read", json!({"file_path": "big.txt", "offset": 99_999})).await.unwrap();
        assert_eq!(done.content, "99999\tline 99999\n100000\tline 100000\n100001\t".to_owned().into());
        assert_eq!(done.meta["file"]["totalLines"], 100_001);
    }

    #[tokio::test]
    async fn the_same_text_is_read_in_every_encoding() {
        let bench = Bench::new(&[]);
        for (name, bytes) in [
            ("marked", &b"\xEF\xBB\xBFgr\xC3\xBCn\n"[..]),
            ("utf16", b"\xFF\xFEg\0r\0\xFC\0n\0\n\0"),
            ("western", b"gr\xFCn\n"),
        ] {
            fs::write(bench.path("a.txt"), bytes).unwrap();
            assert_eq!(bench.says("Read", json!({"file_path": "a.txt"})).await, "1\tgrün\n2\t", "{name}");
        }
        fs::write(bench.path("a.txt"), b"\x7FELF\0\0").unwrap();
        let trouble = bench.call("Read", json!({"file_path": "a.txt"})).await.unwrap_err();
        assert!(trouble.reason().contains("binary"), "{trouble:?}");
    }

    #[tokio::test]
    async fn a_session_survives_the_loss_of_its_folder() {
        let bench = Bench::new(&[("gone/a.txt", "x")]);
        bench.workspace().set_cwd(bench.path("gone"));
        fs::remove_dir_all(bench.path("gone")).unwrap();
        let trouble = bench.call("Read", json!({"file_path": "a.txt"})).await.unwrap_err();
        assert!(trouble.reason().contains("does not exist any more"), "{trouble:?}");
    }
}
