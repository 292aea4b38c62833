//! Images for the model: scaled and compressed to the limits of a request.

use std::io::Cursor;

use ::image::codecs::jpeg::JpegEncoder;
use ::image::imageops::{FilterType, overlay};
use ::image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, ImageResult, Limits, Rgba, RgbaImage,
    guess_format,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use whimbrel_wire::content::{Block, Source};

/// An encoded image.
#[derive(Debug, PartialEq, Eq)]
pub struct EncodedImage {
    /// The bytes in base64.
    pub base64: String,
    pub media_type: &'static str,
    /// Width and height of the original.
    pub original_size: (u32, u32),
    /// Width and height as sent.
    pub sent_size: (u32, u32),
}

/// Longest edge in pixels that a model uses.
const MAX_EDGE_PIXELS: u32 = 1568;
/// Largest base64 size of a sent image.
pub const MAX_BASE64_BYTES: usize = 700_000;
/// Memory limit for decoding.
const MAX_DECODE_BYTES: u64 = 256 * 1024 * 1024;

/// Detects the image format by magic bytes. `None` if the model does not support it.
pub fn detect_format(bytes: &[u8]) -> Option<ImageFormat> {
    guess_format(bytes).ok().filter(|format| media_type(*format).is_some())
}

fn media_type(format: ImageFormat) -> Option<&'static str> {
    match format {
        ImageFormat::Png => Some("image/png"),
        ImageFormat::Jpeg => Some("image/jpeg"),
        ImageFormat::Gif => Some("image/gif"),
        ImageFormat::WebP => Some("image/webp"),
        _ => None,
    }
}

/// Converts image bytes to a content block.
pub fn image_block(bytes: &[u8]) -> Result<Block, String> {
    let format = detect_format(bytes).ok_or("it is not a PNG, JPEG, GIF or WebP")?;
    fit_to_limit(bytes, format, MAX_BASE64_BYTES)
        .map(EncodedImage::into_block)
        .map_err(|error| error.to_string())
}

impl EncodedImage {
    pub fn into_block(self) -> Block {
        Block::Image { source: Source::Base64 { media_type: self.media_type.into(), data: self.base64 } }
    }
}

/// Fits an image to the limits. It is decoded even if it already fits, because a damaged image would make every later
/// request fail.
pub fn fit_to_limit(bytes: &[u8], format: ImageFormat, largest: usize) -> ImageResult<EncodedImage> {
    let image = decode_image(bytes, format)?;
    let original = (image.width(), image.height());
    let budget = largest / 4 * 3;
    if original.0.max(original.1) <= MAX_EDGE_PIXELS && bytes.len() <= budget {
        let media_type = media_type(format).unwrap_or("image/png");
        return Ok(EncodedImage {
            base64: BASE64_STANDARD.encode(bytes),
            media_type,
            original_size: original,
            sent_size: original,
        });
    }
    let mut edge = MAX_EDGE_PIXELS.min(original.0.max(original.1));
    while edge >= 64 {
        let smaller = image.resize(edge, edge, FilterType::Triangle);
        if let Some((bytes, media_type)) = encode_within(&smaller, format, budget)? {
            let sent = (smaller.width(), smaller.height());
            return Ok(EncodedImage {
                base64: BASE64_STANDARD.encode(bytes),
                media_type,
                original_size: original,
                sent_size: sent,
            });
        }
        edge = edge / 4 * 3;
    }
    Err(ImageError::IoError(std::io::ErrorKind::FileTooLarge.into()))
}

fn decode_image(bytes: &[u8], format: ImageFormat) -> ImageResult<DynamicImage> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODE_BYTES);
    reader.limits(limits);
    let mut decoder = reader.into_decoder()?;
    let orientation = decoder.orientation()?;
    let mut image = DynamicImage::from_decoder(decoder)?;
    image.apply_orientation(orientation);
    Ok(image)
}

/// Encodes an image in at most `budget` bytes: lossless unless it was a JPEG, then with decreasing JPEG quality.
fn encode_within(
    image: &DynamicImage,
    format: ImageFormat,
    budget: usize,
) -> ImageResult<Option<(Vec<u8>, &'static str)>> {
    if format != ImageFormat::Jpeg {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, ImageFormat::Png)?;
        if bytes.get_ref().len() <= budget {
            return Ok(Some((bytes.into_inner(), "image/png")));
        }
    }
    let opaque = flatten_on_white(image);
    for quality in [85, 70, 50] {
        let mut bytes = Vec::new();
        opaque.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))?;
        if bytes.len() <= budget {
            return Ok(Some((bytes, "image/jpeg")));
        }
    }
    Ok(None)
}

/// JPEG has no transparency: transparent pixels become white.
fn flatten_on_white(image: &DynamicImage) -> DynamicImage {
    if !image.has_alpha() {
        return DynamicImage::ImageRgb8(image.to_rgb8());
    }
    let mut white = RgbaImage::from_pixel(image.width(), image.height(), Rgba([255; 4]));
    overlay(&mut white, &image.to_rgba8(), 0, 0);
    DynamicImage::ImageRgb8(DynamicImage::ImageRgba8(white).to_rgb8())
}

#[cfg(test)]
mod tests {
    use ::image::{Rgb, RgbImage};

    use super::*;

    /// An image that no encoder can compress.
    fn noise_image(width: u32, height: u32) -> DynamicImage {
        let mut state = 1_u32;
        let mut byte = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        DynamicImage::ImageRgb8(RgbImage::from_fn(width, height, |_, _| Rgb([byte(), byte(), byte()])))
    }

    fn encoded(image: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, format).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_small_image_is_sent_unchanged() {
        for (kind, name) in [
            (ImageFormat::Png, "image/png"),
            (ImageFormat::Gif, "image/gif"),
            (ImageFormat::WebP, "image/webp"),
        ] {
            let bytes = encoded(&noise_image(8, 4), kind);
            assert_eq!(detect_format(&bytes), Some(kind));
            let picture = fit_to_limit(&bytes, kind, MAX_BASE64_BYTES).unwrap();
            let expected = EncodedImage {
                base64: BASE64_STANDARD.encode(&bytes),
                media_type: name,
                original_size: (8, 4),
                sent_size: (8, 4),
            };
            assert_eq!(picture, expected);
        }
    }

    #[test]
    fn a_heavy_image_is_compressed_until_it_fits() {
        let bytes = encoded(&noise_image(700, 700), ImageFormat::Png);
        let picture = fit_to_limit(&bytes, ImageFormat::Png, 60_000).unwrap();
        assert!(
            picture.base64.len() <= 60_000 && picture.media_type == "image/jpeg",
            "{:?}",
            picture.sent_size
        );
    }

    #[test]
    fn a_damaged_image_is_not_sent() {
        let mut bytes = encoded(&noise_image(64, 64), ImageFormat::Png);
        bytes.truncate(200);
        assert!(fit_to_limit(&bytes, ImageFormat::Png, MAX_BASE64_BYTES).is_err());
        assert_eq!(detect_format(b"<svg/>"), None);
        assert_eq!(detect_format(b"BM......"), None);
    }
}
