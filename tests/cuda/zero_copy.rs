// SPDX-License-Identifier: MPL-2.0
//! Frames in `memory:CUDAMemory` against the same frames in system memory: equal pixels and metadata, and no byte over
//! the bus that nobody asked for.
//!
//! Without a device or GStreamer's CUDA elements each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes
//! that a failure.

use crate::common;
use std::sync::{Arc, Mutex};

use crate::common::{
    PATIENCE, caps, error_on, harness, info, launch, picture, pixels, play_to_end, superpixel, warning_on,
};
use crate::device::or_skip;
use gst::prelude::*;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::meta::SuperpixelMeta;
use gstsuperpixel::regions::{Motion, Neighbor, Region};

const OVERLAYS: [&str; 5] = ["none", "boundaries", "mean-color", "mean-color-boundaries", "labels"];
const ON_DEVICE: &str = "video/x-raw(memory:CUDAMemory)";

/// Returns true if frames can stay on a device here.
fn device(test: &str) -> bool {
    common::init();
    let found = Cuda::new(-1).map_err(|e| e.to_string()).and_then(|_| {
        ["cudaupload", "cudadownload"]
            .iter()
            .all(|name| gst::ElementFactory::find(name).is_some())
            .then_some(())
            .ok_or_else(|| "no cudaupload and cudadownload (plugin nvcodec)".into())
    });
    or_skip(test, found).is_some()
}

/// The formats that GStreamer's CUDA library of this version has, and we.
fn on_device() -> Vec<&'static str> {
    let upload = gst::ElementFactory::find("cudaupload").expect("cudaupload");
    let templates = upload.static_pad_templates();
    let from = templates.iter().find(|t| t.direction() == gst::PadDirection::Src).expect("source pad").caps();
    let has = |name: &str| {
        let mut caps = caps(name, 64, 48);
        caps.make_mut().set_features_simple(Some(gst::CapsFeatures::new(["memory:CUDAMemory"])));
        from.can_intersect(&caps)
    };
    let names: Vec<_> = common::formats().map(|(name, _)| name).filter(|name| has(name)).collect();
    println!("formats in device memory: {names:?}");
    assert!(names.len() >= 7, "{names:?}");
    names
}

/// Metadata of a frame.
#[derive(PartialEq)]
struct Attached {
    labels: Vec<u16>,
    table: Vec<Region>,
    motion: Vec<Motion>,
    neighbors: Vec<Neighbor>,
}

fn attached(buffer: &gst::BufferRef) -> Attached {
    let meta = SuperpixelMeta::from_buffer(buffer).expect("meta");
    Attached {
        labels: meta.labels().unwrap().as_slice().to_vec(),
        table: meta.table().unwrap(),
        motion: meta.motion().unwrap(),
        neighbors: meta.neighbors().unwrap(),
    }
}

/// `superpixel` between an upload and a download.
struct Zero {
    harness: gst_check::Harness,
    element: gst::Element,
    bin: gst::Bin,
    bus: common::TestBus,
    /// Buffers that left the element.
    seen: Arc<Mutex<Vec<gst::Buffer>>>,
}

impl Zero {
    /// Each frame by itself, as [`superpixel`], unless told otherwise.
    fn new(properties: &str) -> Self {
        common::init();
        let bin = gst::parse::bin_from_description(
            &format!(
                "cudaupload ! {ON_DEVICE} ! superpixel name=s backend=cuda superpixel-size=8 neighbors=true temporal=false \
                 {properties} ! {ON_DEVICE} ! cudadownload ! capsfilter caps=video/x-raw"
            ),
            true,
        )
        .unwrap();
        let element = bin.by_name("s").unwrap();
        let (harness, bus) = harness(bin.upcast_ref());
        let seen = Arc::<Mutex<Vec<gst::Buffer>>>::default();
        let to = seen.clone();
        element.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            to.lock().unwrap().push(info.buffer().unwrap().clone());
            gst::PadProbeReturn::Ok
        });
        Self { harness, element, bin, bus, seen }
    }

    fn pass(&mut self, input: gst::Buffer, case: &str) -> (gst::Buffer, gst::Buffer) {
        let output = self.harness.push_and_pull(input);
        let output = output.unwrap_or_else(|error| panic!("{case}: {error}: {:?}", error_on(&self.bus)));
        (output, self.seen.lock().unwrap().pop().unwrap())
    }

    fn bytes(&self, name: &str) -> u64 {
        self.element.property::<gst::Structure>("stats").get(name).unwrap()
    }
}

