// SPDX-License-Identifier: MPL-2.0
//! Buffers in device memory that do not hold what they say: planes on the host, in another context, overlapping or outside.
//!
//! Without a device or GStreamer's CUDA elements each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes
//! that a failure.

use crate::common;
use crate::common::{caps, error_on, harness, info, picture, pixels, superpixel, warning_on};
use crate::device::or_skip;
use gst::prelude::*;
use gstsuperpixel::cuda::Cuda;
use gstsuperpixel::meta::SuperpixelMeta;

const ON_DEVICE: &str = "video/x-raw(memory:CUDAMemory)";
const WIDTH: u32 = 96;
const HEIGHT: u32 = 64;

/// Returns true if frames can stay on a device here.
fn device(test: &str) -> bool {
    common::init();
    let found = Cuda::new(-1).map_err(|e| e.to_string()).and_then(|_| {
        let there = |name: &&str| gst::ElementFactory::find(name).is_some();
        ["cudaupload", "cudadownload"].iter().all(there).then_some(()).ok_or("no plugin nvcodec".into())
    });
    or_skip(test, found).is_some()
}

/// An upload with a CUDA context of its own.
struct Upload {
    harness: gst_check::Harness,
    _bus: common::TestBus,
}

impl Upload {
    fn new(format: &str) -> Self {
        let bin =
            gst::parse::bin_from_description(&format!("cudaupload ! capsfilter caps={ON_DEVICE}"), true);
        let (mut harness, _bus) = harness(bin.unwrap().upcast_ref());
        harness.set_src_caps(caps(format, WIDTH, HEIGHT));
        Self { harness, _bus }
    }

    fn upload(&mut self, format: &str, seed: u32) -> gst::Buffer {
        self.harness.push_and_pull(picture(&info(format, WIDTH, HEIGHT), seed, 0)).unwrap()
    }

    /// Device caps as the upload negotiated them.
    fn caps(&self) -> gst::Caps {
        self.harness.sinkpad().unwrap().current_caps().unwrap()
    }
}

/// `superpixel` in device memory, with frames of its own from an upload.
struct OnDevice {
    upload: Upload,
    harness: gst_check::Harness,
    bus: common::TestBus,
    format: &'static str,
    overlay: String,
}

impl OnDevice {
    fn new(format: &'static str, overlay: &str, depth: u32) -> Self {
        let mut upload = Upload::new(format);
        // Caps come with the first frame.
        upload.upload(format, 0);
        let (harness, bus) = Self::element(&upload, overlay, depth);
        Self { upload, harness, bus, format, overlay: overlay.into() }
    }

    fn element(upload: &Upload, overlay: &str, depth: u32) -> (gst_check::Harness, common::TestBus) {
        let element = superpixel();
        element.set_property_from_str("backend", "cuda");
        element.set_property_from_str("overlay", overlay);
        element.set_property("async-depth", depth);
        let (mut harness, bus) = harness(&element);
        harness.set_src_caps(upload.caps());
        (harness, bus)
    }

    fn good(&mut self) -> gst::Buffer {
        self.upload.upload(self.format, 1)
    }

    /// Expects that an element of its own drops `buffer` with a warning that has `words` in it, and that the next good frame
    /// works. Of its own, since warnings are a second apart.
    fn refuses(&mut self, buffer: gst::Buffer, words: &str, case: &str) {
        (self.harness, self.bus) = Self::element(&self.upload, &self.overlay, 0);
        self.harness.push(buffer).unwrap_or_else(|e| panic!("{case}: {e}: {:?}", error_on(&self.bus)));
        assert!(self.harness.try_pull().is_none(), "{case}: the bad buffer went on");
        let text = warning_on(&self.bus).unwrap_or_else(|| panic!("{case}: no warning"));
        assert!(text.contains(words), "{case}: {text}");
        let good = self.good();
        let output = self.harness.push_and_pull(good);
        let output = output.unwrap_or_else(|e| panic!("{case}: {e}: {:?}", error_on(&self.bus)));
        assert!(SuperpixelMeta::from_buffer(&output).is_some(), "{case}");
    }
}

