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
pub(super) enum Body {
    Plain(Incoming),
    Packed(Incoming, Box<Unpacking>),
}

impl Body {
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
        Self::Packed(body, Box::default())
    }

    /// The next piece, which is not empty.
    pub(super) fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        match self {
            Self::Plain(body) => poll_data(body, context).map_err(Into::into),
            Self::Packed(body, unpacking) => loop {
                if let Some(piece) = unpacking.next()? {
                    return Poll::Ready(Some(Ok(piece)));
                }
                match ready!(poll_data(body, context)?) {
                    Some(piece) => unpacking.packed = piece,
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
const BITE: usize = 512;
/// A piece is given as soon as it has so many bytes, or all that has come is unpacked.
const ENOUGH: usize = 16 * 1024;

/// The state of unpacking.
pub(super) struct Unpacking {
    /// What has come and is not unpacked yet.
    packed: Bytes,
    decoder: MultiGzDecoder<Vec<u8>>,
    /// Whether anything came at all: an empty body is nothing packed.
    begun: bool,
    over: bool,
}

impl Default for Unpacking {
    fn default() -> Self {
        Self { packed: Bytes::new(), decoder: MultiGzDecoder::new(Vec::new()), begun: false, over: false }
    }
}

impl Unpacking {
    /// The next piece, if there is one in what has come.
    fn next(&mut self) -> io::Result<Option<Bytes>> {
        while !self.packed.is_empty() && self.decoder.get_ref().len() < ENOUGH {
            self.begun = true;
            let bite = self.packed.len().min(BITE);
            self.decoder.write_all(&self.packed[..bite])?;
            self.packed.advance(bite);
            if self.packed.is_empty() {
                self.decoder.flush()?;
            }
        }
        Ok(self.take())
    }

    /// What is left when nothing more comes; an error if that is not the end of what was packed.
    fn finish(&mut self) -> io::Result<Option<Bytes>> {
        if self.begun && !mem::replace(&mut self.over, true) {
            self.decoder.try_finish()?;
        }
        Ok(self.take())
    }

    fn take(&mut self) -> Option<Bytes> {
        let piece = mem::take(self.decoder.get_mut());
        (!piece.is_empty()).then(|| piece.into())
    }
}
