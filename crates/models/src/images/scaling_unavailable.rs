//! Images in a build without the feature `images`: rejected, because an image that was not decoded may be damaged,
//! and then every later request would fail.

use super::{EncodedImage, ImageError, ImageFormat};

/// Rejects the image.
pub fn fit_to_limit(_: &[u8], _: ImageFormat, _: usize) -> Result<EncodedImage, ImageError> {
    let reason = "this build of the program cannot decode images: build it with the feature `images`, which is on by \
                  default";
    Err(ImageError(reason.to_owned()))
}
