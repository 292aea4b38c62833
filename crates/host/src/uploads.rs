//! Files that people add to messages. Pictures and PDF files become blocks of the message; others are named in its text,
//! with the path where the agent can read them.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::clock;
use crate::error::{ApiError, ApiResult};
use crate::host::Host;
use crate::message::{Message, StoredBody};
use crate::store::records::UploadRow;
use crate::store::sessions::SessionRow;

/// Size of an upload.
pub(crate) const MAX_UPLOAD: usize = 32 * 1024 * 1024;

/// Size of an upload that becomes part of the message.
const MAX_INLINE: u64 = 20 * 1024 * 1024;

/// Stores an upload.
pub(crate) async fn store_upload(host: &Host, name: &str, content: &[u8]) -> ApiResult<UploadRow> {
    let row = UploadRow {
        id: clock::new_id(),
        name: clean_name(name),
        media_type: media_type(content).to_owned(),
        size: i64::try_from(content.len()).unwrap_or(i64::MAX),
    };
    let failed = |error: std::io::Error| {
        ApiError::store_unavailable(format!(
            "the upload cannot be stored: {error}. Free some disk space, then try again"
        ))
    };
    let dir = host.data.join("uploads").join(&row.id);
    tokio::fs::create_dir_all(&dir).await.map_err(failed)?;
    tokio::fs::write(dir.join(&row.name), content).await.map_err(failed)?;
    host.store.add_upload(&row).await?;
    Ok(row)
}

/// The last part of a name, without what shells and terminals could misread.
fn clean_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last
        .chars()
        .map(|letter| if letter.is_alphanumeric() || "-_. ()+,".contains(letter) { letter } else { '_' })
        .take(120)
        .collect();
    let kept = kept.trim().trim_start_matches('.').to_owned();
    if kept.is_empty() { "file".to_owned() } else { kept }
}

/// The type of a file by its content.
fn media_type(content: &[u8]) -> &'static str {
    let starts: [(&[u8], &str); 5] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF8", "image/gif"),
        (b"%PDF-", "application/pdf"),
        (b"PK\x03\x04", "application/zip"),
    ];
    if let Some((_, found)) = starts.iter().find(|(start, _)| content.starts_with(start)) {
        return found;
    }
    if content.len() > 12 && content.starts_with(b"RIFF") && &content[8..12] == b"WEBP" {
        return "image/webp";
    }
    match std::str::from_utf8(content) {
        Ok(text) if !text.contains('\0') => "text/plain",
        _ => "application/octet-stream",
    }
}

/// What is stored of a message: its content with the uploads.
pub(crate) async fn to_stored_body(
    host: &Host,
    session: &SessionRow,
    message: &Message,
) -> ApiResult<StoredBody> {
    let priority = message.priority.unwrap_or_default();
    let context_only = message.context_only;
    let text = message.text.clone().unwrap_or_default();
    if message.uploads.is_empty() {
        let content = message.content.clone().map_or(Json::String(text), Json::Array);
        return Ok(StoredBody { content, priority, context_only, uploads: Vec::new() });
    }
    let (mut blocks, mut notes, mut uploads) = (Vec::new(), Vec::new(), Vec::new());
    for id in &message.uploads {
        let row = host.store.upload(id).await?;
        let row =
            row.ok_or_else(|| ApiError::not_found(format!("there is no upload {id}: send the file again")))?;
        uploads.push(json!({"id": row.id, "name": row.name, "type": row.media_type, "size": row.size}));
        match to_block(host, &row).await? {
            Some(block) => blocks.push(block),
            None => notes.push(keep_for_session(host, session, &row).await?),
        }
    }
    let mut text = text;
    if !notes.is_empty() {
        let paths = notes.iter().map(|path| format!("- {}", path.display())).collect::<Vec<_>>().join("\n");
        text = format!("{}\n\nAttached files:\n{paths}", text.trim_end()).trim_start().to_owned();
    }
    let mut content = message.content.clone().unwrap_or_default();
    if !text.is_empty() {
        content.push(json!({"type": "text", "text": text}));
    }
    content.append(&mut blocks);
    Ok(StoredBody { content: Json::Array(content), priority, context_only, uploads })
}

fn path_of(host: &Host, row: &UploadRow) -> PathBuf {
    host.data.join("uploads").join(&row.id).join(&row.name)
}

/// Pictures and PDF files as blocks.
async fn to_block(host: &Host, row: &UploadRow) -> ApiResult<Option<Json>> {
    let kind = match row.media_type.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => "image",
        "application/pdf" => "document",
        _ => return Ok(None),
    };
    if u64::try_from(row.size).unwrap_or(u64::MAX) > MAX_INLINE {
        return Ok(None);
    }
    let gone =
        |error: std::io::Error| ApiError::not_found(format!("the upload {} is gone: {error}", row.name));
    let content = tokio::fs::read(path_of(host, row)).await.map_err(gone)?;
    let source = json!({"type": "base64", "media_type": row.media_type, "data": STANDARD.encode(&content)});
    Ok(Some(json!({"type": kind, "source": source})))
}

/// Copies an upload to where the agent of the session may read it.
async fn keep_for_session(host: &Host, session: &SessionRow, row: &UploadRow) -> ApiResult<PathBuf> {
    let failed =
        |error: std::io::Error| ApiError::store_unavailable(format!("the upload cannot be kept: {error}"));
    let dir = host.data.join("attachments").join(&session.id).join(&row.id);
    tokio::fs::create_dir_all(&dir).await.map_err(failed)?;
    let path = dir.join(&row.name);
    tokio::fs::copy(path_of(host, row), &path).await.map_err(failed)?;
    Ok(path)
}

/// Where the files of a session's messages are.
pub(crate) fn attachments_dir(data: &Path, session: &str) -> PathBuf {
    data.join("attachments").join(session)
}

/// Deletes the files of a session's messages.
pub(crate) async fn delete_files(data: &Path, session: &str, uploads: &[String]) {
    let dirs = uploads.iter().map(|upload| data.join("uploads").join(upload));
    for dir in dirs.chain([attachments_dir(data, session)]) {
        match tokio::fs::remove_dir_all(&dir).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                crate::log::report(&format!("{} cannot be deleted: {error}", dir.display()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cleaned() {
        let rows = [
            ("../../x", "x"),
            (r"C:\a\b.txt", "b.txt"),
            (".bashrc", "bashrc"),
            ("a\u{1b}[31m\u{202e}b", "a__31m_b"),
            ("", "file"),
        ];
        for (name, expected) in rows {
            assert_eq!(clean_name(name), expected);
        }
    }

    #[test]
    fn types_come_from_the_content() {
        let rows: [(&[u8], &str); 4] = [
            (b"\x89PNG\r\n\x1a\n..", "image/png"),
            (b"%PDF-1.7", "application/pdf"),
            (b"hello", "text/plain"),
            (b"\xff\x00", "application/octet-stream"),
        ];
        for (content, expected) in rows {
            assert_eq!(media_type(content), expected);
        }
    }
}
