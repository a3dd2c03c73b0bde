// SPDX-License-Identifier: MPL-2.0
//! Buffers, video metas and pools of other elements that do not hold what they say: nothing is read or written outside,
//! one bad buffer is dropped, and the next good one works.

use crate::common;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{caps, error_on, harness, info, launch, picture, play_to_end, superpixel, warning_on};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

const WIDTH: u32 = 64;
const HEIGHT: u32 = 48;

/// Fields of a video meta; by default those of a correct I420 frame.
struct Said {
    format: &'static str,
    size: (u32, u32),
    planes: u32,
    offsets: [usize; 3],
    strides: [i32; 3],
}

impl Default for Said {
    fn default() -> Self {
        let info = info("I420", WIDTH, HEIGHT);
        let (offsets, strides) = (info.offset(), info.stride());
        Self {
            format: "I420",
            size: (WIDTH, HEIGHT),
            planes: 3,
            offsets: [offsets[0], offsets[1], offsets[2]],
            strides: [strides[0], strides[1], strides[2]],
        }
    }
}

/// Adds a video meta that says anything, which the safe binding refuses.
fn describe(buffer: &mut gst::BufferRef, said: &Said, id: i32) {
    let format = info(said.format, said.size.0, said.size.1).format();
    // SAFETY: the buffer is writable and the new meta belongs to it alone; its fields are plain numbers.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
            buffer.as_mut_ptr(),
            0,
            gst::glib::translate::IntoGlib::into_glib(format),
            said.size.0,
            said.size.1,
            3,
            &[said.offsets[0], said.offsets[1], said.offsets[2], 0],
            &[said.strides[0], said.strides[1], said.strides[2], 0],
        );
        (*meta).n_planes = said.planes;
        (*meta).id = id;
    }
}

/// An I420 picture in one memory of `size` bytes with what is `said` of it.
fn described(size: usize, said: Said) -> gst::Buffer {
    let mut buffer = picture(&info("I420", WIDTH, HEIGHT), 1, 0);
    describe(buffer.get_mut().unwrap(), &said, 0);
    buffer.get_mut().unwrap().set_size(size);
    buffer
}

/// Buffers of which none holds an I420 frame of 64x48, each with a word of what is to be said of it.
fn bad_buffers() -> Vec<(&'static str, gst::Buffer, &'static str)> {
    let whole = info("I420", WIDTH, HEIGHT).size();
    let said = Said::default;
    let split = |at: usize| {
        let mut buffer = gst::Buffer::new();
        for size in [at, whole - at] {
            buffer.get_mut().unwrap().append_memory(gst::Memory::with_size(size));
        }
        describe(buffer.get_mut().unwrap(), &said(), 0);
        buffer
    };
    vec![
        ("empty", gst::Buffer::new(), "0 bytes"),
        ("ten bytes", gst::Buffer::with_size(10).unwrap(), "10 bytes"),
        ("a byte short", gst::Buffer::with_size(whole - 1).unwrap(), "incomplete"),
        ("meta, but a byte short", described(whole - 1, said()), "ends at byte"),
        ("smaller", described(whole, Said { size: (32, 48), ..said() }), "32x48"),
        ("another format", described(whole, Said { format: "RGB", planes: 1, ..said() }), "RGB"),
        ("short stride", described(whole, Said { strides: [20; 3], ..said() }), "stride of 20"),
        ("negative stride", described(whole, Said { strides: [-64; 3], ..said() }), "stride of -64"),
        ("huge stride", described(whole, Said { strides: [i32::MAX; 3], ..said() }), "ends at byte"),
        // 0x5555_5556 times 48 rows is 32 in 32 bits.
        ("wrapping stride", described(whole, Said { strides: [0x5555_5556; 3], ..said() }), "ends at byte"),
        ("offset outside", described(whole, Said { offsets: [0, 3072, whole], ..said() }), "plane 2"),
        ("wrapping offset", described(whole, Said { offsets: [usize::MAX - 64, 0, 0], ..said() }), "plane 0"),
        ("no planes", described(whole, Said { planes: 0, ..said() }), "0 planes"),
        ("one plane", described(whole, Said { planes: 1, ..said() }), "1 planes"),
        ("four planes", described(whole, Said { planes: 4, ..said() }), "4 planes"),
        ("planes beyond all arrays", described(whole, Said { planes: u32::MAX, ..said() }), "planes"),
        ("memories end within plane 0", split(1000), "plane 0"),
        ("memories end within plane 2", split(whole - 5), "plane 2"),
    ]
}