/// One memory a plane, with a video meta that says so; as `(memory, bytes before the plane, stride)`.
fn of_planes(format: &str, planes: &[(gst::Memory, usize, i32)]) -> gst::Buffer {
    let mut buffer = gst::Buffer::new();
    let writable = buffer.get_mut().unwrap();
    let (mut offsets, mut strides) = ([0; 4], [0; 4]);
    let mut end = 0;
    for (i, (memory, skip, stride)) in planes.iter().enumerate() {
        (offsets[i], strides[i]) = (end + skip, *stride);
        end += memory.size();
        writable.append_memory(memory.clone());
    }
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), info(format, WIDTH, HEIGHT).format());
    let (offsets, strides) = (&offsets[..planes.len()], &strides[..planes.len()]);
    gst_video::VideoMeta::add_full(writable, flags, format, WIDTH, HEIGHT, offsets, strides).unwrap();
    buffer
}

/// Offsets and strides of the planes of an uploaded frame.
fn layout(buffer: &gst::BufferRef) -> (Vec<usize>, Vec<i32>) {
    let meta = buffer.meta::<gst_video::VideoMeta>().expect("an upload describes its frames");
    (meta.offset().to_vec(), meta.stride().to_vec())
}

#[test]
fn planes_on_the_host_or_in_another_context_are_refused() {
    if !device("planes_on_the_host_or_in_another_context_are_refused") {
        return;
    }
    let mut other = Upload::new("NV12");
    let foreign = other.upload("NV12", 2);
    for overlay in ["none", "boundaries"] {
        let mut on = OnDevice::new("NV12", overlay, 0);
        let good = on.good();
        let (offsets, strides) = layout(&good);
        let (own, away) = (good.memory(0).unwrap(), foreign.memory(0).unwrap());
        let host = gst::Memory::with_size(own.size());
        let luma = (own.clone(), offsets[0], strides[0]);
        for (case, second, words) in [
            ("a host address in plane 1", (host.clone(), offsets[1], strides[1]), "not in CUDA memory"),
            ("another context in plane 1", (away.clone(), offsets[1], strides[1]), "several CUDA contexts"),
        ] {
            on.refuses(of_planes("NV12", &[luma.clone(), second]), words, case);
        }
        let chroma = (own.clone(), offsets[1], strides[1]);
        on.refuses(
            of_planes("NV12", &[(host.clone(), 0, 96), chroma]),
            "not in CUDA memory",
            "a host address in plane 0",
        );
        on.refuses(picture(&info("NV12", WIDTH, HEIGHT), 1, 0), "not in CUDA memory", "a host frame");
        on.refuses(gst::Buffer::new(), "0 bytes", "no memory");
    }
}

#[test]
fn both_planes_may_be_in_memories_of_their_own() {
    if !device("both_planes_may_be_in_memories_of_their_own") {
        return;
    }
    let mut on = OnDevice::new("NV12", "none", 0);
    let good = on.good();
    let (offsets, strides) = layout(&good);
    let labels = |buffer: &gst::BufferRef| SuperpixelMeta::from_buffer(buffer).unwrap().labels().unwrap();
    let planes = [0, 1].map(|i| (good.memory(0).unwrap(), offsets[i], strides[i]));
    let apart = on.harness.push_and_pull(of_planes("NV12", &planes)).unwrap();
    let together = on.harness.push_and_pull(good).unwrap();
    assert!(labels(&apart) == labels(&together));
}

