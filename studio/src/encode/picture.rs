// SPDX-License-Identifier: MPL-2.0
//! Pictures of frames: as JPEG for video, as PNG for drawings.

use super::convert::Converter;
use crate::problem::Problem;

/// Fine enough that no block shows beside exact boundaries.
const QUALITY: &str = "88";

/// Encodes pictures of any caps, one after the other.
pub struct PictureEncoder {
    jpeg: Converter,
    rgb: Converter,
}

impl Default for PictureEncoder {
    fn default() -> Self {
        // JPEG has no other range and matrix.
        let samples = |format, colorimetry| {
            gst_video::VideoCapsBuilder::new().format(format).field("colorimetry", colorimetry).build()
        };
        Self {
            jpeg: Converter::new(
                samples(gst_video::VideoFormat::I420, "1:4:0:0"),
                Some(("jpegenc", "quality", QUALITY)),
            ),
            rgb: Converter::new(samples(gst_video::VideoFormat::Rgb, "sRGB"), None),
        }
    }
}

impl PictureEncoder {
    /// The JPEG of a sample.
    ///
    /// # Errors
    ///
    /// A missing element, or a picture that the encoder refuses. The next picture begins anew.
    pub fn jpeg(&mut self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        self.jpeg.convert(sample, |_, bytes| Ok(bytes.to_vec()))
    }

    /// The PNG of a sample, bit for bit: JPEG would blur the lines of a drawing.
    ///
    /// # Errors
    ///
    /// As [`PictureEncoder::jpeg`].
    pub fn png(&mut self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        self.rgb.convert(sample, |caps, bytes| {
            let info = gst_video::VideoInfo::from_caps(caps).map_err(Problem::internal)?;
            let (width, row) = (info.width(), 3 * info.width() as usize);
            let mut rows = Vec::with_capacity(bytes.len());
            for line in bytes.chunks(info.stride()[0] as usize).take(info.height() as usize) {
                rows.extend_from_slice(&line[..row]);
            }
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, width, info.height());
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            // Takes a quarter of the time of zlib's fastest level, for a smaller file.
            encoder.set_compression(png::Compression::Fast);
            encoder.set_filter(png::Filter::Paeth);
            let mut writer = encoder.write_header().map_err(Problem::internal)?;
            writer.write_image_data(&rows).map_err(Problem::internal)?;
            writer.finish().map_err(Problem::internal)?;
            Ok(file)
        })
    }
}