impl Drop for Zero {
    fn drop(&mut self) {
        self.seen.lock().unwrap().clear();
        let _ = self.bin.set_state(gst::State::Null);
    }
}

#[test]
fn every_format_and_overlay_gives_what_system_memory_gives() {
    if !device("every_format_and_overlay_gives_what_system_memory_gives") {
        return;
    }
    for name in on_device() {
        let mut zero = Zero::new("");
        let element = superpixel();
        element.set_property_from_str("backend", "cpu");
        element.set_property("neighbors", true);
        let (mut cpu, _bus) = harness(&element);
        // GStreamer's upload of packed 4:2:2 leaves out the last chroma of odd widths.
        let odd = if ["YUY2", "UYVY"].contains(&name) { 98 } else { 97 };
        // GStreamer's memory for NV21 of odd heights ends before the picture does: see the next test.
        let rows = if name == "NV21" { 82 } else { 81 };
        for (width, height) in [(2, 2), (odd, rows), (160, 96)] {
            zero.harness.set_src_caps(caps(name, width, height));
            cpu.set_src_caps(caps(name, width, height));
            let info = info(name, width, height);
            for (seed, overlay) in OVERLAYS.iter().enumerate() {
                let case = format!("{name} {width}x{height} overlay={overlay}");
                zero.element.set_property_from_str("overlay", overlay);
                element.set_property_from_str("overlay", overlay);
                let input = picture(&info, seed as u32, 0);
                let (drawn, buffer) = zero.pass(input.copy_deep().unwrap(), &case);
                let expected = cpu.push_and_pull(input.clone()).unwrap();
                let (got, want) = (attached(&buffer), attached(&expected));
                assert!(got.labels == want.labels, "{case}: labels");
                assert!(got.table == want.table, "{case}: table");
                assert!(got.neighbors == want.neighbors, "{case}: neighbors");
                let (got, want) = (pixels(&drawn, &info), pixels(&expected, &info));
                assert_eq!(got.iter().zip(&want).position(|(a, b)| a != b), None, "{case}: pixels");
                if *overlay == "none" || width > 8 {
                    assert_eq!(got == pixels(&input, &info), *overlay == "none", "{case}");
                }
            }
        }
        assert_eq!(
            (zero.bytes("pixel-bytes-to-device"), zero.bytes("pixel-bytes-from-device")),
            (0, 0),
            "{name}"
        );
    }
}

/// GStreamer's CUDA library rounds the height up for NV12 and forgets to for NV21: of 81 rows and 41 of chroma it allocates 121.
/// The last row belongs to nobody. A driver that looks at the end of an allocation refuses GStreamer's own upload; behind one that
/// does not, the element refuses the frame. Where a version gives room for the row, the frame is segmented.
#[test]
fn memory_that_gstreamer_made_too_short_is_refused() {
    if !device("memory_that_gstreamer_made_too_short_is_refused") {
        return;
    }
    if !on_device().contains(&"NV21") {
        println!("skipped: this version has no NV21 in device memory");
        return;
    }
    let alone = |format: &str| {
        play_to_end(&launch(&format!(
            "videotestsrc num-buffers=1 ! video/x-raw,format={format},width=97,height=81 ! cudaupload ! {ON_DEVICE} ! fakesink"
        )))
    };
    assert_eq!(alone("NV12"), Ok(()));
    if let Err(error) = alone("NV21") {
        println!("without our element: {error}");
        return;
    }
    let mut zero = Zero::new("overlay=none");
    let held = Arc::<Mutex<Option<usize>>>::default();
    let to = held.clone();
    zero.element.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let buffer = info.buffer().unwrap();
        let meta = buffer.meta::<gst_video::VideoMeta>().unwrap();
        let (offset, stride) = (meta.offset(), meta.stride());
        // 97 columns are 49 pairs of chroma.
        let end = offset[1] + 40 * stride[1] as usize + 2 * 49;
        *to.lock().unwrap() = Some(end.saturating_sub(buffer.size()));
        gst::PadProbeReturn::Ok
    });
    zero.harness.set_src_caps(caps("NV21", 97, 81));
    let missing = |held: &Mutex<Option<usize>>| held.lock().unwrap().expect("a frame came");
    assert!(zero.harness.push(picture(&info("NV21", 97, 81), 1, 0)).is_ok());
    if missing(&held) > 0 {
        let said = warning_on(&zero.bus).expect("a warning");
        assert!(said.contains("does not hold a frame that can be used"), "{said}");
        assert_eq!(zero.seen.lock().unwrap().len(), 0, "the buffer went on");
    } else {
        assert_eq!(zero.seen.lock().unwrap().len(), 1);
    }
}

