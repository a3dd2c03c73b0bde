// SPDX-License-Identifier: MPL-2.0
//! Priors of the element from segmentations that earlier elements have attached.

use crate::analytics::Reader;
use crate::common::{
    Answer, caps, error_on, frame_info, harness, info, library_in, params, picture, superpixel, warning_on,
};
use crate::masks::{EVERYTHING, assert_same};
use crate::masks_of_metadata::mask_buffer;
use gst::prelude::*;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Geometry, Prior, PriorSamples};
use gstsuperpixel::params::Params;
use gstsuperpixel::plan::Plan;

const WIDTH: u32 = 64;
const HEIGHT: u32 = 47;

/// The CPU, and CUDA where a device works or has to.
fn backends() -> Vec<&'static str> {
    #[cfg(feature = "cuda")]
    match gstsuperpixel::cuda::Cuda::new(-1) {
        Ok(_) => return vec!["cpu", "cuda"],
        Err(error) => assert!(std::env::var_os("SUPERPIXEL_REQUIRE_CUDA").is_none(), "{error}"),
    }
    vec!["cpu"]
}

fn element(backend: &str, temporal: bool) -> gst::Element {
    let element = superpixel();
    element.set_property_from_str("backend", backend);
    for (name, value) in [("prior", "segmentation"), ("overlay", "none"), ("neighbors", "true")] {
        element.set_property_from_str(name, value);
    }
    element.set_property("temporal", temporal);
    element
}

/// An engine of the library as the element has it.
fn engine(info: &gst_video::VideoInfo, temporal: bool) -> Engine<Cpu> {
    let params = Params { prior: true, temporal, ..params() };
    Engine::new(Cpu::new(1).unwrap(), Plan::new(&params, frame_info(info)).unwrap()).unwrap()
}

/// What the library gives with a number for each pixel.
fn wanted(
    engine: &mut Engine<Cpu>,
    input: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    number: impl Fn(i64, i64) -> u32,
) -> Answer {
    let pixels = (0..i64::from(HEIGHT)).flat_map(|y| (0..i64::from(WIDTH)).map(move |x| (x, y)));
    let numbers: Vec<u32> = pixels.map(|(x, y)| number(x, y)).collect();
    let geometry = Geometry::new(WIDTH, HEIGHT).unwrap();
    let prior = Prior::new(PriorSamples::U32(&numbers), geometry, WIDTH as usize).unwrap();
    library_in(engine, input, info, None, EVERYTHING, None, Some(prior))
}

#[test]
fn values_of_a_segmentation_are_areas() {
    let Some(reader) = Reader::open() else { return };
    let info = info("NV12", WIDTH, HEIGHT);
    let value = |x: u32, y: u32| [0u16, 1, 7, 300][((x / 9 + y / 11) % 4) as usize];
    let formats =
        [("GRAY8", [64, 47]), ("GRAY8", [32, 20]), ("GRAY16_LE", [100, 90]), ("GRAY16_BE", [31, 47])];
    for (backend, (format, size)) in
        backends().into_iter().flat_map(|backend| formats.map(|format| (backend, format)))
    {
        for ([x, y], [w, h]) in
            [([0, 0], [64, 47]), ([5, 6], [40, 30]), ([-9, -9], [80, 40]), ([3, 3], [0, 9])]
        {
            let case = format!("{backend} {format} {size:?} at {x}, {y}, {w}x{h}");
            let element = element(backend, true);
            let (mut harness, bus) = harness(&element);
            harness.set_src_caps(caps("NV12", WIDTH, HEIGHT));
            let mut engine = engine(&info, true);
            for i in 0..3 {
                let mut input = picture(&info, i / 2, 0);
                let writable = input.get_mut().unwrap();
                writable.set_pts(gst::ClockTime::from_mseconds(40 * u64::from(i)));
                let expected = if i == 1 {
                    // A frame without one is one area.
                    library_in(&mut engine, writable, &info, None, EVERYTHING, None, None)
                } else {
                    reader.add_segmentation(writable, mask_buffer(format, size, value), [x, y], [w, h]);
                    wanted(&mut engine, writable, &info, |px, py| {
                        let at = [px - i64::from(x), py - i64::from(y)];
                        if at[0] < 0 || at[1] < 0 || at[0] >= i64::from(w) || at[1] >= i64::from(h) {
                            return 1000;
                        }
                        let of = |at: i64, pixels: u32, samples: u32| {
                            ((at as f64 + 0.5) * f64::from(samples) / f64::from(pixels)).floor() as u32
                        };
                        let value = value(of(at[0], w, size[0]), of(at[1], h, size[1]));
                        u32::from(if format == "GRAY8" { value & 255 } else { value })
                    })
                };
                let output =
                    harness.push_and_pull(input).unwrap_or_else(|_| panic!("{case}: {:?}", error_on(&bus)));
                assert_same(&output, &expected, &case);
            }
            assert_eq!(warning_on(&bus), None, "{case}");
        }
    }
}

#[test]
fn a_segmentation_that_lies_is_no_prior() {
    let Some(reader) = Reader::open() else { return };
    let info = info("RGB", WIDTH, HEIGHT);
    let element = element("cpu", false);
    let (mut harness, bus) = harness(&element);
    harness.set_src_caps(caps("RGB", WIDTH, HEIGHT));
    let mut engine = engine(&info, false);
    for i in 0..3 {
        let mut input = picture(&info, 1, 0);
        let writable = input.get_mut().unwrap();
        let mut mask = mask_buffer("GRAY8", [16, 12], |x, y| (x / 4 + y / 4) as u16);
        if i < 2 {
            mask.get_mut().unwrap().set_size(9);
        }
        reader.add_segmentation(writable, mask, [0, 0], [64, 47]);
        let expected = match i {
            2 => wanted(&mut engine, writable, &info, |x, y| (x / 16 + (2 * y + 1) * 12 / 94 / 4) as u32),
            _ => library_in(&mut engine, writable, &info, None, EVERYTHING, None, None),
        };
        assert_same(&harness.push_and_pull(input).unwrap(), &expected, &i.to_string());
        let warning = warning_on(&bus);
        assert_eq!(warning.is_some_and(|text| text.contains("A prior cannot be used")), i == 0, "{i}");
    }
    assert_eq!(element.property::<gst::Structure>("stats").get::<u64>("dropped"), Ok(0));
}

#[test]
fn a_prior_of_labels_that_are_not_connected_is_refused() {
    let element = element("cpu", false);
    element.set_property("connectivity", false);
    let bus = gst::Bus::new();
    element.set_bus(Some(&bus));
    assert!(element.set_state(gst::State::Paused).is_err());
    let message = bus.pop_filtered(&[gst::MessageType::Error]).expect("an error");
    let gst::MessageView::Error(error) = message.view() else { unreachable!() };
    assert!(error.error().to_string().contains("connectivity"), "{}", error.error());
    element.set_bus(None);
    element.set_state(gst::State::Null).unwrap();
}
