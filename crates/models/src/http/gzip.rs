//! Response bodies, decompressed if they are gzip.

use std::error::Error;
use std::io::{self, Write};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::HeaderMap;
use ::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http_body::Body as _;
use hyper::body::Incoming;

type BoxError = Box<dyn Error + Send + Sync>;

/// A response body that yields decompressed chunks.
pub(super) enum ResponseBody {
    Plain(Incoming),
    Gzip(Incoming, Box<GzipDecoder>),
}

impl ResponseBody {
    /// Detects gzip by the headers, and removes the headers that describe the compressed body.
    pub(super) fn new(body: Incoming, headers: &mut HeaderMap) -> Self {
        let is_gzip = headers.get(CONTENT_ENCODING).is_some_and(|kind| {
            [b"gzip".as_slice(), b"x-gzip"].iter().any(|known| kind.as_bytes().eq_ignore_ascii_case(known))
        });
        if !is_gzip {
            return Self::Plain(body);
        }
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        Self::Gzip(body, Box::default())
    }

    /// Polls for the next chunk, which is never empty.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        match self {
            Self::Plain(body) => poll_data(body, context).map_err(Into::into),
            Self::Gzip(body, decoder) => loop {
                if let Some(chunk) = decoder.next_chunk()? {
                    return Poll::Ready(Some(Ok(chunk)));
                }
                match ready!(poll_data(body, context)?) {
                    Some(chunk) => decoder.input = chunk,
                    None => return Poll::Ready(decoder.finish().map_err(Into::into).transpose()),
                }
            },
        }
    }
}

/// Polls for the next raw data frame. Trailers are ignored.
fn poll_data(body: &mut Incoming, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    loop {
        let frame = match ready!(Pin::new(&mut *body).poll_frame(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => frame,
        };
        if let Ok(chunk) = frame.into_data()
            && !chunk.is_empty()
        {
            return Poll::Ready(Some(Ok(chunk)));
        }
    }
}

/// Compressed bytes decoded per step. One byte can expand to a thousand, so this bounds the memory.
const INPUT_STEP_BYTES: usize = 512;
/// A chunk is returned once it has this size, or all received input is decoded.
const OUTPUT_CHUNK_BYTES: usize = 16 * 1024;

/// Decoder state.
pub(super) struct GzipDecoder {
    /// Compressed input not yet decoded.
    input: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Whether there was any input: an empty body is valid.
    has_input: bool,
    is_finished: bool,
}

impl Default for GzipDecoder {
    fn default() -> Self {
        Self {
            input: Bytes::new(),
            decoder: MultiGzDecoder::new(Vec::new()),
            has_input: false,
            is_finished: false,
        }
    }
}

impl GzipDecoder {
    /// Returns the next chunk of the received input, if any.
    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() && self.decoder.get_ref().len() < OUTPUT_CHUNK_BYTES {
            self.has_input = true;
            let step = self.input.len().min(INPUT_STEP_BYTES);
            self.decoder.write_all(&self.input[..step])?;
            self.input.advance(step);
            if self.input.is_empty() {
                self.decoder.flush()?;
            }
        }
        Ok(self.take_output())
    }

    /// Returns the rest at the end of the input; an error if the gzip stream is incomplete.
    fn finish(&mut self) -> io::Result<Option<Bytes>> {
        if self.has_input && !mem::replace(&mut self.is_finished, true) {
            self.decoder.try_finish()?;
        }
        Ok(self.take_output())
    }

    fn take_output(&mut self) -> Option<Bytes> {
        let chunk = mem::take(self.decoder.get_mut());
        (!chunk.is_empty()).then(|| chunk.into())
    }
}
