// SPDX-License-Identifier: MPL-2.0
//! Every format, odd sizes, padded rows: the element gives what the library gives, and touches nothing else.

use crate::common;
use crate::common::{
    bytes, caps, formats, frame_info, harness, info, library, params, picture, samples, superpixel,
};
use gst::prelude::*;
use gstsuperpixel::image::{Family, PixelFormat, YuvMatrix};
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::params::{Boundaries, Drawing, Fill};

const OVERLAYS: [&str; 6] =
    ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels", "abstraction"];

fn drawing(overlay: &str) -> Option<Drawing> {
    let boundaries = Some(Boundaries::default());
    match overlay {
        "none" => None,
        "boundaries" => Some(Drawing { fill: Fill::None, boundaries }),
        "mean-color" => Some(Drawing { fill: Fill::MeanColor, boundaries: None }),
        "mean-color-boundaries" => Some(Drawing { fill: Fill::MeanColor, boundaries }),
        "labels" => Some(Drawing { fill: Fill::Labels, boundaries: None }),
        "abstraction" => Some(Drawing { fill: Fill::Abstraction(Default::default()), boundaries: None }),
        other => panic!("{other}"),
    }
}

#[test]
fn element_equals_library_for_every_format_size_and_stride() {
    for (name, _) in formats() {
        for (width, height) in [(1, 1), (1, 9), (3, 5), (33, 17), (64, 47)] {
            let element = superpixel();
            element.set_property("neighbors", true);
            let (mut h, bus) = harness(&element);
            h.set_src_caps(caps(name, width, height));
            let info = info(name, width, height);
            for (seed, overlay) in OVERLAYS.iter().enumerate() {
                for padding in [0, 2, 13] {
                    let case = format!("{name} {width}x{height} overlay={overlay} padding={padding}");
                    element.set_property_from_str("overlay", overlay);
                    let input = picture(&info, seed as u32, padding);
                    let expected =
                        library(&input, &info, frame_info(&info), &params(), drawing(overlay).as_ref());
                    let output = h
                        .push_and_pull(input)
                        .unwrap_or_else(|_| panic!("{case}: {:?}", common::error_on(&bus)));
                    let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
                    assert_eq!((meta.width(), meta.height(), meta.algo()), (width, height, "slic"), "{case}");
                    assert_eq!(meta.regions(), expected.regions.count, "{case}");
                    assert!(meta.labels().unwrap().as_slice() == expected.labels, "{case}: labels differ");
                    assert_eq!(meta.table().unwrap(), expected.regions.table, "{case}");
                    assert_eq!(meta.neighbors().unwrap(), expected.regions.neighbors, "{case}");
                    assert!(bytes(&output) == expected.drawn, "{case}: pixels or padding differ");
                }
            }
        }
    }
}

/// The table of formats is GStreamer's, and the pads offer all of it.
#[test]
fn every_format_is_as_gstreamer_describes_it() {
    let element = superpixel();
    let offered = element.static_pad("sink").unwrap().pad_template_caps();
    for (name, format) in formats() {
        let (layout, info) = (format.layout(), info(name, 64, 48));
        let theirs = info.format_info();
        assert_eq!(layout.planes, theirs.n_planes() as usize, "{name}");
        assert_eq!(layout.family == Family::Gray, theirs.is_gray(), "{name}");
        assert_eq!(layout.family == Family::Rgb, theirs.is_rgb(), "{name}");
        for c in 0..channels(format) {
            let channel = &layout.channels[c];
            let i = c as u8;
            assert_eq!(channel.plane, theirs.plane()[c] as usize, "{name} {c}: plane");
            // Of P010 and its like GStreamer counts samples here.
            let (offset, bytes) = (theirs.poffset()[c] as usize, channel.sample.bytes);
            assert!([offset, offset * bytes].contains(&channel.offset), "{name} {c}: offset {offset}");
            assert_eq!(channel.step, theirs.pixel_stride()[c] as usize, "{name} {c}: step");
            assert_eq!(channel.sample.bits, theirs.depth()[c], "{name} {c}: bits");
            // Words of four bytes are taken apart otherwise there: the test of colors says where their channels are.
            if bytes < 4 {
                assert_eq!(channel.sample.shift, theirs.shift()[c], "{name} {c}: shift");
            }
            assert_eq!(layout.shared(c), [theirs.w_sub()[c], theirs.h_sub()[c]], "{name} {i}: subsampling");
        }
        assert_eq!(layout.alpha.is_some(), theirs.has_alpha(), "{name}: alpha");
        if let Some(alpha) = layout.alpha {
            assert_eq!(alpha.plane, theirs.plane()[3] as usize, "{name}: plane of alpha");
            assert_eq!(alpha.step, theirs.pixel_stride()[3] as usize, "{name}: step of alpha");
            assert_eq!(alpha.sample.bits, theirs.depth()[3], "{name}: bits of alpha");
            // Words of four bytes are taken apart otherwise there.
            let is_there = alpha.sample.bytes == 4 || alpha.offset == theirs.poffset()[3] as usize;
            assert!(
                is_there && (alpha.sample.bytes == 4 || theirs.shift()[3] == 0),
                "{name}: offset of alpha"
            );
        }
        let big = theirs.flags().contains(gst_video::VideoFormatFlags::LE);
        assert!(
            layout.channels[0].sample.bytes == 1 || big != layout.channels[0].sample.big_endian,
            "{name}"
        );
        assert!(offered.can_intersect(&caps(name, 64, 48)), "{name} is not offered");
    }
}