#[test]
fn identities_are_those_of_system_memory() {
    if !device("identities_are_those_of_system_memory") {
        return;
    }
    let mut zero = Zero::new("temporal=true overlay=labels");
    let element = superpixel();
    for (name, value) in
        [("backend", "cpu"), ("neighbors", "true"), ("overlay", "labels"), ("superpixel-size", "8")]
    {
        element.set_property_from_str(name, value);
    }
    element.set_property("temporal", true);
    let (mut cpu, _bus) = harness(&element);
    let mut held = Vec::new();
    for (turn, (name, width, height)) in [("NV12", 97, 81), ("RGBA", 64, 48)].into_iter().enumerate() {
        zero.harness.set_src_caps(caps(name, width, height));
        cpu.set_src_caps(caps(name, width, height));
        let info = info(name, width, height);
        for frame in 0..8u32 {
            let case = format!("{name}, frame {frame}");
            match frame {
                5 => [&zero.element, &element].map(|e| e.set_property("temporal-inertia", 0.4f32)),
                6 => [&zero.element, &element].map(|e| e.set_property("superpixel-size", 8 + turn as u32)),
                _ => [(), ()],
            };
            let input = picture(&info, frame / 3, 0);
            let (drawn, buffer) = zero.pass(input.copy_deep().unwrap(), &case);
            let expected = cpu.push_and_pull(input).unwrap();
            let (got, want) = (attached(&buffer), attached(&expected));
            assert!(!got.motion.is_empty() && got == want, "{case}: metadata");
            assert!(pixels(&drawn, &info) == pixels(&expected, &info), "{case}: colors of identities");
            // Frames that are not given back have other addresses.
            if frame % 2 == 0 {
                held.push((buffer, want));
            }
        }
    }
    assert!(
        held.iter().all(|(buffer, want)| attached(buffer) == *want),
        "results change while they are held"
    );
}

#[test]
fn nothing_is_paid_for_what_nobody_reads() {
    if !device("nothing_is_paid_for_what_nobody_reads") {
        return;
    }
    let (width, height) = (97u64, 81u64);
    for overlay in ["none", "mean-color-boundaries"] {
        let mut zero = Zero::new("");
        zero.element.set_property_from_str("overlay", overlay);
        zero.harness.set_src_caps(caps("NV12", 97, 81));
        let info = info("NV12", 97, 81);
        let mut last = None;
        for frame in 1..=5u64 {
            last = Some(zero.pass(picture(&info, frame as u32, 0), overlay).1);
            assert_eq!(zero.bytes("pixel-bytes-to-device"), 0);
            assert_eq!(zero.bytes("pixel-bytes-from-device"), 0);
            // Two numbers: of labels, of pairs.
            assert_eq!(zero.bytes("result-bytes-from-device"), 8 * frame);
        }
        // Each part is downloaded once, on the first read, and without the others.
        let buffer = last.unwrap();
        let meta = SuperpixelMeta::from_buffer(&buffer).unwrap();
        let before = 8 * 5;
        let read = |zero: &mut Zero| {
            zero.pass(picture(&info, 9, 0), overlay);
            zero.bytes("result-bytes-from-device") - before
        };
        let labels = meta.labels().unwrap();
        assert_eq!(labels.as_slice().len() as u64, width * height);
        let stride = (2 * width).next_multiple_of(4);
        assert_eq!(read(&mut zero), 8 + stride * height);
        assert!(meta.labels().unwrap() == labels);
        assert_eq!(read(&mut zero), 16 + stride * height);
        assert_eq!(meta.table().unwrap().len() as u32, meta.regions());
        assert_eq!(read(&mut zero), 24 + stride * height + 40 * u64::from(meta.regions()));
        // Somebody's copy of the frame shares them.
        let copy = buffer.copy();
        assert!(SuperpixelMeta::from_buffer(&copy).unwrap().labels().unwrap() == labels);
        assert_eq!(read(&mut zero), 32 + stride * height + 40 * u64::from(meta.regions()));
    }
}

