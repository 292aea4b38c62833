//! Compressed responses.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::test_server::{chunk, last_chunk};

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Text that compresses badly, so that it is large in both forms.
fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let step = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        b'a' + (state >> 27) as u8
    };
    (0..size).map(step).collect()
}

async fn post(actions: impl IntoIterator<Item = ResponseAction>) -> Response {
    let server = TestServer::start([actions.into_iter().collect()]).await;
    client(&[]).post(&server.url, HeaderMap::new(), String::new()).await.unwrap()
}

#[tokio::test]
async fn gzip_is_decoded_however_it_is_split() {
    let text = noise(300_000);
    let whole = gzip(&text);
    let two = [gzip(&text[..1000]), gzip(&text[1000..])].concat();
    for (name, bytes, size) in
        [("large", &whole, 50_000), ("small", &whole, 700), ("two members", &two, 4096), ("one", &two, 1)]
    {
        let bytes = if size == 1 { &gzip(&text[..500]) } else { bytes };
        let expected = if size == 1 { &text[..500] } else { &text };
        let actions = [ResponseAction::Write(HEAD.to_vec())].into_iter().chain(bytes.chunks(size).map(chunk));
        let response = post(actions.chain([last_chunk()])).await;
        assert_eq!(response.header("content-encoding"), None, "{name}");
        assert_eq!(response.read_all(1 << 20).await.unwrap(), expected, "{name}");
    }
}

#[tokio::test]
async fn received_data_is_returned_before_more_arrives() {
    let text = noise(100_000);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&text).unwrap();
    encoder.flush().unwrap();
    let first_part = encoder.get_ref().clone();
    let mut chunks = post([ResponseAction::Write(HEAD.to_vec()), chunk(&first_part), ResponseAction::Hang])
        .await
        .into_body();
    let mut received = Vec::new();
    while received.len() < text.len() {
        received.extend_from_slice(&chunks.next().await.unwrap().unwrap());
    }
    assert_eq!(received, text);
}

#[tokio::test]
async fn invalid_gzip_is_an_error_but_not_an_empty_body() {
    let good = gzip(b"hello");
    let mut wrong = good.clone();
    let last = wrong.len() - 1;
    wrong[last] ^= 1;
    for (name, bytes) in [
        ("no gzip", b"hello, this is text".as_slice()),
        ("half", &good[..good.len() / 2]),
        ("without its end", &good[..good.len() - 4]),
        ("another sum", &wrong),
        ("more behind", &[good.as_slice(), b"more"].concat()),
    ] {
        let response = post([ResponseAction::Write(HEAD.to_vec()), chunk(bytes), last_chunk()]).await;
        assert_eq!(response.read_all(100).await.unwrap_err().kind, ModelErrorKind::Cut, "{name}");
    }
    let empty = post([ResponseAction::Write(HEAD.to_vec()), last_chunk()]).await;
    assert_eq!(empty.read_all(100).await.unwrap(), "");
}
