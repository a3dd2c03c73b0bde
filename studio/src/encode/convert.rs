// SPDX-License-Identifier: MPL-2.0
//! Pictures in other samples, or encoded, by GStreamer's elements in a pipeline that lasts.

use gst::prelude::*;

use crate::problem::Problem;
use crate::source::make;

/// Longer than any picture takes.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(10);

/// An element with the value of one of its properties.
type Encoder = (&'static str, &'static str, &'static str);

/// Converts pictures of any caps, one after the other.
pub struct Converter {
    samples: gst::Caps,
    encoder: Option<Encoder>,
    parts: Option<Parts>,
}

struct Parts {
    pipeline: gst::Pipeline,
    input: gst_app::AppSrc,
    output: gst_app::AppSink,
}

impl Converter {
    /// Converts to `samples`, which `encoder` then encodes.
    pub fn new(samples: gst::Caps, encoder: Option<Encoder>) -> Self {
        Self { samples, encoder, parts: None }
    }

    /// Converts a sample; `read` gets the caps and the bytes of the result.
    ///
    /// # Errors
    ///
    /// A missing element, or a picture that is refused. The next picture begins anew.
    pub fn convert<R>(
        &mut self,
        sample: &gst::Sample,
        read: impl FnOnce(&gst::CapsRef, &[u8]) -> Result<R, Problem>,
    ) -> Result<R, Problem> {
        let parts = match self.parts.take() {
            Some(parts) => parts,
            None => Parts::new(&self.samples, self.encoder)?,
        };
        let result = parts.convert(sample, read)?;
        self.parts = Some(parts);
        Ok(result)
    }
}

impl Parts {
    fn new(samples: &gst::Caps, encoder: Option<Encoder>) -> Result<Self, Problem> {
        let pipeline = gst::Pipeline::new();
        let input = gst_app::AppSrc::builder().format(gst::Format::Time).build();
        let filter = make("capsfilter")?;
        filter.set_property("caps", samples);
        let mut elements = vec![input.clone().upcast(), make("videoconvert")?, filter];
        if let Some((name, property, value)) = encoder {
            let encoder = make(name)?;
            encoder.set_property_from_str(property, value);
            elements.push(encoder);
        }
        let output = gst_app::AppSink::builder().sync(false).build();
        elements.push(output.clone().upcast());
        pipeline.add_many(&elements).map_err(Problem::internal)?;
        gst::Element::link_many(&elements).map_err(Problem::internal)?;
        pipeline.set_state(gst::State::Playing).map_err(Problem::internal)?;
        Ok(Self { pipeline, input, output })
    }

    fn convert<R>(
        &self,
        sample: &gst::Sample,
        read: impl FnOnce(&gst::CapsRef, &[u8]) -> Result<R, Problem>,
    ) -> Result<R, Problem> {
        let refused = || Problem::internal("this picture cannot be encoded");
        let (mut buffer, caps) = sample.buffer_owned().zip(sample.caps_owned()).ok_or_else(refused)?;
        // Times of a loop or a seek go back; the encoder is not asked for any.
        let stamped = buffer.make_mut();
        stamped.set_pts(None);
        stamped.set_dts(None);
        self.input.set_caps(Some(&caps));
        self.input.push_buffer(buffer).map_err(Problem::internal)?;
        let made = self.output.try_pull_sample(PATIENCE).ok_or_else(refused)?;
        let (buffer, caps) = made.buffer().zip(made.caps()).ok_or_else(refused)?;
        read(caps, &buffer.map_readable().map_err(Problem::internal)?)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        // Going down does not fail.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}