#[test]
fn a_bad_buffer_is_dropped_with_a_warning_and_the_next_good_one_works() {
    for overlay in ["none", "boundaries"] {
        for (case, buffer, words) in bad_buffers() {
            let element = superpixel();
            element.set_property_from_str("backend", "cpu");
            element.set_property_from_str("overlay", overlay);
            let (mut h, bus) = harness(&element);
            h.set_src_caps(caps("I420", WIDTH, HEIGHT));
            assert_eq!(h.push(buffer), Ok(gst::FlowSuccess::Ok), "{case}, {overlay}");
            assert!(h.try_pull().is_none(), "{case}, {overlay}: the bad buffer went on");
            let text = warning_on(&bus).unwrap_or_else(|| panic!("{case}, {overlay}: no warning"));
            assert!(text.contains("buffer") && text.contains(words), "{case}: {text}");
            let good =
                h.push_and_pull(picture(&info("I420", WIDTH, HEIGHT), 1, 0)).expect("the element works on");
            assert!(SuperpixelMeta::from_buffer(&good).is_some(), "{case}");
            assert_eq!(error_on(&bus), None, "{case}");
            assert_eq!(element.property::<gst::Structure>("stats").get::<u64>("dropped"), Ok(1), "{case}");
        }
    }
}

/// GStreamer maps by the video meta of lowest id, wherever it stands in the list.
#[test]
fn of_several_metas_the_one_that_gstreamer_maps_counts() {
    let whole = info("I420", WIDTH, HEIGHT).size();
    for lie_first in [false, true] {
        for lie_counts in [false, true] {
            let mut buffer = picture(&info("I420", WIDTH, HEIGHT), 1, 0);
            let lie = Said { planes: 1, offsets: [0, whole, whole], ..Said::default() };
            let (lie_id, truth_id) = if lie_counts { (3, 4) } else { (4, 3) };
            let metas = [(&lie, lie_id), (&Said::default(), truth_id)];
            let writable = buffer.get_mut().unwrap();
            // The list begins with the meta that was added last.
            let order = if lie_first { [1, 0] } else { [0, 1] };
            order.iter().for_each(|i| describe(writable, metas[*i].0, metas[*i].1));
            let element = superpixel();
            element.set_property_from_str("backend", "cpu");
            let (mut h, bus) = harness(&element);
            h.set_src_caps(caps("I420", WIDTH, HEIGHT));
            h.push(buffer).unwrap();
            assert_eq!(h.try_pull().is_none(), lie_counts, "first: {lie_first}");
            assert_eq!(warning_on(&bus).is_some(), lie_counts, "first: {lie_first}");
        }
    }
}

#[test]
fn overlapping_planes_are_drawn_on_by_nobody() {
    let overlapping = || {
        let said = Said { offsets: [0, 100, 100], ..Said::default() };
        described(info("I420", WIDTH, HEIGHT).size(), said)
    };
    let element = superpixel();
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    h.push(overlapping()).unwrap();
    assert!(h.try_pull().is_none());
    assert!(warning_on(&bus).unwrap().contains("overlap"));
    element.set_property_from_str("overlay", "none");
    assert!(h.push_and_pull(overlapping()).is_ok(), "reading is harmless");
}

#[test]
fn ten_bad_buffers_in_a_row_are_an_error_that_names_the_cause() {
    let (mut h, bus) = harness(&superpixel());
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    for count in 1..10 {
        assert_eq!(h.push(gst::Buffer::with_size(10).unwrap()), Ok(gst::FlowSuccess::Ok), "{count}");
    }
    h.push_and_pull(picture(&info("I420", WIDTH, HEIGHT), 1, 0)).expect("a good buffer ends the row");
    for count in 1..10 {
        assert_eq!(h.push(gst::Buffer::with_size(10).unwrap()), Ok(gst::FlowSuccess::Ok), "{count}");
    }
    assert_eq!(error_on(&bus), None);
    assert_eq!(h.push(gst::Buffer::with_size(10).unwrap()), Err(gst::FlowError::Error));
    let text = error_on(&bus).expect("an element error");
    assert!(text.contains("10 bytes") && text.contains("in a row"), "{text}");
    assert_eq!(error_on(&bus), None, "one error");
    let warnings = std::iter::from_fn(|| warning_on(&bus)).count();
    assert!(warnings <= 3, "{warnings} warnings within a second or two");
}

