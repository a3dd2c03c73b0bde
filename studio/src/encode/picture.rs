// SPDX-License-Identifier: MPL-2.0
//! Pictures as JPEG, by GStreamer's encoder in a pipeline that lasts.

use gst::prelude::*;

use crate::problem::Problem;
use crate::source::make;

/// Fine enough that no block shows beside exact boundaries.
const QUALITY: i32 = 88;
/// Longer than any picture takes.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// Encodes pictures of any caps, one after the other.
#[derive(Default)]
pub struct PictureEncoder {
    parts: Option<Parts>,
}

struct Parts {
    pipeline: gst::Pipeline,
    input: gst_app::AppSrc,
    output: gst_app::AppSink,
}

impl PictureEncoder {
    /// The JPEG of a sample.
    ///
    /// # Errors
    ///
    /// A missing element, or a picture that the encoder refuses. The next picture begins anew.
    pub fn encode(&mut self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => Parts::new()?,
        };
        let jpeg = parts.encode(sample)?;
        self.parts = Some(parts);
        Ok(jpeg)
    }
}

impl Parts {
    fn new() -> Result<Self, Problem> {
        let pipeline = gst::Pipeline::new();
        let input = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        let convert = make("videoconvert")?;
        // JPEG has no other range and matrix.
        let caps = gst_video::VideoCapsBuilder::new()
            .format(gst_video::VideoFormat::I420)
            .field("colorimetry", "1:4:0:0")
            .build();
        let filter = make("capsfilter")?;
        filter.set_property("caps", caps);
        let encoder = make("jpegenc")?;
        encoder.set_property("quality", QUALITY);
        let output = gst_app::AppSink::builder().sync(false).build();
        let elements = [input.upcast_ref(), &convert, &filter, &encoder, output.upcast_ref::<gst::Element>()];
        pipeline.add_many(elements).map_err(Problem::internal)?;
        gst::Element::link_many(elements).map_err(Problem::internal)?;
        pipeline.set_state(gst::State::Playing).map_err(Problem::internal)?;
        Ok(Self { pipeline, input, output })
    }

    fn encode(&self, sample: &gst::Sample) -> Result<Vec<u8>, Problem> {
        let refused = || Problem::internal("this picture cannot be encoded as JPEG");
        let (mut buffer, caps) = sample.buffer_owned().zip(sample.caps_owned()).ok_or_else(refused)?;
        // Times of a loop or a seek go back; the encoder is not asked for any.
        let stamped = buffer.make_mut();
        stamped.set_pts(None);
        stamped.set_dts(None);
        self.input.set_caps(Some(&caps));
        self.input.push_buffer(buffer).map_err(Problem::internal)?;
        let jpeg = self.output.try_pull_sample(PATIENCE).ok_or_else(refused)?;
        let map = jpeg.buffer().ok_or_else(refused)?.map_readable().map_err(Problem::internal)?;
        Ok(map.to_vec())
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Going down does not fail.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