#[test]
fn system_memory_pays_for_pixels_and_for_what_is_read() {
    if !device("system_memory_pays_for_pixels_and_for_what_is_read") {
        return;
    }
    let element = superpixel();
    element.set_property_from_str("backend", "cuda");
    element.set_property_from_str("overlay", "none");
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGBA", 64, 48));
    let stats = |name: &str| element.property::<gst::Structure>("stats").get::<u64>(name).unwrap();
    for frame in 1..=3 {
        h.push_and_pull(picture(&info("RGBA", 64, 48), 1, 0)).unwrap();
        assert!(stats("pixel-bytes-to-device") >= frame * 4 * 64 * 48);
        assert_eq!(stats("pixel-bytes-from-device"), 0);
        assert_eq!(stats("result-bytes-from-device"), 4 * frame);
    }
    element.set_property_from_str("overlay", "boundaries");
    h.push_and_pull(picture(&info("RGBA", 64, 48), 1, 0)).unwrap();
    assert!(stats("pixel-bytes-from-device") >= 4 * 64 * 48);
}

#[test]
fn results_outlive_the_element_and_may_be_read_by_many() {
    if !device("results_outlive_the_element_and_may_be_read_by_many") {
        return;
    }
    let info = info("I420", 97, 81);
    let element = superpixel();
    element.set_property_from_str("backend", "cpu");
    element.set_property("neighbors", true);
    let (mut cpu, _bus) = harness(&element);
    cpu.set_src_caps(caps("I420", 97, 81));
    // More frames than stay on the device; every other one is let go unread, so that its place is used again.
    let (kept, expected): (Vec<_>, Vec<_>) = {
        let mut zero = Zero::new("overlay=none");
        zero.harness.set_src_caps(caps("I420", 97, 81));
        let mut kept = Vec::new();
        for seed in 0..50 {
            let (_, buffer) = zero.pass(picture(&info, seed, 0), "kept");
            if seed % 2 == 0 {
                kept.push((buffer, attached(&cpu.push_and_pull(picture(&info, seed, 0)).unwrap())));
            }
        }
        kept.into_iter().unzip()
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (i, (buffer, expected)) in kept.iter().zip(&expected).enumerate() {
                    assert!(attached(buffer) == *expected, "frame {i}");
                }
            });
        }
    });
}

#[test]
fn parts_and_copies_of_result_buffers_hold_the_right_bytes() {
    if !device("parts_and_copies_of_result_buffers_hold_the_right_bytes") {
        return;
    }
    let mut zero = Zero::new("overlay=none");
    zero.harness.set_src_caps(caps("RGBA", 97, 81));
    let (_, buffer) = zero.pass(picture(&info("RGBA", 97, 81), 2, 0), "parts");
    let meta = SuperpixelMeta::from_buffer(&buffer).unwrap();
    let labels = meta.label_buffer();
    let part = labels.copy_region(gst::BufferCopyFlags::MEMORY, 100..1000).unwrap();
    let part_of_part = part.copy_region(gst::BufferCopyFlags::MEMORY, 10..20).unwrap();
    let deep = labels.copy_deep().unwrap();
    let whole = common::bytes(labels);
    assert_eq!(whole.len(), 196 * 81);
    assert!(common::bytes(&part) == whole[100..1000]);
    assert!(common::bytes(&part_of_part) == whole[110..120]);
    assert!(common::bytes(&deep) == whole);
    // A writer gets a part of its own, since all holders of the metadata share the buffer.
    let mut part = part;
    part.get_mut().unwrap().map_writable().unwrap().fill(0xee);
    assert!(common::bytes(&part).iter().all(|&byte| byte == 0xee));
    assert!(common::bytes(labels) == whole, "a part wrote into the label map");
}