/// A common mistake of users: frames of odd width without padding.
#[test]
fn a_stream_without_any_frame_ends_with_an_error_that_gives_sizes_and_advice() {
    let (mut h, bus) = harness(&superpixel());
    h.set_src_caps(caps("GRAY8", 725, 540));
    h.push(gst::Buffer::with_size(725 * 540).unwrap()).unwrap();
    assert_eq!(error_on(&bus), None);
    h.push_event(gst::event::Eos::new());
    let text = error_on(&bus).expect("an element error at the end");
    for part in ["391500", "393120", "728", "pad them", "GstVideoMeta"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The advice works.
    let mut buffer = gst::Buffer::from_mut_slice(vec![90; 725 * 540]);
    let (flags, format) = (gst_video::VideoFrameFlags::empty(), gst_video::VideoFormat::Gray8);
    gst_video::VideoMeta::add_full(buffer.get_mut().unwrap(), flags, format, 725, 540, &[0], &[725]).unwrap();
    let (mut h, bus) = harness(&superpixel());
    h.set_src_caps(caps("GRAY8", 725, 540));
    h.push_and_pull(buffer).expect("a described frame");
    h.push_event(gst::event::Eos::new());
    assert_eq!(error_on(&bus), None);
}

#[test]
fn one_short_frame_of_a_live_stream_is_left_out() {
    let element = superpixel();
    element.set_property("temporal", true);
    let (mut h, bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    let mut frames = Vec::new();
    for i in 0..20u32 {
        let mut buffer = picture(&info("I420", WIDTH, HEIGHT), 1, 0);
        let writable = buffer.get_mut().unwrap();
        writable.set_pts(gst::ClockTime::from_mseconds(40) * u64::from(i));
        if i == 7 {
            writable.set_size(2000);
        }
        h.push(buffer).unwrap();
        frames.extend(h.try_pull());
    }
    assert_eq!(frames.len(), 19);
    let ids = |i: usize| -> Vec<u32> {
        let table = SuperpixelMeta::from_buffer(&frames[i]).unwrap().table().unwrap();
        table.iter().map(|region| region.track_id).collect()
    };
    assert_eq!(ids(6), ids(7), "identities go on over the frame that is missing");
    let message = bus.pop_filtered(&[gst::MessageType::Qos]).expect("a QoS message");
    let gst::MessageView::Qos(qos) = message.view() else { unreachable!() };
    assert_eq!(qos.timestamp(), Some(gst::ClockTime::from_mseconds(280)));
    assert_eq!(qos.stats().1.value(), 1, "dropped");
}

#[test]
fn times_at_the_end_of_their_range_are_no_trouble() {
    let element = superpixel();
    element.set_property("temporal", true);
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("I420", WIDTH, HEIGHT));
    let (none, most) = (gst::ClockTime::NONE, Some(gst::ClockTime::MAX));
    for (pts, duration) in
        [(most, most), (most, none), (none, most), (most, most), (Some(gst::ClockTime::ZERO), most)]
    {
        let mut buffer = picture(&info("I420", WIDTH, HEIGHT), 1, 0);
        let writable = buffer.get_mut().unwrap();
        writable.set_pts(pts);
        writable.set_duration(duration);
        writable.set_flags(gst::BufferFlags::DISCONT);
        h.push_and_pull(buffer).expect("a frame");
    }
}

/// Frames of a clip played at `rate`, after a seek to 0 to 800 ms: the identities of each.
fn identities(file: &std::path::Path, rates: &[f64]) -> Vec<Vec<Vec<u32>>> {
    let pipeline = launch(
        "filesrc name=f ! decodebin ! superpixel backend=cpu overlay=none ! appsink name=out sync=false",
    );
    pipeline.by_name("f").unwrap().set_property("location", file.to_str().unwrap());
    let sink: gst_app::AppSink = pipeline.by_name("out").unwrap().downcast().unwrap();
    pipeline.set_state(gst::State::Paused).unwrap();
    pipeline.state(common::PATIENCE).0.unwrap();
    let mut all = Vec::new();
    for rate in rates {
        let (from, to) = (gst::ClockTime::ZERO, gst::ClockTime::from_mseconds(800));
        let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
        pipeline.seek(*rate, flags, gst::SeekType::Set, from, gst::SeekType::Set, to).unwrap();
        pipeline.state(common::PATIENCE).0.unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        let mut frames = Vec::new();
        while let Some(sample) = sink.try_pull_sample(common::PATIENCE) {
            let table = SuperpixelMeta::from_buffer(sample.buffer().unwrap()).unwrap().table().unwrap();
            frames.push(table.iter().map(|region| region.track_id).collect());
        }
        all.push(frames);
        pipeline.set_state(gst::State::Paused).unwrap();
    }
    pipeline.set_state(gst::State::Null).unwrap();
    all
}

/// Share of the identities that a frame has from the one before it, least over the frames.
fn kept(frames: &[Vec<u32>]) -> f64 {
    let share = |pair: &[Vec<u32>]| {
        pair[1].iter().filter(|id| pair[0].contains(id)).count() as f64 / pair[1].len() as f64
    };
    frames.windows(2).map(share).fold(1.0, f64::min)
}

#[test]
fn identities_last_in_reverse_too_and_a_flushing_seek_starts_anew() {
    let file = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("reverse-{}.avi", std::process::id()));
    let writer = launch(
        "videotestsrc num-buffers=20 pattern=ball ! video/x-raw,format=I420,width=160,height=120,framerate=25/1 ! jpegenc ! \
         avimux ! filesink name=f",
    );
    writer.by_name("f").unwrap().set_property("location", file.to_str().unwrap());
    play_to_end(&writer).unwrap();
    let clip = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("media/bigbuckbunny.mp4");
    // The ball covers superpixels and leaves cells in which new ones begin, 5 or 6 of 70 in a frame. Frames of the H.264 clip come in
    // groups, each flagged; its pictures change more.
    for (file, least) in [(&file, 0.85), (&clip, 0.8)] {
        let parts = identities(file, &[1.0, -1.0, -1.0]);
        for frames in &parts {
            assert!(frames.len() >= 15, "{}: {} frames", file.display(), frames.len());
            assert!(kept(frames) >= least, "{}: {}", file.display(), kept(frames));
        }
        for pair in parts.windows(2) {
            let before = pair[0].iter().flatten().max().unwrap();
            assert!(
                pair[1][0].iter().all(|id| id > before),
                "{}: an old identity after a seek",
                file.display()
            );
        }
    }
    std::fs::remove_file(file).unwrap();
}

