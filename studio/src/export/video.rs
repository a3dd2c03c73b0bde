// SPDX-License-Identifier: MPL-2.0
//! Videos of what the element draws, by the encoder that is there.

use std::fs::File;
use std::os::fd::AsRawFd;

use gst::prelude::*;

use crate::problem::Problem;
use crate::source::make;

/// Elements that write frames as a video into `file`, which has to stay open as long, with the suffix of its name.
pub fn writer(file: &File) -> Result<(Vec<gst::Element>, &'static str), Problem> {
    let (encode, suffix) = encoder()?;
    let sink = make("fdsink")?;
    sink.set_property("fd", file.as_raw_fd());
    let mut chain = vec![make("videoconvert")?];
    chain.extend(encode);
    chain.push(sink);
    Ok((chain, suffix))
}

/// Encoder, parser and muxer that are there, with the suffix of their files.
fn encoder() -> Result<(Vec<gst::Element>, &'static str), Problem> {
    let has = |name: &str| gst::ElementFactory::find(name).is_some();
    let chain = |names: &[&str]| names.iter().map(|name| make(name)).collect::<Result<Vec<_>, _>>();
    if has("x264enc") {
        let elements = chain(&["x264enc", "h264parse", "mp4mux"])?;
        elements[0].set_property_from_str("speed-preset", "veryfast");
        return Ok((elements, "mp4"));
    }
    if has("openh264enc") {
        return Ok((chain(&["openh264enc", "h264parse", "mp4mux"])?, "mp4"));
    }
    let elements = chain(&["vp8enc", "webmmux"])?;
    elements[0].set_property("deadline", 1i64);
    Ok((elements, "webm"))
}