/// `backend` takes effect at the next start, even if caps are queried again.
#[test]
fn a_backend_wanted_for_the_next_start_leaves_the_stream_alone() {
    if !device("a_backend_wanted_for_the_next_start_leaves_the_stream_alone") {
        return;
    }
    let mut zero = Zero::new("");
    zero.harness.set_src_caps(caps("NV12", 96, 64));
    let input = picture(&info("NV12", 96, 64), 1, 0);
    let before = pixels(&zero.pass(input.copy(), "before").0, &info("NV12", 96, 64));
    zero.element.set_property_from_str("backend", "cpu");
    assert!(zero.element.static_pad("src").unwrap().send_event(gst::event::Reconfigure::new()));
    let after = pixels(&zero.pass(input, "after").0, &info("NV12", 96, 64));
    assert!(before == after);
}

#[test]
fn drawing_leaves_the_other_holder_of_device_memory_alone() {
    if !device("drawing_leaves_the_other_holder_of_device_memory_alone") {
        return;
    }
    for format in ["NV12", "RGBA"] {
        let info = info(format, 96, 64);
        let mut zero = Zero::new("overlay=mean-color");
        let held = Arc::<Mutex<Vec<gst::Buffer>>>::default();
        let to = held.clone();
        zero.element.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            to.lock().unwrap().push(info.buffer().unwrap().clone());
            gst::PadProbeReturn::Ok
        });
        zero.harness.set_src_caps(caps(format, 96, 64));
        let mut drawn = Vec::new();
        for seed in 0..3 {
            let input = picture(&info, seed, 0);
            let before = pixels(&input, &info);
            let (output, _) = zero.pass(input, "shared");
            drawn.push(pixels(&output, &info));
            let held = held.lock().unwrap().pop().unwrap();
            assert!(pixels(&held, &info) == before, "{format}: the holder's pixels changed");
            assert!(drawn[seed as usize] != before, "{format}: nothing was drawn");
        }
        let mut alone = Zero::new("overlay=mean-color");
        alone.harness.set_src_caps(caps(format, 96, 64));
        for seed in 0..3 {
            let (output, _) = alone.pass(picture(&info, seed, 0), "alone");
            assert!(
                pixels(&output, &info) == drawn[seed as usize],
                "{format}: a copy is drawn on differently"
            );
        }
    }
}

/// The caps of an element's sink pad after a pipeline has negotiated.
fn negotiated(line: &str) -> Result<String, String> {
    let pipeline = launch(line);
    let element = pipeline.by_name("s").unwrap();
    let _ = pipeline.set_state(gst::State::Paused);
    let (result, _, _) = pipeline.state(PATIENCE);
    let caps = element.static_pad("sink").unwrap().current_caps();
    let error = error_on(&pipeline.bus().unwrap());
    pipeline.set_state(gst::State::Null).unwrap();
    match (result, caps) {
        (Ok(_), Some(caps)) => Ok(caps.features(0).unwrap().to_string()),
        _ => Err(error.unwrap_or_default()),
    }
}

