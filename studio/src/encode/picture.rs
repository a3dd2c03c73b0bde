// SPDX-License-Identifier: MPL-2.0
//! Pictures as JPEG or PNG, by GStreamer's encoders in pipelines that last.

use gst::prelude::*;

use crate::problem::Problem;
use crate::source::make;

/// How pictures are written.
pub struct Format {
    encoder: &'static str,
    setting: (&'static str, &'static str),
    samples: gst_video::VideoFormat,
    colorimetry: &'static str,
}

/// For video. The quality is fine enough that no block shows beside exact boundaries; JPEG has no other range and matrix.
pub const JPEG: Format = Format {
    encoder: "jpegenc",
    setting: ("quality", "88"),
    samples: gst_video::VideoFormat::I420,
    colorimetry: "1:4:0:0",
};
/// For drawings, bit for bit: JPEG would blur their lines. Higher levels take several times as long for a few bytes less.
pub const PNG: Format = Format {
    encoder: "pngenc",
    setting: ("compression-level", "1"),
    samples: gst_video::VideoFormat::Rgb,
    colorimetry: "sRGB",
};
/// Longer than any picture takes.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Encodes pictures of any caps, one after the other.
pub struct PictureEncoder {
    format: &'static Format,
    parts: Option<Parts>,
}

struct Parts {
    pipeline: gst::Pipeline,
    input: gst_app::AppSrc,
    output: gst_app::AppSink,
}

impl PictureEncoder {
    /// Encodes nothing yet.
    pub fn new(format: &'static Format) -> Self {
        Self { format, parts: None }
    }

    /// The bytes of a sample's file.
    ///
    /// # Errors
    ///
    /// A missing element, or a picture that the encoder refuses. The next picture begins anew.
    pub fn encode(&mut self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => Parts::new(self.format)?,
        };
        let file = parts.encode(sample)?;
        self.parts = Some(parts);
        Ok(file)
    }
}

impl Parts {
    fn new(format: &Format) -> Result<Self, Problem> {
        let pipeline = gst::Pipeline::new();
        let input = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        let convert = make("videoconvert")?;
        let caps = gst_video::VideoCapsBuilder::new()
            .format(format.samples)
            .field("colorimetry", format.colorimetry)
            .build();
        let filter = make("capsfilter")?;
        filter.set_property("caps", caps);
        let encoder = make(format.encoder)?;
        let (name, value) = format.setting;
        encoder.set_property_from_str(name, value);
        let output = gst_app::AppSink::builder().sync(false).build();
        let elements = [input.upcast_ref(), &convert, &filter, &encoder, output.upcast_ref::<gst::Element>()];
        pipeline.add_many(elements).map_err(Problem::internal)?;
        gst::Element::link_many(elements).map_err(Problem::internal)?;
        pipeline.set_state(gst::State::Playing).map_err(Problem::internal)?;
        Ok(Self { pipeline, input, output })
    }

    fn encode(&self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        let refused = || Problem::internal("this picture cannot be encoded");
        let (mut buffer, caps) = sample.buffer_owned().zip(sample.caps_owned()).ok_or_else(refused)?;
        // Times of a loop or a seek go back; the encoder is not asked for any.
        let stamped = buffer.make_mut();
        stamped.set_pts(None);
        stamped.set_dts(None);
        self.input.set_caps(Some(&caps));
        self.input.push_buffer(buffer).map_err(Problem::internal)?;
        let file = self.output.try_pull_sample(PATIENCE).ok_or_else(refused)?;
        let map = file.buffer().ok_or_else(refused)?.map_readable().map_err(Problem::internal)?;
        Ok(map.to_vec())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Going down does not fail.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
