//! Read: shows a file to the model. This module detects the kind of file and rejects those that never end; each kind
//! has its own module.

mod image;
pub(super) mod notebook;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(not(feature = "pdf"))]
#[path = "pdf_unavailable.rs"]
mod pdf;
mod text;

use std::io::{self, Read as _};
use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use whimbrel_os::files::{self, FileHandle, FileKind, FileStamp};

use self::text::LineRequest;
use super::encoding::{self, TextEncoding};
use super::file_errors::{self, not_a_file_message, read_error};
use super::file_target::{self, FileTarget};
use super::similar_text::find_most_similar;
use crate::api::{Effects, Example, Tool, ToolContext, ToolError, ToolResult, lenient};
use crate::workspace::Workspace;
use whimbrel_models::images::ImageFormat;

pub(super) struct ReadTool;

#[derive(Deserialize, JsonSchema)]
pub(super) struct ReadInput {
    file_path: String,
    // Negative numbers count from the end, for hosts whose models know that from another tool.
    /// First line, 1-based
    #[serde(default, deserialize_with = "lenient::position")]
    #[schemars(with = "Option<usize>")]
    offset: Option<i64>,
    /// Number of lines
    #[serde(default, deserialize_with = "lenient::count")]
    #[schemars(with = "Option<usize>")]
    limit: Option<usize>,
    /// PDF pages, e.g. "1-5"; at most 20
    #[serde(default)]
    pages: Option<String>,
}

/// Largest text that is read without offset or limit.
const MAX_TEXT_BYTES: u64 = 256 * 1024;
/// Largest image, document or notebook.
const MAX_WHOLE_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// Maximum base64 size of an image or document in a frame.
const MAX_WIRE_BASE64_BYTES: usize = 950_000;

impl Tool for ReadTool {
    type Input = ReadInput;

    const NAME: &'static str = "Read";

    const DESCRIPTION: &'static str = "Reads a file: text with line numbers, an image, a PDF or a notebook. For large \
        files, use offset and limit.";

    fn effects(input: &ReadInput) -> Effects {
        Effects::Reads(vec![input.file_path.clone()])
    }

    async fn run(&self, input: ReadInput, call: ToolContext) -> ToolResult {
        let work = files::run_blocking(move || read_file(&input, &call)).await;
        work.unwrap_or_else(|error| Err(ToolError::Failed(error.to_string())))
    }

