// SPDX-License-Identifier: MPL-2.0
//! Frames as a player shows them: cameras store them as the sensor lies, and a tag says how to turn them.

use gst::prelude::*;

use crate::fault::{Failure, Result};

/// Each value of the tag `image-orientation` with the direction of `videoflip` that makes the picture upright. Flips come before
/// turns, so `flip-rotate-90` is the mirror image at the diagonal from the upper right.
const TURNS: [(&str, &str); 8] = [
    (STORED, "identity"),
    ("rotate-90", "90r"),
    ("rotate-180", "180"),
    ("rotate-270", "90l"),
    ("flip-rotate-0", "horiz"),
    ("flip-rotate-90", "ur-ll"),
    ("flip-rotate-180", "vert"),
    ("flip-rotate-270", "ul-lr"),
];

/// Orientation of frames that are upright as they are stored.
pub const STORED: &str = "rotate-0";

/// Orientation by the tags on a pad.
pub fn orientation(pad: &gst::Pad) -> &'static str {
    let mut found = STORED;
    pad.sticky_events_foreach(|event| {
        if let gst::EventView::Tag(event) = event.view()
            && let Some(value) = event.tag().get::<gst::tags::ImageOrientation>()
            && let Some((name, _)) = TURNS.iter().find(|(name, _)| *name == value.get())
        {
            found = name;
        }
        std::ops::ControlFlow::Continue(gst::EventForeachAction::Keep)
    });
    found
}

/// Turns what comes out of a pad before it goes on to the pad that it is linked to. To be called while the pad is blocked.
///
/// # Errors
///
/// An element is missing, or does not take the frames.
pub fn turn(pad: &gst::Pad, orientation: &str) -> Result<()> {
    let direction = TURNS.iter().find(|(name, _)| *name == orientation).map_or("identity", |turn| turn.1);
    let next = pad.peer().ok_or_else(|| Failure::machine("frames go nowhere"))?;
    let parent = next.parent_element().and_then(|element| element.parent());
    let bin =
        parent.and_downcast::<gst::Bin>().ok_or_else(|| Failure::machine("an element without a bin"))?;
    let on_device =
        pad.current_caps().and_then(|caps| caps.features(0).map(|f| f.contains("memory:CUDAMemory")));
    let mut elements = Vec::new();
    if on_device == Some(true) {
        // videoflip has no way to turn what lies on a device.
        elements.push(gst::ElementFactory::make("cudadownload").build()?);
    }
    // Takes no part where videoflip takes the format.
    elements.push(gst::ElementFactory::make("videoconvert").build()?);
    let flip = gst::ElementFactory::make("videoflip").build()?;
    flip.set_property_from_str("video-direction", direction);
    elements.push(flip);
    bin.add_many(&elements)?;
    gst::Element::link_many(&elements)?;
    pad.unlink(&next)?;
    let refused =
        |error: gst::PadLinkError| Failure::machine(format!("the frames cannot be turned: {error}"));
    let end = |element: Option<&gst::Element>, name| element.and_then(|element| element.static_pad(name));
    let missing = || Failure::machine("an element without pads");
    let (first, last) = (end(elements.first(), "sink"), end(elements.last(), "src"));
    last.ok_or_else(missing)?.link(&next).map_err(refused)?;
    for element in elements.iter().rev() {
        element.sync_state_with_parent()?;
    }
    pad.link(&first.ok_or_else(missing)?).map_err(refused)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 3x2 px, upright, by the words of the tag: first flipped from left to right, then turned clockwise.
    fn expected(name: &str, stored: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut picture = stored.to_vec();
        if name.starts_with("flip-") {
            picture.iter_mut().for_each(|row| row.reverse());
        }
        let quarters = name.rsplit('-').next().unwrap().parse::<usize>().unwrap() / 90;
        for _ in 0..quarters {
            let (width, height) = (picture[0].len(), picture.len());
            picture = (0..width).map(|x| (0..height).rev().map(|y| picture[y][x]).collect()).collect();
        }
        picture
    }

    #[test]
    fn all_eight_tags_turn_as_their_words_say() {
        gst::init().unwrap();
        let stored = vec![vec![1u8, 2, 3], vec![4, 5, 6]];
        for (name, _) in TURNS {
            let description = format!(
                "appsrc name=source format=time caps=video/x-raw,format=GRAY8,width=3,height=2,framerate=1/1 ! \
                 taginject name=tags tags=image-orientation={name} ! queue ! appsink name=sink sync=false"
            );
            let pipeline = gst::parse::launch(&description).unwrap().downcast::<gst::Pipeline>().unwrap();
            let tags = pipeline.by_name("tags").unwrap();
            let pad = tags.static_pad("src").unwrap();
            pad.add_probe(gst::PadProbeType::BLOCK | gst::PadProbeType::BUFFER, move |pad, _| {
                assert_eq!(orientation(pad), name);
                turn(pad, name).unwrap();
                gst::PadProbeReturn::Remove
            });
            let source = pipeline.by_name("source").unwrap().downcast::<gst_app::AppSrc>().unwrap();
            let sink = pipeline.by_name("sink").unwrap().downcast::<gst_app::AppSink>().unwrap();
            pipeline.set_state(gst::State::Playing).unwrap();
            // Rows of four bytes each.
            source.push_buffer(gst::Buffer::from_slice([1u8, 2, 3, 0, 4, 5, 6, 0])).unwrap();
            source.end_of_stream().unwrap();
            let sample = sink.pull_sample().unwrap();
            let bytes = sample.buffer().unwrap().map_readable().unwrap();
            let expected = expected(name, &stored);
            let rows = bytes.chunks(4).map(|row| row[..expected[0].len()].to_vec());
            assert_eq!(rows.collect::<Vec<_>>(), expected, "{name}");
            drop(bytes);
            pipeline.set_state(gst::State::Null).unwrap();
        }
    }
}
