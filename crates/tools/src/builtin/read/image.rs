//! Image files as results of the Read tool.

use std::path::Path;

use serde_json::json;
use whimbrel_wire::content::{Block, ResultContent};

use super::base64_for_host;
use crate::api::{ToolError, ToolOutput};
use whimbrel_models::images::{ImageFormat, MAX_BASE64_BYTES, fit_to_limit};

pub(super) fn render_image(path: &Path, bytes: &[u8], format: ImageFormat) -> Result<ToolOutput, ToolError> {
    let image = fit_to_limit(bytes, format, MAX_BASE64_BYTES).map_err(|error| {
        ToolError::Failed(format!("{} cannot be shown as an image: {error}", path.display()))
    })?;
    let (original, sent) = (image.original_size, image.sent_size);
    let meta = json!({"type": "image", "file": {
        "base64": base64_for_host(&image.base64),
        "type": image.format.media_type(),
        "originalSize": bytes.len(),
        "dimensions": {
            "originalWidth": original.0, "originalHeight": original.1, "displayWidth": sent.0, "displayHeight": sent.1,
        },
    }});
    let mut blocks = vec![image.into_block()];
    if sent != original {
        let note = format!("Resized from {}x{} to {}x{} pixels.", original.0, original.1, sent.0, sent.1);
        blocks.push(Block::text(note));
    }
    Ok(ToolOutput { content: ResultContent::Blocks(blocks), meta })
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ::image::DynamicImage;

    use super::*;

    #[test]
    fn a_wide_image_is_scaled_with_a_note() {
        let mut bytes = Cursor::new(Vec::new());
        DynamicImage::new_rgba8(3136, 100).write_to(&mut bytes, ::image::ImageFormat::Png).unwrap();
        let output = render_image(Path::new("/p"), bytes.get_ref(), ImageFormat::Png).unwrap();
        let dimensions =
            json!({"originalWidth": 3136, "originalHeight": 100, "displayWidth": 1568, "displayHeight": 50});
        assert_eq!(output.meta["file"]["dimensions"], dimensions);
        let ResultContent::Blocks(blocks) = output.content else { panic!("no blocks") };
        assert_eq!(blocks[1], Block::text("Resized from 3136x100 to 1568x50 pixels."));
    }

    #[test]
    fn a_damaged_image_is_an_error() {
        let output = render_image(Path::new("/p"), b"\x89PNG\r\n\x1a\n", ImageFormat::Png);
        assert!(matches!(output, Err(ToolError::Failed(_))));
    }
}