#[test]
fn memory_is_negotiated_on_both_sides() {
    if !device("memory_is_negotiated_on_both_sides") {
        return;
    }
    let source = "videotestsrc num-buffers=2 ! video/x-raw,format=NV12,width=64,height=48";
    let system = negotiated(&format!("{source} ! superpixel name=s backend=cuda ! fakesink"));
    assert_eq!(system.as_deref(), Ok("memory:SystemMemory"));
    for backend in ["cuda", "auto"] {
        let device = negotiated(&format!(
            "{source} ! cudaupload ! {ON_DEVICE} ! superpixel name=s backend={backend} ! fakesink"
        ));
        assert_eq!(device.as_deref(), Ok("memory:CUDAMemory"), "{backend}");
        let wanted =
            format!("{source} ! cudaupload ! superpixel name=s backend={backend} ! {ON_DEVICE} ! fakesink");
        assert_eq!(negotiated(&wanted).as_deref(), Ok("memory:CUDAMemory"), "{backend}");
        let back = format!(
            "{source} ! cudaupload ! {ON_DEVICE} ! cudadownload ! superpixel name=s backend={backend} ! video/x-raw ! fakesink"
        );
        assert_eq!(negotiated(&back).as_deref(), Ok("memory:SystemMemory"), "{backend}");
    }
    // The CPU backend says so before anything runs.
    let line = format!("{source} ! cudaupload ! {ON_DEVICE} ! superpixel backend=cpu ! fakesink");
    assert!(gst::parse::launch(&line).is_err());
}

#[test]
fn memory_that_must_not_be_written_is_copied_first() {
    if !device("memory_that_must_not_be_written_is_copied_first") {
        return;
    }
    let info = info("NV12", 96, 64);
    let mut outputs = Vec::new();
    for read_only in [false, true] {
        let mut zero = Zero::new("overlay=labels");
        if read_only {
            // As decoders mark the surfaces that they go on reading.
            zero.element.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, |_, info| {
                let memory = info.buffer().unwrap().peek_memory(0).as_mut_ptr();
                // SAFETY: the memory is the buffer's; nobody else looks at its flags now.
                unsafe { (*memory).mini_object.flags |= gst::ffi::GST_MEMORY_FLAG_READONLY };
                gst::PadProbeReturn::Ok
            });
        }
        zero.harness.set_src_caps(caps("NV12", 96, 64));
        let (output, _) = zero.pass(picture(&info, 1, 0), "read only");
        outputs.push(pixels(&output, &info));
    }
    assert!(outputs[0] == outputs[1]);
}

#[test]
fn memory_may_change_in_the_stream() {
    if !device("memory_may_change_in_the_stream") {
        return;
    }
    let pipeline = launch(&format!(
        "videotestsrc num-buffers=40 pattern=ball ! video/x-raw,format=I420,width=96,height=64 ! cudaupload ! \
         capsfilter name=c caps={ON_DEVICE} ! superpixel name=s backend=cuda ! fakesink name=f signal-handoffs=true"
    ));
    let (filter, element) = (pipeline.by_name("c").unwrap(), pipeline.by_name("s").unwrap());
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let (to, pad) = (seen.clone(), element.static_pad("sink").unwrap());
    let frames = std::sync::atomic::AtomicUsize::new(0);
    pipeline.by_name("f").unwrap().connect("handoff", false, move |_| {
        let frame = frames.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if frame % 10 == 9 {
            let next = if frame % 20 == 9 { "video/x-raw" } else { ON_DEVICE };
            filter.set_property_from_str("caps", next);
        }
        let caps = pad.current_caps().unwrap();
        to.lock().unwrap().push(caps.features(0).unwrap().to_string());
        None
    });
    play_to_end(&pipeline).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 40);
    for memory in ["memory:CUDAMemory", "memory:SystemMemory"] {
        assert!(seen.iter().filter(|found| *found == memory).count() >= 8, "{seen:?}");
    }
}

