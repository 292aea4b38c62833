//! Scales and compresses images.

use std::io::Cursor;

use ::image::codecs::jpeg::JpegEncoder;
use ::image::imageops::{FilterType, overlay};
use ::image::{
    DynamicImage, ImageDecoder, ImageFormat as FileFormat, ImageReader, ImageResult, Limits, Rgba, RgbaImage,
};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::{EncodedImage, ImageError, ImageFormat};

/// Longest edge in pixels that a model uses.
const MAX_EDGE_PIXELS: u32 = 1568;
/// Memory limit for decoding.
const MAX_DECODE_BYTES: u64 = 256 * 1024 * 1024;

impl ImageFormat {
    fn file_format(self) -> FileFormat {
        match self {
            Self::Png => FileFormat::Png,
            Self::Jpeg => FileFormat::Jpeg,
            Self::Gif => FileFormat::Gif,
            Self::WebP => FileFormat::WebP,
        }
    }
}

impl From<::image::ImageError> for ImageError {
    fn from(error: ::image::ImageError) -> Self {
        Self(error.to_string())
    }
}

/// Fits an image to the limits. It is decoded even if it already fits, because a damaged image would make every later
/// request fail.
pub fn fit_to_limit(bytes: &[u8], format: ImageFormat, largest: usize) -> Result<EncodedImage, ImageError> {
    let image = decode_image(bytes, format)?;
    let original = (image.width(), image.height());
    let budget = largest / 4 * 3;
    if original.0.max(original.1) <= MAX_EDGE_PIXELS && bytes.len() <= budget {
        return Ok(EncodedImage {
            base64: BASE64_STANDARD.encode(bytes),
            format,
            original_size: original,
            sent_size: original,
        });
    }
    let mut edge = MAX_EDGE_PIXELS.min(original.0.max(original.1));
    while edge >= 64 {
        let smaller = image.resize(edge, edge, FilterType::Triangle);
        if let Some((bytes, format)) = encode_within(&smaller, format, budget)? {
            let sent = (smaller.width(), smaller.height());
            return Ok(EncodedImage {
                base64: BASE64_STANDARD.encode(bytes),
                format,
                original_size: original,
                sent_size: sent,
            });
        }
        edge = edge / 4 * 3;
    }
    Err(ImageError("it cannot be compressed to the limit of a request".to_owned()))
}

fn decode_image(bytes: &[u8], format: ImageFormat) -> ImageResult<DynamicImage> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format.file_format());
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
) -> ImageResult<Option<(Vec<u8>, ImageFormat)>> {
    if format != ImageFormat::Jpeg {
        let mut bytes = Cursor::new(Vec::new());
        image.write_to(&mut bytes, FileFormat::Png)?;
        if bytes.get_ref().len() <= budget {
            return Ok(Some((bytes.into_inner(), ImageFormat::Png)));
        }
    }
    let opaque = flatten_on_white(image);
    for quality in [85, 70, 50] {
        let mut bytes = Vec::new();
        opaque.write_with_encoder(JpegEncoder::new_with_quality(&mut bytes, quality))?;
        if bytes.len() <= budget {
            return Ok(Some((bytes, ImageFormat::Jpeg)));
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

    use super::super::MAX_BASE64_BYTES;
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
        image.write_to(&mut bytes, format.file_format()).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn a_small_image_is_sent_unchanged() {
        for format in [ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Gif, ImageFormat::WebP] {
            let bytes = encoded(&noise_image(8, 4), format);
            assert_eq!(ImageFormat::detect(&bytes), Some(format));
            let picture = fit_to_limit(&bytes, format, MAX_BASE64_BYTES).unwrap();
            let expected = EncodedImage {
                base64: BASE64_STANDARD.encode(&bytes),
                format,
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
            picture.base64.len() <= 60_000 && picture.format == ImageFormat::Jpeg,
            "{:?}",
            picture.sent_size
        );
    }

    #[test]
    fn a_damaged_image_is_not_sent() {
        let mut bytes = encoded(&noise_image(64, 64), ImageFormat::Png);
        bytes.truncate(200);
        assert!(fit_to_limit(&bytes, ImageFormat::Png, MAX_BASE64_BYTES).is_err());
        assert_eq!(ImageFormat::detect(b"<svg/>"), None);
        assert_eq!(ImageFormat::detect(b"BM......"), None);
    }
}
