//! Files for the host: contents of a file, and suggestions for a partly typed name. Only files that the model may read
//! without a permission request are returned.

use std::io::{self, Read};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use whimbrel_os::files::{self, FileHandle};
use whimbrel_policy::{Decision, ResolvedFile, ToolProperties};
use whimbrel_tools::builtin::file_suggestions;
use whimbrel_wire::control::{ControlResponse, FileSuggestionsReply, ReadFile, ReadFileReply};

use crate::event_loop::Session;

/// Default and maximum of bytes read.
const MAX_READ_BYTES: u64 = 1_000_000;
/// Limit on the encoded contents in one frame.
const MAX_ENCODED_BYTES: usize = 900_000;

pub(crate) async fn read_file(session: &mut Session, id: String, request: ReadFile) -> ControlResponse {
    let path = files::normalize_path(&session.setup.session.workspace.resolve(&request.path));
    let input = json!({"file_path": path});
    let decision =
        session.setup.permissions.state.decide("Read", &ToolProperties::for_tool("Read", &[]), &input, None);
    let (Decision::Allow(_), Some(file)) = (decision.decision, decision.checked.file) else {
        return ControlResponse::error(id, format!("read denied: {}", path.display()));
    };
    let shown = path.display().to_string();
    match files::run_blocking(move || read_allowed(&file, &request)).await.and_then(|result| result) {
        Ok(reply) => ControlResponse::success(id, &ReadFileReply { abs_path: shown, ..reply }),
        Err(error) => ControlResponse::error(id, format!("{shown} cannot be read: {error}.")),
    }
}

/// Suggests files below the working directory.
pub(super) fn suggest_files(session: &mut Session, id: String, query: String) -> Option<ControlResponse> {
    let cwd = session.setup.session.workspace.cwd();
    let read_filter = session.setup.permissions.state.search_filter();
    session.mcp.respond_later(async move {
        let found =
            file_suggestions::suggest_files(cwd.clone(), read_filter, query, &CancellationToken::new()).await;
        match found {
            Ok(paths) => {
                let suggestions = paths.into_iter().map(|path| json!({"path": path})).collect();
                let reply = FileSuggestionsReply { suggestions, cwd: cwd.display().to_string() };
                ControlResponse::success(id, &reply)
            }
            Err(_) => ControlResponse::error(id, format!("The files of {} cannot be listed.", cwd.display())),
        }
    });
    None
}

fn read_allowed(target: &ResolvedFile, request: &ReadFile) -> io::Result<ReadFileReply> {
    if files::is_special_path(&target.real_path) || files::is_special_path(&target.display_path) {
        return Err(io::Error::other("it belongs to the system"));
    }
    let limit = request.max_bytes.unwrap_or(MAX_READ_BYTES).min(MAX_READ_BYTES);
    let (file, _) = FileHandle::for_real_path(&target.real_path)?.open()?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    let is_truncated = bytes.len() as u64 > limit;
    bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(match request.encoding.as_deref() {
        Some("base64") => encode_base64(&bytes, is_truncated),
        _ => encode_text(&bytes, is_truncated),
    })
}

fn encode_base64(bytes: &[u8], is_truncated: bool) -> ReadFileReply {
    let shown = &bytes[..bytes.len().min(MAX_ENCODED_BYTES / 4 * 3)];
    ReadFileReply {
        contents: BASE64_STANDARD.encode(shown),
        truncated: Some(is_truncated || shown.len() < bytes.len()),
        encoding: Some("base64".into()),
        ..ReadFileReply::default()
    }
}

fn encode_text(bytes: &[u8], is_truncated: bool) -> ReadFileReply {
    let text = String::from_utf8_lossy(bytes);
    let mut end = text.len();
    // Escaping may enlarge the text up to six times.
    while serde_json::to_string(&text[..end]).map_or(0, |json| json.len()) > MAX_ENCODED_BYTES {
        end = text.floor_char_boundary(end / 10 * 9);
    }
    ReadFileReply {
        contents: text[..end].to_owned(),
        truncated: Some(is_truncated || end < text.len()),
        lossy: Some(std::str::from_utf8(bytes).is_err()),
        ..ReadFileReply::default()
    }
}