mod pool {
    //! A pool whose buffers are not what it says of them.

    use std::sync::Mutex;

    use gst::glib;
    use gst::subclass::prelude::*;

    type Make = Box<dyn Fn() -> gst::Buffer + Send>;

    #[derive(Default)]
    pub struct Imp(Mutex<Option<Make>>);

    #[glib::object_subclass]
    impl ObjectSubclass for Imp {
        const NAME: &'static str = "LyingPool";
        type Type = Pool;
        type ParentType = gst::BufferPool;
    }

    impl ObjectImpl for Imp {}
    impl GstObjectImpl for Imp {}
    impl BufferPoolImpl for Imp {
        fn alloc_buffer(
            &self,
            _: Option<&gst::BufferPoolAcquireParams>,
        ) -> Result<gst::Buffer, gst::FlowError> {
            self.0.lock().unwrap().as_ref().map(|make| make()).ok_or(gst::FlowError::Error)
        }
    }

    glib::wrapper! {
        pub struct Pool(ObjectSubclass<Imp>) @extends gst::BufferPool, gst::Object;
    }

    impl Pool {
        pub fn new(make: impl Fn() -> gst::Buffer + Send + 'static) -> Self {
            let pool: Self = glib::Object::new();
            *pool.imp().0.lock().unwrap() = Some(Box::new(make));
            pool
        }
    }
}

