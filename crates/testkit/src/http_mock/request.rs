//! Minimal HTTP/1.1 request parser.

use std::collections::BTreeMap;
use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// One parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Reads the next request; `None` if the client closed the connection between requests.
pub(crate) async fn read_request(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<HttpRequest>> {
    let first = read_line(from).await?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers = read_headers(from).await?;
    let body = read_body(from, &headers).await?;
    Ok(Some(HttpRequest { method, path: path.to_owned(), query: query.to_owned(), headers, body }))
}

async fn read_headers(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<BTreeMap<String, String>> {
    let mut headers = BTreeMap::new();
    loop {
        let line = read_line(from).await?;
        let Some((name, value)) = line.split_once(':') else { return Ok(headers) };
        headers.insert(name.trim().to_lowercase(), value.trim().to_owned());
    }
}

async fn read_body(
    from: &mut (impl AsyncBufRead + Unpin),
    headers: &BTreeMap<String, String>,
) -> io::Result<Vec<u8>> {
    if headers.get("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        return read_chunked_body(from).await;
    }
    let length =
        headers.get("content-length").map(|length| length.parse()).transpose().map_err(invalid_data)?;
    let mut body = vec![0; length.unwrap_or(0)];
    from.read_exact(&mut body).await?;
    Ok(body)
}

async fn read_chunked_body(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = usize::from_str_radix(&read_line(from).await?, 16).map_err(invalid_data)?;
        let start = body.len();
        body.resize(start + size, 0);
        from.read_exact(&mut body[start..]).await?;
        read_line(from).await?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// Reads one line without its newline; empty at the end of the connection.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line).await?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn invalid_data(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn parse_request(text: &str) -> Option<HttpRequest> {
        read_request(&mut text.as_bytes()).await.unwrap()
    }

    #[tokio::test]
    async fn content_length_and_chunked_bodies_are_read() {
        let head = "POST /v1/messages?beta=true HTTP/1.1\r\nX-Api-Key: k\r\n";
        let whole = parse_request(&format!("{head}Content-Length: 4\r\n\r\nbody rest")).await.unwrap();
        let chunked = parse_request(&format!(
            "{head}Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
        ))
        .await
        .unwrap();
        assert_eq!((whole.path.as_str(), whole.query.as_str()), ("/v1/messages", "beta=true"));
        assert_eq!(whole.headers["x-api-key"], "k");
        assert_eq!(
            (whole.body.as_slice(), chunked.body.as_slice()),
            (b"body".as_slice(), b"body".as_slice())
        );
    }

    #[tokio::test]
    async fn closed_connection_yields_none() {
        assert_eq!(parse_request("").await, None);
    }
}