    fn examples() -> Vec<Example> {
        let three = &[("a.txt", "alpha\nbeta\n\tgamma\n")];
        vec![
            Example::new("numbers the lines", json!({"file_path": "a.txt"}))
                .with_files(three)
                .expect_output(&["1\talpha\n2\tbeta\n3\t\tgamma\n4\t"]),
            Example::new("shows a part", json!({"file_path": "a.txt", "offset": "2", "limit": 1}))
                .with_files(three)
                .expect_output(&["2\tbeta"]),
            Example::new("counts from the end", json!({"file_path": "a.txt", "offset": -2, "limit": 1}))
                .with_files(three)
                .expect_output(&["2\tbeta"]),
            Example::new("reports an empty file", json!({"file_path": "a.txt"}))
                .with_files(&[("a.txt", "")])
                .expect_output(&["<system-reminder>", "empty"]),
            Example::new("suggests a similar name", json!({"file_path": "src/mian.rs"}))
                .with_files(&[("src/main.rs", "fn main() {}")])
                .expect_error(&["does not exist", "src/main.rs"]),
            Example::new("rejects a directory", json!({"file_path": "."})).expect_error(&["EISDIR"]),
            Example::new("shows the cells of a notebook", json!({"file_path": "n.ipynb"}))
                .with_files(&[(
                    "n.ipynb",
                    r##"{"cells": [{"cell_type": "markdown", "id": "c1", "source": "# t"}]}"##,
                )])
                .expect_output(&[r#"<cell id="c1" type="markdown">"#, "# t"]),
        ]
    }
}

fn read_file(input: &ReadInput, call: &ToolContext) -> ToolResult {
    let target = FileTarget::resolve(call, &input.file_path)?;
    match target.file_kind()? {
        FileKind::File(_) => {}
        FileKind::Missing => return Err(ToolError::Failed(missing_file_text(&target, &call.workspace))),
        FileKind::Directory => {
            let text = format!(
                "EISDIR: {} is a directory, not a file. List it with Glob or ls.",
                target.path.display()
            );
            return Err(ToolError::Failed(text));
        }
        other => return Err(ToolError::Rejected(not_a_file_message(&target.path, other))),
    }
    if target.is_special() {
        return Err(file_target::special_path_error(&target.path));
    }
    match target.handle().read(MAX_TEXT_BYTES) {
        Ok((bytes, stamp)) => show_content(input, &call.workspace, &target, bytes, stamp),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => read_large_file(input, call, &target),
        Err(error) => Err(read_error(&target.path, &error)),
    }
}

/// Reads a large file: whole if its format requires that, otherwise the requested part.
fn read_large_file(input: &ReadInput, call: &ToolContext, target: &FileTarget) -> ToolResult {
    let (path, workspace) = (target.path.as_path(), &*call.workspace);
    let head = read_head(target.handle()).map_err(|error| read_error(path, &error))?;
    let is_partial = input.offset.is_some() || input.limit.is_some();
    let is_utf16 = encoding::has_utf16_bom(&head);
    if needs_whole_file(path, &head) || (is_partial && is_utf16) {
        return match target.handle().read(MAX_WHOLE_FILE_BYTES) {
            Ok((bytes, stamp)) => show_content(input, workspace, target, bytes, stamp),
            Err(error) => Err(read_error(path, &error)),
        };
    }
    let to_error = |error: io::Error| read_error(path, &error);
    let (file, stamp) = target.handle().open().map_err(to_error)?;
    if head.contains(&0) && !is_utf16 {
        return Err(binary_file_error(workspace, target, stamp));
    }
    if !is_partial {
        return Err(too_large_error(path));
    }
    let span = match input.lines().span_from_start() {
        Some(span) => span,
        None => {
            let (file, _) = target.handle().open().map_err(to_error)?;
            input.lines().span_within(text::count_lines(file, &call.cancel).map_err(to_error)?)
        }
    };
    let part = text::scan_lines(file, span, &call.cancel).map_err(to_error)?;
    let Some(output) = part.render(path) else { return Err(binary_file_error(workspace, target, stamp)) };
    target.record_seen(workspace, stamp, None);
    Ok(output)
}

/// Dispatches on the content.
fn show_content(
    input: &ReadInput,
    workspace: &Workspace,
    target: &FileTarget,
    bytes: Vec<u8>,
    stamp: FileStamp,
) -> ToolResult {
    let path = target.path.as_path();
    // Record it even if it cannot be shown: otherwise a damaged image could never be overwritten.
    if let Some(format) = ImageFormat::detect(&bytes) {
        target.record_seen(workspace, stamp, None);
        return image::render_image(path, &bytes, format);
    }
    if pdf::is_pdf(&bytes) {
        target.record_seen(workspace, stamp, None);
        return pdf::render_pdf(path, &bytes, input.pages.as_deref());
    }
    let Some(decoded) = encoding::decode(bytes) else {
        return Err(binary_file_error(workspace, target, stamp));
    };
    let known_text = (decoded.encoding != TextEncoding::Invalid).then_some(decoded.text.as_str());
    if is_notebook(path)
        && let Some(output) = notebook::render_notebook(path, &decoded.text, input.lines())
    {
        target.record_seen(workspace, stamp, known_text);
        return Ok(output);
    }
    let (output, is_complete) = text::render_text(path, &decoded.text, input.lines());
    target.record_seen(workspace, stamp, known_text.filter(|_| is_complete));
    Ok(output)
}

impl ReadInput {
    fn lines(&self) -> LineRequest {
        LineRequest { start: self.offset.unwrap_or(1), count: self.limit.filter(|limit| *limit > 0) }
    }
}

/// The first bytes of a file, enough to detect its kind.
fn read_head(handle: &FileHandle) -> io::Result<Vec<u8>> {
    let (file, _) = handle.open()?;
    let mut head = Vec::new();
    file.take(64).read_to_end(&mut head)?;
    Ok(head)
}

/// Returns whether a file of this kind must be read whole.
fn needs_whole_file(path: &Path, head: &[u8]) -> bool {
    ImageFormat::detect(head).is_some() || pdf::is_pdf(head) || is_notebook(path)
}

fn is_notebook(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ipynb"))
}

/// Error for a binary file. Records it as seen, so that Write may overwrite it.
fn binary_file_error(workspace: &Workspace, target: &FileTarget, stamp: FileStamp) -> ToolError {
    target.record_seen(workspace, stamp, None);
    let text = format!(
        "{} is a binary file without text to show. Inspect it with a command; Write can replace it.",
        target.path.display()
    );
    ToolError::Rejected(text)
}

fn too_large_error(path: &Path) -> ToolError {
    let text = format!(
        "{} is larger than {} KB and cannot be read at once. Read a part with offset and limit, or use Grep.",
        path.display(),
        MAX_TEXT_BYTES / 1024
    );
    ToolError::Rejected(text)
}

/// Error text for a missing file: working directory and the closest existing name.
fn missing_file_text(target: &FileTarget, workspace: &Workspace) -> String {
    let (path, cwd) = (target.path.as_path(), workspace.cwd());
    let cwd_note = if matches!(files::file_kind(&cwd), Ok(FileKind::Directory)) {
        ""
    } else {
        ", which no longer exists"
    };
    if files::non_directory_ancestor(path).is_some() || files::link_target(path).is_some() {
        return file_errors::missing_file_message(path, &cwd);
    }
    let text = format!(
        "File does not exist: {}. The current directory is {}{cwd_note}.",
        path.display(),
        cwd.display()
    );
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return text };
    let names = target.handle().sibling_names(2000);
    match find_most_similar(&name.to_string_lossy(), names.iter().map(String::as_str)) {
        Some(closest) => format!("{text} Did you mean {}?", dir.join(closest).display()),
        None => text,
    }
}

/// Base64 for the host: the same bytes as for the model, unless the frame would become too long.
fn base64_for_host(base64: &str) -> &str {
    if base64.len() * 2 <= MAX_WIRE_BASE64_BYTES { base64 } else { "" }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::test_support::TestWorkspace;

    #[tokio::test]
    async fn the_host_gets_the_text_and_its_position() {
        let fixture = TestWorkspace::new(&[("a.txt", "one\r\ntwo\r\nthree\r\n")]);
        let output =
            fixture.run_tool("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 2})).await.unwrap();
        let file = json!({
            "filePath": fixture.path("a.txt"), "content": "two\nthree", "numLines": 2, "startLine": 2, "totalLines": 4,
        });
        assert_eq!(output.meta, json!({"type": "text", "file": file}));
    }

    #[tokio::test]
    async fn endless_files_are_never_opened() {
        let fixture = TestWorkspace::new(&[]);
        nix::unistd::mkfifo(&fixture.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        symlink("/proc/self/environ", fixture.path("link")).unwrap();
        symlink("/dev/zero", fixture.path("zero")).unwrap();
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
            let error = fixture.run_tool("Read", json!({"file_path": path})).await.unwrap_err();
            assert!(matches!(error, ToolError::Rejected(_) | ToolError::Failed(_)), "{path}: {error:?}");
        }
    }

    #[tokio::test]
    async fn files_of_unknown_size_are_shown() {
        let fixture = TestWorkspace::new(&[]);
        assert!(
            fixture
                .run_to_text("Read", json!({"file_path": "/proc/meminfo"}))
                .await
                .starts_with("1\tMemTotal")
        );
    }

    #[tokio::test]
    async fn a_large_file_is_shown_in_parts_only() {
        let fixture = TestWorkspace::new(&[]);
        let text: String = (1..=100_000).map(|n| format!("line {n}\n")).collect();
        fs::write(fixture.path("big.txt"), &text).unwrap();
        let error = fixture.run_tool("Read", json!({"file_path": "big.txt"})).await.unwrap_err();
        assert!(error.reason().contains("offset and limit"), "{error:?}");
        let output =
            fixture.run_tool("Read", json!({"file_path": "big.txt", "offset": 99_999})).await.unwrap();
        assert_eq!(output.content, "99999\tline 99999\n100000\tline 100000\n100001\t".to_owned().into());
        assert_eq!(output.meta["file"]["totalLines"], 100_001);
        let tail = json!({"file_path": "big.txt", "offset": -2, "limit": 1});
        assert_eq!(fixture.run_to_text("Read", tail).await, "99999\tline 99999");
    }

    #[tokio::test]
    async fn every_encoding_is_read() {
        let fixture = TestWorkspace::new(&[]);
        for (name, bytes) in [
            ("marked", &b"\xEF\xBB\xBFgr\xC3\xBCn\n"[..]),
            ("utf16", b"\xFF\xFEg\0r\0\xFC\0n\0\n\0"),
            ("western", b"gr\xFCn\n"),
        ] {
            fs::write(fixture.path("a.txt"), bytes).unwrap();
            assert_eq!(
                fixture.run_to_text("Read", json!({"file_path": "a.txt"})).await,
                "1\tgrün\n2\t",
                "{name}"
            );
        }
        fs::write(fixture.path("a.txt"), b"\x7FELF\0\0").unwrap();
        let error = fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap_err();
        assert!(error.reason().contains("binary"), "{error:?}");
    }

    #[tokio::test]
    async fn a_deleted_working_directory_is_reported() {
        let fixture = TestWorkspace::new(&[("gone/a.txt", "x")]);
        fixture.workspace().set_cwd(fixture.path("gone"));
        fs::remove_dir_all(fixture.path("gone")).unwrap();
        let error = fixture.run_tool("Read", json!({"file_path": "a.txt"})).await.unwrap_err();
        assert!(error.reason().contains("no longer exists"), "{error:?}");
    }
}