#[test]
fn an_algorithm_of_the_cpu_takes_over_frames_in_device_memory() {
    if !device("an_algorithm_of_the_cpu_takes_over_frames_in_device_memory") {
        return;
    }
    /// Results of each frame: the algorithm, the labels and the drawn pixels.
    fn run(upload: &str, download: &str, backend: &str) -> Vec<(String, Vec<u16>, Vec<u8>)> {
        let pipeline = launch(&format!(
            "videotestsrc num-buffers=12 pattern=ball ! video/x-raw,format=NV12,width=96,height=64 ! {upload} \
             superpixel name=s backend={backend} temporal=false superpixel-size=8 overlay=mean-color ! {download} \
             fakesink name=f signal-handoffs=true"
        ));
        let element = pipeline.by_name("s").unwrap();
        let frames = std::sync::atomic::AtomicUsize::new(0);
        // Set before the sixth frame comes, by the thread that brings it.
        let set = element.clone();
        element.static_pad("sink").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            if frames.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 5 {
                set.set_property_from_str("algo", "snic");
            }
            gst::PadProbeReturn::Ok
        });
        // The metadata does not pass every element on the way to the host.
        let (metas, pixels) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let to = metas.clone();
        element.static_pad("src").unwrap().add_probe(gst::PadProbeType::BUFFER, move |_, probe| {
            let meta = SuperpixelMeta::from_buffer(probe.buffer().unwrap()).unwrap();
            to.lock().unwrap().push((meta.algo().to_string(), meta.labels().unwrap().as_slice().to_vec()));
            gst::PadProbeReturn::Ok
        });
        let to = pixels.clone();
        pipeline.by_name("f").unwrap().connect("handoff", false, move |values| {
            to.lock().unwrap().push(common::bytes(&values[1].get::<gst::Buffer>().unwrap()));
            None
        });
        play_to_end(&pipeline).unwrap();
        let (metas, pixels) = (metas.lock().unwrap(), pixels.lock().unwrap());
        assert_eq!(metas.len(), pixels.len());
        let both = |((algo, labels), pixels): (&(String, Vec<u16>), &Vec<u8>)| {
            (algo.clone(), labels.clone(), pixels.clone())
        };
        metas.iter().zip(pixels.iter()).map(both).collect()
    }
    let host = run("", "", "cpu");
    let on_device = run(&format!("cudaupload ! {ON_DEVICE} !"), "cudadownload ! video/x-raw !", "auto");
    let algos: Vec<_> = on_device.iter().map(|(algo, ..)| algo.as_str()).collect();
    assert_eq!(algos, [&["slic"; 5][..], &["snic"; 7]].concat());
    assert!(host == on_device, "the CPU gives something else for frames in device memory");
}

#[test]
fn metadata_follows_a_frame_to_the_host() {
    if !device("metadata_follows_a_frame_to_the_host") {
        return;
    }
    let pipeline = launch(&format!(
        "videotestsrc num-buffers=4 ! video/x-raw,format=NV12,width=64,height=48 ! cudaupload ! {ON_DEVICE} ! \
         superpixel backend=cuda ! cudadownload ! video/x-raw ! superpixellabels ! fakesink"
    ));
    play_to_end(&pipeline).unwrap();
}

/// Objects need tables alone, wherever frames and results are.
#[test]
fn objects_are_those_of_system_memory() {
    if !device("objects_are_those_of_system_memory") {
        return;
    }
    let run = |upload: &str, backend: &str| {
        let line = format!(
            "videotestsrc num-buffers=4 pattern=smpte ! video/x-raw,format=NV12,width=96,height=64,framerate=25/1 ! {upload} \
             superpixel backend={backend} overlay=none superpixel-size=8 neighbors=true ! \
             superpixelobjects name=o objects=8,2,32,40 ! appsink name=out sync=false"
        );
        let samples = common::samples(&line);
        let objects = |sample: &gst::Sample| {
            SuperpixelMeta::from_buffer(sample.buffer().unwrap()).unwrap().objects().unwrap()
        };
        samples.iter().map(objects).collect::<Vec<_>>()
    };
    let host = run("", "cpu");
    assert!(host.iter().all(|objects| objects.contains(&1)) && host.len() == 4);
    assert!(run(&format!("cudaupload ! {ON_DEVICE} !"), "cuda") == host);
}

#[test]
fn starts_and_stops_leave_no_device_memory_behind() {
    if !device("starts_and_stops_leave_no_device_memory_behind") {
        return;
    }
    let pipeline = launch(&format!(
        "videotestsrc num-buffers=4 ! video/x-raw,format=NV12,width=64,height=48 ! cudaupload ! {ON_DEVICE} ! \
         superpixel backend=cuda neighbors=true overlay=mean-color ! cudadownload ! fakesink"
    ));
    let current = || cudarc::driver::result::ctx::get_current().unwrap();
    let before = current();
    for _ in 0..10 {
        play_to_end(&pipeline).unwrap();
        // One that has ended would stay current on this thread, which stopped the element.
        assert_eq!(current(), before);
    }
}
