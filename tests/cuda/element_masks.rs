// SPDX-License-Identifier: MPL-2.0
//! Masks of the element on the CUDA backend, in system memory and on the device, against the CPU backend: equal frames and metadata.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.

use crate::common;
use std::sync::{Arc, Mutex};

use crate::common::{TestBus, caps, error_on, harness, info, picture, pixels, superpixel};
use crate::device::{device, or_skip, short};
use gst::prelude::*;
use gstsuperpixel::image::NO_LABEL;
use gstsuperpixel::meta::SuperpixelMeta;

/// Content of a frame: pixels and all metadata.
type Content = (Vec<u8>, Vec<u8>);

fn metadata(buffer: &gst::BufferRef) -> Vec<u8> {
    let meta = SuperpixelMeta::from_buffer(buffer).expect("meta");
    let labels = meta.labels().unwrap();
    let mut all: Vec<u8> = labels.as_slice().iter().flat_map(|label| label.to_le_bytes()).collect();
    all.extend_from_slice(bytemuck::cast_slice(&meta.table().unwrap()));
    all.extend_from_slice(bytemuck::cast_slice(&meta.neighbors().unwrap()));
    all.extend_from_slice(bytemuck::cast_slice(&meta.motion().unwrap()));
    all.extend_from_slice(bytemuck::cast_slice(&meta.merges().unwrap()));
    all.extend_from_slice(bytemuck::cast_slice(&meta.events().unwrap()));
    all
}

fn set(element: &gst::Element, properties: &[(&str, &str)]) {
    for (name, value) in properties {
        element.set_property_from_str(name, value);
    }
}

/// Rectangles that are masks of successive frames: large ones, some that are equal, none, and nothing inside.
const PLACES: [Option<(u32, u32, u32, u32)>; 8] = [
    Some((10, 8, 60, 50)),
    Some((10, 8, 60, 50)),
    Some((14, 9, 70, 60)),
    None,
    Some((5, 0, 50, 81)),
    Some((97, 81, 4, 4)),
    Some((20, 8, 60, 50)),
    Some((20, 8, 60, 50)),
];

/// Runs a clip with regions of interest, and returns what leaves.
fn clip(properties: &[(&str, &str)], format: &str) -> Vec<Content> {
    let element = superpixel();
    set(&element, &[("neighbors", "true"), ("mask", "regions"), ("mask-roi-types", "fish")]);
    set(&element, properties);
    let (mut h, bus): (_, TestBus) = harness(&element);
    h.set_src_caps(caps(format, 97, 81));
    let info = info(format, 97, 81);
    let mut left = Vec::new();
    for (i, place) in PLACES.into_iter().enumerate() {
        let mut input = picture(&info, 1 + i as u32 / 3, if i == 4 { 13 } else { 0 });
        let writable = input.get_mut().unwrap();
        writable.set_pts(gst::ClockTime::from_mseconds(40 * i as u64));
        if let Some(place) = place {
            gst_video::VideoRegionOfInterestMeta::add(writable, "fish", place);
        }
        h.push(input).unwrap_or_else(|error| panic!("{error}: {:?}", error_on(&bus)));
        while let Some(buffer) = h.try_pull() {
            left.push((pixels(&buffer, &info), metadata(&buffer)));
        }
    }
    h.push_event(gst::event::Eos::new());
    while let Some(buffer) = h.try_pull() {
        left.push((pixels(&buffer, &info), metadata(&buffer)));
    }
    assert_eq!(error_on(&bus), None);
    assert_eq!(left.len(), PLACES.len());
    left
}

#[test]
fn clips_with_changing_masks_are_those_of_the_cpu() {
    if device("clips_with_changing_masks_are_those_of_the_cpu").is_none() {
        return;
    }
    let cases: [&[(&str, &str)]; 5] = [
        &[("temporal", "true"), ("events", "true"), ("overlay", "mean-color-boundaries")],
        &[("temporal", "false"), ("overlay", "none")],
        &[("temporal", "true"), ("regions", "9"), ("mask-missing", "last"), ("overlay", "labels")],
        &[
            ("algo", "lsc"),
            ("temporal", "true"),
            ("refine", "1"),
            ("mask-missing", "none"),
            ("overlay", "none"),
        ],
        &[("algo", "quickshift"), ("temporal", "true"), ("hierarchy", "true"), ("overlay", "boundaries")],
    ];
    for (properties, format) in cases.into_iter().zip(["NV12", "RGBA", "I420", "GRAY8", "AYUV"]) {
        let cpu = clip(&[properties, &[("backend", "cpu")]].concat(), format);
        for depth in if short() { &["0", "3"][..] } else { &["0", "1", "2", "3", "4"] } {
            let cuda = clip(&[properties, &[("backend", "cuda"), ("async-depth", depth)]].concat(), format);
            for (i, (cpu, cuda)) in cpu.iter().zip(&cuda).enumerate() {
                assert!(cpu.1 == cuda.1, "{properties:?} async-depth={depth} frame {i}: metadata");
                assert!(cpu.0 == cuda.0, "{properties:?} async-depth={depth} frame {i}: pixels");
            }
        }
    }
}

