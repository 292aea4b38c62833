//! The body of an answer, as it comes or unpacked.

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

/// A body whose pieces are never packed.
pub(super) enum ResponseBody {
    Plain(Incoming),
    Gzip(Incoming, Box<GzipDecoder>),
}

impl ResponseBody {
    /// Looks into the headers whether a body comes packed, and takes what they say about the packed one out of them.
    pub(super) fn new(body: Incoming, headers: &mut HeaderMap) -> Self {
        let packed = headers.get(CONTENT_ENCODING).is_some_and(|kind| {
            [b"gzip".as_slice(), b"x-gzip"].iter().any(|known| kind.as_bytes().eq_ignore_ascii_case(known))
        });
        if !packed {
            return Self::Plain(body);
        }
        headers.remove(CONTENT_ENCODING);
        headers.remove(CONTENT_LENGTH);
        Self::Gzip(body, Box::default())
    }

    /// The next piece, which is not empty.
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        match self {
            Self::Plain(body) => poll_data(body, context).map_err(Into::into),
            Self::Gzip(body, unpacking) => loop {
                if let Some(piece) = unpacking.next_chunk()? {
                    return Poll::Ready(Some(Ok(piece)));
                }
                match ready!(poll_data(body, context)?) {
                    Some(piece) => unpacking.input = piece,
                    None => return Poll::Ready(unpacking.finish().map_err(Into::into).transpose()),
                }
            },
        }
    }
}

/// The next piece of a body as it comes. Trailers say nothing to us.
fn poll_data(body: &mut Incoming, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, hyper::Error>>> {
    loop {
        let frame = match ready!(Pin::new(&mut *body).poll_frame(context)) {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(error))),
            Some(Ok(frame)) => frame,
        };
        if let Ok(piece) = frame.into_data()
            && !piece.is_empty()
        {
            return Poll::Ready(Some(Ok(piece)));
        }
    }
}

/// Packed bytes are unpacked so many at a time. As one can become a thousand, this bounds what is held.
const INPUT_STEP_BYTES: usize = 512;
/// A piece is given as soon as it has so many bytes, or all that has come is unpacked.
const OUTPUT_CHUNK_BYTES: usize = 16 * 1024;

/// The state of unpacking.
pub(super) struct GzipDecoder {
    /// What has come and is not unpacked yet.
    input: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Whether anything came at all: an empty body is nothing packed.
    has_input: bool,
    is_finished: bool,
}

impl Default for GzipDecoder {
    fn default() -> Self {
        Self { input: Bytes::new(), decoder: MultiGzDecoder::new(Vec::new()), has_input: false, is_finished: false }
    }
}

impl GzipDecoder {
    /// The next piece, if there is one in what has come.
    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() && self.decoder.get_ref().len() < OUTPUT_CHUNK_BYTES {
            self.has_input = true;
            let bite = self.input.len().min(INPUT_STEP_BYTES);
            self.decoder.write_all(&self.input[..bite])?;
            self.input.advance(bite);
            if self.input.is_empty() {
                self.decoder.flush()?;
            }
        }
        Ok(self.take_output())
    }

    /// What is left when nothing more comes; an error if that is not the end of what was packed.
    fn finish(&mut self) -> io::Result<Option<Bytes>> {
        if self.has_input && !mem::replace(&mut self.is_finished, true) {
            self.decoder.try_finish()?;
        }
        Ok(self.take_output())
    }

    fn take_output(&mut self) -> Option<Bytes> {
        let piece = mem::take(self.decoder.get_mut());
        (!piece.is_empty()).then(|| piece.into())
    }
}
