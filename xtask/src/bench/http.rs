//! Minimal HTTP for the model server: sequential requests with a content length.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::time::Instant;

use memchr::memmem;

use super::clock;

pub(super) struct HttpRequest {
    /// Arrival of the first byte.
    pub(super) received_at: Instant,
    /// The request line.
    request_line: String,
    pub(super) body: Vec<u8>,
}

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// A step of the agent: a stream with tools.
    AgentStep,
    /// Another stream, such as a session title.
    SideStream,
    /// A reply that is not streamed.
    WholeReply,
    /// Any other request.
    Other,
}

/// Reads the next request; `None` when the connection is closed.
pub(super) fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<HttpRequest>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let received_at = clock::now();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut length = 0;
    let mut field = String::new();
    loop {
        field.clear();
        reader.read_line(&mut field)?;
        match field.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(HttpRequest { received_at, request_line: line, body }))
}

impl HttpRequest {
    /// Classifies the request.
    pub(super) fn kind(&self) -> RequestKind {
        let is_model_request =
            self.request_line.starts_with("POST /v1/messages") && !self.request_line.contains("count_tokens");
        match (is_model_request, self.contains(r#""stream":true"#), self.contains(r#""tools":[{"#)) {
            (false, ..) => RequestKind::Other,
            (true, false, _) => RequestKind::WholeReply,
            (true, true, false) => RequestKind::SideStream,
            (true, true, true) => RequestKind::AgentStep,
        }
    }

    /// Number of tool results in the body. Quotes within a text would be escaped.
    pub(super) fn tool_result_count(&self) -> usize {
        self.count_matches(r#""tool_use_id":"#)
    }

    /// Returns true if the request offers a tool to the model.
    pub(super) fn offers_tool(&self, tool: &str) -> bool {
        self.contains(&format!(r#""name":"{tool}""#))
    }

    /// Number of occurrences of a text in the body.
    pub(super) fn count_matches(&self, text: &str) -> usize {
        memmem::find_iter(&self.body, text.as_bytes()).count()
    }

    fn contains(&self, text: &str) -> bool {
        memmem::find(&self.body, text.as_bytes()).is_some()
    }
}

/// A complete JSON response.
pub(super) fn json_response(json: &str) -> Vec<u8> {
    let length = json.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{json}")
        .into_bytes()
}

/// Head of an event stream response.
pub(super) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// End of an event stream response.
pub(super) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// One event in its own chunk, as the real server sends it.
pub(super) fn event_chunk(name: &str, data: &str) -> Vec<u8> {
    let text = format!("event: {name}\ndata: {data}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}