/// Frames of alpha that changes, on a backend; `on_device` in device memory. What leaves, and pixels outside.
fn with_alpha(format: &str, backend: &str, properties: &str, on_device: bool) -> (Vec<Content>, usize) {
    let ours = format!(
        "superpixel name=s backend={backend} superpixel-size=8 threads=2 mask=alpha neighbors=true {properties}"
    );
    let line = if on_device {
        let memory = "video/x-raw(memory:CUDAMemory)";
        format!("cudaupload ! {memory} ! {ours} ! {memory} ! cudadownload ! capsfilter caps=video/x-raw")
    } else {
        ours
    };
    let bin = gst::parse::bin_from_description(&line, true).unwrap();
    let element = bin.by_name("s").unwrap();
    let (mut h, bus) = harness(bin.upcast_ref());
    // The metadata does not pass every element on the way to the host.
    let seen = Arc::<Mutex<Vec<Vec<u8>>>>::default();
    let to = seen.clone();
    element.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        to.lock().unwrap().push(metadata(info.buffer().unwrap()));
        gst::PadProbeReturn::Ok
    });
    h.set_src_caps(caps(format, 97, 81));
    let info = info(format, 97, 81);
    let (mut left, mut outside) = (Vec::new(), 0);
    for seed in 0..4 {
        let input = picture(&info, seed, 0);
        let output = h.push_and_pull(input).unwrap_or_else(|error| panic!("{error}: {:?}", error_on(&bus)));
        let metadata = seen.lock().unwrap().pop().unwrap();
        let labels = metadata[..2 * 97 * 81].chunks_exact(2);
        outside += labels.filter(|label| u16::from_le_bytes([label[0], label[1]]) == NO_LABEL).count();
        left.push((pixels(&output, &info), metadata));
    }
    (left, outside)
}

#[test]
fn alpha_is_found_on_the_device() {
    if device("alpha_is_found_on_the_device").is_none() {
        return;
    }
    common::init();
    let has_uploads =
        ["cudaupload", "cudadownload"].iter().all(|name| gst::ElementFactory::find(name).is_some());
    let uploads =
        has_uploads.then_some(()).ok_or_else(|| "no cudaupload and cudadownload (plugin nvcodec)".into());
    let has_uploads = or_skip("alpha_is_found_on_the_device", uploads).is_some();
    let of_device: Vec<_> = if has_uploads {
        let upload = gst::ElementFactory::find("cudaupload").unwrap();
        let templates = upload.static_pad_templates();
        let from = templates.iter().find(|t| t.direction() == gst::PadDirection::Src).unwrap().caps();
        let has = |name: &str| {
            let mut caps = caps(name, 64, 48);
            caps.make_mut().set_features_simple(Some(gst::CapsFeatures::new(["memory:CUDAMemory"])));
            from.can_intersect(&caps)
        };
        common::formats().map(|(name, _)| name).filter(|name| has(name)).collect()
    } else {
        Vec::new()
    };
    let mut on_device = 0;
    for (name, format) in common::formats().filter(|(_, format)| format.layout().alpha.is_some()) {
        // Noise, around the middle of its codes.
        for properties in
            ["temporal=true overlay=mean-color mask-alpha=130", "temporal=false overlay=none mask-alpha=100"]
        {
            let (cpu, outside) = with_alpha(name, "cpu", properties, false);
            // In words of 16 bits and in two bits likewise.
            assert!((400..4 * 97 * 81 - 400).contains(&outside), "{name} {properties}: {outside}");
            let (cuda, _) = with_alpha(name, "cuda", properties, false);
            assert!(cpu == cuda, "{name} {format:?} {properties}: another result than the CPU's");
            if of_device.contains(&name) {
                on_device += 1;
                let (cuda, _) = with_alpha(name, "cuda", properties, true);
                assert!(cpu == cuda, "{name} {properties}: another result in device memory");
            }
        }
    }
    assert!(on_device >= 4 || !has_uploads, "{on_device} in device memory");
}

/// The same rectangle goes over the bus once for each frame in flight, whatever the number of frames.
#[test]
fn a_mask_that_stays_goes_up_once() {
    if device("a_mask_that_stays_goes_up_once").is_none() {
        return;
    }
    let element = superpixel();
    set(
        &element,
        &[("backend", "cuda"), ("overlay", "none"), ("mask", "rectangle"), ("mask-rectangle", "9,9,30,20")],
    );
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("GRAY8", 64, 48));
    let up = || element.property::<gst::Structure>("stats").get::<u64>("pixel-bytes-to-device").unwrap();
    let mut last = 0;
    let mut rise = || {
        h.push_and_pull(picture(&info("GRAY8", 64, 48), 1, 0)).unwrap();
        let now = up();
        now - std::mem::replace(&mut last, now)
    };
    let (first, second, third) = (rise(), rise(), rise());
    assert!(first >= second + 64 * 48 && second == third, "{first} {second} {third}");
    element.set_property_from_str("mask-rectangle", "9,9,30,21");
    assert_eq!((rise(), rise()), (first, second));
}
