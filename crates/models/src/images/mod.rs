//! Images for the model: detected by their first bytes, then scaled and compressed to the limits of a request.

#[cfg(feature = "images")]
mod scaling;
#[cfg(not(feature = "images"))]
#[path = "scaling_unavailable.rs"]
mod scaling;

use whimbrel_wire::content::{Block, Source};

pub use self::scaling::fit_to_limit;

/// Largest base64 size of a sent image.
pub const MAX_BASE64_BYTES: usize = 700_000;

/// A format that models support.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    Png,
    Jpeg,
    Gif,
    WebP,
}

/// An encoded image.
#[derive(Debug, PartialEq, Eq)]
pub struct EncodedImage {
    /// The bytes in base64.
    pub base64: String,
    pub format: ImageFormat,
    /// Width and height of the original.
    pub original_size: (u32, u32),
    /// Width and height as sent.
    pub sent_size: (u32, u32),
}

/// An image cannot be sent; the text says why.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ImageError(String);

impl ImageFormat {
    /// Detects the format by magic bytes. `None` if models do not support it.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::WebP),
            _ => None,
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::WebP => "image/webp",
        }
    }
}

impl EncodedImage {
    pub fn into_block(self) -> Block {
        Block::Image {
            source: Source::Base64 { media_type: self.format.media_type().into(), data: self.base64 },
        }
    }
}

/// Converts image bytes to a content block.
pub fn image_block(bytes: &[u8]) -> Result<Block, ImageError> {
    let format = ImageFormat::detect(bytes)
        .ok_or_else(|| ImageError("it is not a PNG, JPEG, GIF or WebP".to_owned()))?;
    fit_to_limit(bytes, format, MAX_BASE64_BYTES).map(EncodedImage::into_block)
}