#[test]
fn planes_outside_of_device_memory_or_over_each_other_are_refused() {
    if !device("planes_outside_of_device_memory_or_over_each_other_are_refused") {
        return;
    }
    for depth in [0, 3] {
        for overlay in ["none", "mean-color"] {
            let mut on = OnDevice::new("NV12", overlay, depth);
            let good = on.good();
            let ((offsets, strides), memory) = (layout(&good), good.memory(0).unwrap());
            let one = |offsets: [usize; 2], strides: [i32; 2]| {
                let mut buffer = of_planes("NV12", &[(memory.clone(), 0, strides[0])]);
                let meta = buffer.get_mut().unwrap();
                // SAFETY: the buffer is writable and the meta belongs to it alone; its fields are plain numbers.
                unsafe {
                    let meta = gst_video::ffi::gst_buffer_get_video_meta(meta.as_mut_ptr());
                    (*meta).n_planes = 2;
                    (*meta).offset = [offsets[0], offsets[1], 0, 0];
                    (*meta).stride = [strides[0], strides[1], 0, 0];
                }
                buffer
            };
            let (o, s) = ([offsets[0], offsets[1]], [strides[0], strides[1]]);
            let end = memory.size();
            let mut bad = vec![
                ("plane 1 ends outside", one([o[0], end - 100], s), "ends at byte"),
                ("plane 1 starts outside", one([o[0], end + 100], s), "ends at byte"),
                ("a huge stride", one(o, [i32::MAX, s[1]]), "ends at byte"),
                // 0x0400_0000 times 64 rows is 0 in 32 bits.
                ("a wrapping stride", one(o, [0x0400_0000, s[1]]), "ends at byte"),
                ("a negative stride", one(o, [-s[0], s[1]]), "stride"),
            ];
            if overlay != "none" {
                bad.push(("planes over each other", one([o[0], o[0] + 128], s), "overlap"));
            }
            if depth == 0 {
                for (case, buffer, words) in bad {
                    on.refuses(buffer, words, case);
                }
                continue;
            }
            // With frames in flight, bad ones in between change neither order nor pixels of the others.
            let mut pushed = 0;
            let mut outputs = Vec::new();
            for (_, buffer, _) in bad {
                for _ in 0..2 {
                    let mut good = on.good();
                    good.make_mut().set_pts(gst::ClockTime::from_mseconds(40) * pushed);
                    pushed += 1;
                    on.harness.push(good).unwrap();
                    outputs.extend(on.harness.try_pull());
                }
                on.harness.push(buffer).unwrap();
                outputs.extend(on.harness.try_pull());
            }
            on.harness.push_event(gst::event::Eos::new());
            outputs.extend(std::iter::from_fn(|| on.harness.try_pull()));
            assert_eq!(outputs.len() as u64, pushed, "{overlay}");
            for (i, output) in (0..).zip(&outputs) {
                assert_eq!(output.pts(), Some(gst::ClockTime::from_mseconds(40) * i), "{overlay}");
                let labels = SuperpixelMeta::from_buffer(output).unwrap().labels().unwrap();
                assert!(labels == SuperpixelMeta::from_buffer(&outputs[0]).unwrap().labels().unwrap());
            }
            assert_eq!(error_on(&on.bus), None);
        }
    }
}

#[test]
fn host_frames_that_lie_are_dropped_on_the_device_as_on_the_cpu() {
    if !device("host_frames_that_lie_are_dropped_on_the_device_as_on_the_cpu") {
        return;
    }
    let frame = info("I420", WIDTH, HEIGHT);
    for overlay in ["none", "boundaries"] {
        let element = superpixel();
        element.set_property_from_str("backend", "cuda");
        element.set_property_from_str("overlay", overlay);
        let (mut h, bus) = harness(&element);
        h.set_src_caps(caps("I420", WIDTH, HEIGHT));
        for planes in [1, 3, 4] {
            let mut buffer = picture(&frame, 1, 16);
            // SAFETY: as above.
            unsafe {
                let meta = gst_video::ffi::gst_buffer_get_video_meta(buffer.get_mut().unwrap().as_mut_ptr());
                (*meta).n_planes = planes;
                if planes == 3 {
                    (*meta).offset[2] = usize::MAX - 7;
                }
            }
            h.push(buffer).unwrap();
            assert!(h.try_pull().is_none() && error_on(&bus).is_none(), "{planes} planes, {overlay}");
            let good = h.push_and_pull(picture(&frame, 1, 16)).expect("the element works on");
            assert_eq!(pixels(&good, &frame) == pixels(&picture(&frame, 1, 16), &frame), overlay == "none");
        }
    }
}

/// Foreign latencies near the end of their range, which frames in flight add to.
#[test]
fn latencies_saturate() {
    if !device("latencies_saturate") {
        return;
    }
    let mut on = OnDevice::new("NV12", "none", 3);
    let good = on.good();
    on.harness.push(good).unwrap();
    for most in [gst::ClockTime::MAX, gst::ClockTime::from_nseconds(u64::MAX - 100)] {
        on.harness.set_upstream_latency(most);
        assert!(on.harness.query_latency().is_some_and(|found| found >= most), "{most}");
    }
}