fn channels(format: PixelFormat) -> usize {
    if format.is_gray() { 1 } else { 3 }
}

/// A frame of RGBA as GStreamer converts it.
fn converted(rgba: gst::Buffer, from: &gst_video::VideoInfo, format: &str) -> gst::Buffer {
    let to = info(format, from.width(), from.height());
    let picture = gst_video::VideoFrame::from_buffer_readable(rgba, from).unwrap();
    let mut frame =
        gst_video::VideoFrame::from_buffer_writable(gst::Buffer::with_size(to.size()).unwrap(), &to).unwrap();
    gst_video::VideoConverter::new(from, &to, None).unwrap().frame(&picture, &mut frame);
    frame.into_buffer()
}

/// GStreamer's conversion of a color and the library's reading of it agree.
#[test]
fn colors_are_those_that_gstreamer_converts() {
    for (name, format) in formats() {
        for color in [[200, 40, 90, 255], [30, 180, 60, 255], [20, 60, 210, 255]] {
            let from = info("RGBA", 34, 18);
            let flat = gst::Buffer::from_slice(color.repeat(34 * 18));
            let element = superpixel();
            let (mut h, _bus) = harness(&element);
            h.set_src_caps(caps(name, 34, 18));
            let output = h.push_and_pull(converted(flat, &from, name)).unwrap();
            let mean = SuperpixelMeta::from_buffer(&output).expect("meta").table().unwrap()[0].mean_rgb;
            let near = mean.iter().zip(color).all(|(a, b)| a.abs_diff(b) <= 4);
            assert!(format.is_gray() || near, "{name}: {mean:?} where it was {color:?}");
        }
    }
}

/// Pixels whose right or lower neighbor has another label.
fn boundary(labels: &[u16], width: usize) -> Vec<bool> {
    let height = labels.len() / width;
    (0..labels.len())
        .map(|i| {
            let (x, y) = (i % width, i / width);
            (x + 1 < width && labels[i + 1] != labels[i])
                || (y + 1 < height && labels[i + width] != labels[i])
        })
        .collect()
}

/// Which part of one boundary has the other within 2 px.
fn recall(of: &[bool], within: &[bool], width: usize) -> f64 {
    let height = of.len() / width;
    let near = |i: usize| {
        let (x, y) = (i % width, i / width);
        (y.saturating_sub(2)..height.min(y + 3))
            .any(|v| (x.saturating_sub(2)..width.min(x + 3)).any(|u| within[v * width + u]))
    };
    let all = of.iter().filter(|on| **on).count();
    (0..of.len()).filter(|&i| of[i] && near(i)).count() as f64 / all.max(1) as f64
}

/// A photograph in another format has the regions that it has as RGBA. With `--nocapture` the figures of docs/formats.md are shown.
#[test]
fn a_picture_in_any_format_has_the_regions_of_rgba() {
    let (width, height) = (480, 320);
    let line = format!(
        "filesrc location=\"{}/media/bigbuckbunny.mp4\" ! decodebin ! videoconvert ! videoscale ! \
         video/x-raw,format=RGBA,width={width},height={height},pixel-aspect-ratio=1/1 ! appsink name=out",
        env!("CARGO_MANIFEST_DIR")
    );
    let mut clip = samples(&line);
    let rgba = clip.swap_remove(clip.len() / 2);
    let from = gst_video::VideoInfo::from_caps(rgba.caps().unwrap()).unwrap();
    let labels = |format: &str| {
        let element = superpixel();
        element.set_property("superpixel-size", 16u32);
        element.set_property_from_str("overlay", "none");
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps(format, width, height));
        let output = h.push_and_pull(converted(rgba.buffer_owned().unwrap(), &from, format)).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        meta.labels().unwrap().as_slice().to_vec()
    };
    let width = width as usize;
    let of_rgba = boundary(&labels("RGBA"), width);
    for (name, format) in formats() {
        let own = boundary(&labels(name), width);
        let recalls = [recall(&of_rgba, &own, width), recall(&own, &of_rgba, width)];
        let least = recalls[0].min(recalls[1]);
        println!("{name}: {:.3}", least);
        let wanted = match (format.is_gray(), format.layout().is_whole()) {
            // Regions of gray are not those of colors.
            (true, _) => 0.0,
            (_, true) => 0.97,
            _ => 0.93,
        };
        assert!(least >= wanted, "{name}: {recalls:?}");
    }
}