/// Pushes segmented frames of 61x35 through `superpixellabels` into buffers that `make` makes, and says what came of it.
fn into_pool(
    make: impl Fn() -> gst::Buffer + Send + 'static,
) -> (Result<Option<gst::Buffer>, gst::FlowError>, Option<String>) {
    let (mut source, _bus) = harness(&superpixel());
    source.set_src_caps(caps("RGB", 61, 35));
    let input = source.push_and_pull(picture(&info("RGB", 61, 35), 1, 0)).unwrap();
    let element = gst::ElementFactory::make("superpixellabels").build().unwrap();
    let (mut h, bus) = harness(&element);
    let pool = pool::Pool::new(make);
    element.static_pad("src").unwrap().add_probe(gst::PadProbeType::QUERY_DOWNSTREAM, move |_, probe| {
        match probe.query_mut().map(|query| query.view_mut()) {
            Some(gst::QueryViewMut::Allocation(query)) => {
                query.add_allocation_meta::<gst_video::VideoMeta>(None);
                query.add_allocation_pool(Some(&pool), info("GRAY16_LE", 61, 35).size() as u32, 1, 0);
                gst::PadProbeReturn::Handled
            }
            _ => gst::PadProbeReturn::Ok,
        }
    });
    h.set_src_caps(caps("RGB", 61, 35));
    let result = h.push(input).map(|_| h.try_pull());
    (result, error_on(&bus))
}

/// Bytes behind the part of a memory that a buffer shows.
const CANARY: u8 = 0x5a;

/// Bytes of which a buffer shows the first `shown`; says at the end whether others were written.
struct Arena {
    bytes: Vec<u8>,
    shown: usize,
    spoiled: Arc<AtomicBool>,
}

impl AsMut<[u8]> for Arena {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if self.bytes[self.shown..].iter().any(|byte| *byte != CANARY) {
            self.spoiled.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_pool_that_promises_more_than_it_holds_is_an_error_and_nothing_is_written_outside() {
    let info = info("GRAY16_LE", 61, 35);
    let (whole, stride) = (info.size(), info.stride()[0]);
    for (case, size, offset, stride, planes) in [
        ("fewer rows", whole / 2, 0, stride, 1),
        ("a byte short", whole - 3, 0, stride, 1),
        ("larger stride", whole, 0, 2 * stride, 1),
        ("short stride", whole, 0, 100, 1),
        ("negative stride", whole, 0, -stride, 1),
        // Times 35 rows this is 60 in 32 bits.
        ("wrapping stride", whole, 0, 0x4ea4_ea50, 1),
        ("offset", whole, 8, stride, 1),
        ("offset outside", whole, 1 << 20, stride, 1),
        ("wrapping offset", whole, usize::MAX - 60, stride, 1),
        ("no planes", whole, 0, stride, 0),
        ("many planes", whole, 0, stride, 77),
    ] {
        let spoiled = Arc::new(AtomicBool::new(false));
        let seen = spoiled.clone();
        let (result, error) = into_pool(move || {
            let arena = Arena { bytes: vec![CANARY; 1 << 16], shown: size, spoiled: seen.clone() };
            let mut memory = gst::Memory::from_mut_slice(arena);
            memory.get_mut().unwrap().resize(..size);
            let mut buffer = gst::Buffer::new();
            let writable = buffer.get_mut().unwrap();
            // SAFETY: as in `describe`; one more reference of the memory is kept to look at it afterwards.
            unsafe {
                let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
                    writable.as_mut_ptr(),
                    0,
                    gst_video::ffi::GST_VIDEO_FORMAT_GRAY16_LE,
                    61,
                    35,
                    1,
                    &[offset, 0, 0, 0],
                    &[stride, 0, 0, 0],
                );
                (*meta).n_planes = planes;
            }
            writable.append_memory(memory);
            buffer
        });
        assert_eq!(result.as_ref().map(|_| ()), Err(&gst::FlowError::Error), "{case}");
        let text = error.unwrap_or_else(|| panic!("{case}: no element error"));
        assert!(text.contains("pool") && !text.contains("anicked"), "{case}: {text}");
        assert!(!spoiled.load(Ordering::Relaxed), "{case}: bytes outside of the memory were written");
    }
}

/// Old contents of downstream's memory must not leave between the rows.
#[test]
fn all_bytes_of_a_label_frame_are_written() {
    let info = info("GRAY16_LE", 61, 35);
    let (result, error) = into_pool(move || gst::Buffer::from_mut_slice(vec![CANARY; info.size()]));
    assert_eq!(error, None);
    let bytes = common::bytes(&result.unwrap().expect("a label frame"));
    for (y, row) in bytes.chunks(124).enumerate() {
        assert_eq!(row[122..], [0, 0], "padding of row {y}");
        // Labels of so small a map are below 256.
        assert!(row[..122].chunks(2).all(|label| label[1] == 0), "row {y} was not written");
    }
}