#[test]
fn colorimetry_of_the_caps_reaches_the_library() {
    let (width, height) = (48, 32);
    for (colorimetry, matrix, full_range) in [
        ("bt601", YuvMatrix::Bt601, false),
        ("bt709", YuvMatrix::Bt709, false),
        ("bt2020", YuvMatrix::Bt2020, false),
        ("1:4:0:0", YuvMatrix::Bt601, true),
        ("1:3:0:0", YuvMatrix::Bt709, true),
        ("2:5:0:0", YuvMatrix::Smpte240m, false),
    ] {
        let element = superpixel();
        let (mut h, _bus) = harness(&element);
        let mut caps = caps("I420", width, height);
        caps.make_mut().set("colorimetry", colorimetry);
        h.set_src_caps(caps);
        let info = info("I420", width, height);
        let frame = gstsuperpixel::image::FrameInfo { matrix, full_range, ..frame_info(&info) };
        let input = picture(&info, 3, 0);
        let expected = library(&input, &info, frame, &params(), drawing("boundaries").as_ref());
        let output = h.push_and_pull(input).unwrap();
        let meta = SuperpixelMeta::from_buffer(&output).expect("meta");
        assert_eq!(meta.table().unwrap(), expected.regions.table, "{colorimetry}");
        assert!(bytes(&output) == expected.drawn, "{colorimetry}: pixels differ");
    }
}

/// Two flat halves with a line between them: where a 2x2 block is all line, its chroma is the line's; where it has no
/// line, luma and chroma are as before.
#[test]
fn boundaries_have_the_right_chroma() {
    const YELLOW: [u8; 3] = [210, 16, 146];
    let (width, height) = (64usize, 32usize);
    let mut results = Vec::new();
    for name in ["I420", "NV12"] {
        let info = info(name, width as u32, height as u32);
        let mut input = picture(&info, 0, 0);
        let (offset, stride) = (info.offset().to_vec(), info.stride().to_vec());
        let luma_at = |x: usize, y: usize| y * stride[0] as usize + x;
        let chroma_at = |c: usize, x: usize, y: usize| match name {
            "I420" => offset[1 + c] + y * stride[1 + c] as usize + x,
            _ => offset[1] + y * stride[1] as usize + 2 * x + c,
        };
        let chroma = [90, 160];
        {
            let mut map = input.get_mut().unwrap().map_writable().unwrap();
            for y in 0..height {
                for x in 0..width {
                    map[luma_at(x, y)] = if x < width / 2 { 60 } else { 180 };
                    map[chroma_at(0, x / 2, y / 2)] = chroma[0];
                    map[chroma_at(1, x / 2, y / 2)] = chroma[1];
                }
            }
        }
        let element = superpixel();
        element.set_property("superpixel-size", 32u32);
        element.set_property("boundary-width", 4u32);
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps(name, width as u32, height as u32));
        let output = bytes(&h.push_and_pull(input).unwrap());
        let (mut lines, mut rests) = (0, 0);
        let mut planar = Vec::new();
        for y in 0..height / 2 {
            for x in 0..width / 2 {
                let before = if 2 * x < width / 2 { 60 } else { 180 };
                let block =
                    [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(i, j)| output[luma_at(2 * x + i, 2 * y + j)]);
                let found = [output[chroma_at(0, x, y)], output[chroma_at(1, x, y)]];
                planar.push((block, found));
                if block.iter().all(|luma| luma.abs_diff(YELLOW[0]) <= 1) {
                    lines += 1;
                    assert!(
                        found[0].abs_diff(YELLOW[1]) <= 1 && found[1].abs_diff(YELLOW[2]) <= 1,
                        "{name} {found:?}"
                    );
                } else if block == [before; 4] {
                    rests += 1;
                    assert_eq!(found, chroma, "{name} at {x},{y}");
                }
            }
        }
        assert!(lines > 0 && rests > 0, "{name}: {lines} blocks of line, {rests} untouched");
        results.push(planar);
    }
    assert_eq!(results[0], results[1], "I420 and NV12 differ");
}
