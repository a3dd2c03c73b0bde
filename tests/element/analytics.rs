// SPDX-License-Identifier: MPL-2.0
//! Standard analytics metadata, read back through GStreamer's own library, from 1.26 on, or the stand-in of `tests/readers/analytics.c`.
//!
//! Where there is neither, each test says that it was skipped; with `SUPERPIXEL_REQUIRE_ANALYTICS=1` that is a failure.

use crate::common;
use std::ffi::{CStr, c_float, c_int};
use std::ptr;

use crate::common::{caps, harness, info, picture, samples, superpixel};
use gst::glib;
use gst::glib::translate::{IntoGlibPtr, from_glib, from_glib_full};
use gst::prelude::*;
use gstsuperpixel::meta::SuperpixelMeta;

#[repr(C)]
#[derive(Clone, Copy)]
struct Mtd {
    id: u32,
    meta: *mut u8,
}

/// One entry of the metadata.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry {
    Segmentation { mask: gst::Buffer, place: (i32, i32, u32, u32), ids: Vec<u32> },
    Object { kind: String, place: (i32, i32, i32, i32) },
    Tracking { id: u64, first: u64, last: u64, lost: bool },
    Unknown,
}

/// Functions that readers use.
pub struct Reader(libloading::Library);

type Buffer = *mut gst::ffi::GstBuffer;
type Get = unsafe extern "C" fn(*mut u8, u32, *mut Mtd) -> c_int;

impl Reader {
    pub fn open() -> Option<Self> {
        common::init();
        // SAFETY: a library of GStreamer or the stand-in, which registers one metadata; nothing is called here.
        let library = unsafe { libloading::Library::new("libgstanalytics-1.0.so.0") };
        // SAFETY: as above.
        let reads = |library: &libloading::Library| unsafe {
            library.get::<Get>(c"gst_analytics_relation_meta_get_segmentation_mtd").is_ok()
        };
        match library {
            Ok(library) if reads(&library) => Some(Self(library)),
            _ => {
                let required = std::env::var("SUPERPIXEL_REQUIRE_ANALYTICS").is_ok_and(|value| value == "1");
                assert!(!required, "GStreamer's analytics library of 1.26 or newer is missing");
                println!("SKIPPED: there is no analytics library of GStreamer 1.26 or newer");
                None
            }
        }
    }

    /// # Safety
    /// `F` is the function's signature.
    unsafe fn find<F: Copy>(&self, name: &CStr) -> F {
        // SAFETY: the caller gives the function's signature.
        *unsafe { self.0.get::<F>(name) }.unwrap()
    }

    fn meta(&self, buffer: &gst::BufferRef) -> *mut u8 {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let get: unsafe extern "C" fn(Buffer) -> *mut u8 =
                self.find(c"gst_buffer_get_analytics_relation_meta");
            get(buffer.as_mut_ptr())
        }
    }

    /// All entries of a buffer in their order.
    pub fn entries(&self, buffer: &gst::BufferRef) -> Vec<Entry> {
        let meta = self.meta(buffer);
        if meta.is_null() {
            return Vec::new();
        }
        // SAFETY: the buffer is valid and borrowed; the metadata and the entries live as long as it.
        unsafe {
            let length: unsafe extern "C" fn(*mut u8) -> usize =
                self.find(c"gst_analytics_relation_get_length");
            (0..length(meta) as u32).map(|id| self.entry(meta, id)).collect()
        }
    }

    /// # Safety
    /// `meta` belongs to a buffer that is borrowed.
    unsafe fn entry(&self, meta: *mut u8, id: u32) -> Entry {
        let mut mtd = Mtd { id: 0, meta: ptr::null_mut() };
        // SAFETY: the caller's promise; the entry is written before it is read.
        let mut is = |name: &CStr| unsafe { self.find::<Get>(name)(meta, id, &mut mtd) != 0 };
        if is(c"gst_analytics_relation_meta_get_segmentation_mtd") {
            // SAFETY: an entry of that kind, of living metadata.
            unsafe { self.segmentation(&mtd) }
        } else if is(c"gst_analytics_relation_meta_get_od_mtd") {
            // SAFETY: an entry of that kind, of living metadata.
            unsafe { self.object(&mtd) }
        } else if is(c"gst_analytics_relation_meta_get_tracking_mtd") {
            // SAFETY: an entry of that kind, of living metadata.
            unsafe { self.tracking(&mtd) }
        } else {
            Entry::Unknown
        }
    }

    /// # Safety
    /// An entry of this kind, of living metadata.
    unsafe fn segmentation(&self, mtd: &Mtd) -> Entry {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let mask: unsafe extern "C" fn(&Mtd, &mut c_int, &mut c_int, &mut u32, &mut u32) -> Buffer =
                self.find(c"gst_analytics_segmentation_mtd_get_mask");
            let count: unsafe extern "C" fn(&Mtd) -> usize =
                self.find(c"gst_analytics_segmentation_mtd_get_region_count");
            let id: unsafe extern "C" fn(&Mtd, usize) -> u32 =
                self.find(c"gst_analytics_segmentation_mtd_get_region_id");
            let (mut x, mut y, mut w, mut h) = (-1, -1, 0, 0);
            let mask = from_glib_full(mask(mtd, &mut x, &mut y, &mut w, &mut h));
            Entry::Segmentation {
                mask,
                place: (x, y, w, h),
                ids: (0..count(mtd)).map(|i| id(mtd, i)).collect(),
            }
        }
    }

    /// # Safety
    /// An entry of this kind, of living metadata.
    unsafe fn object(&self, mtd: &Mtd) -> Entry {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let kind: unsafe extern "C" fn(&Mtd) -> glib::ffi::GQuark =
                self.find(c"gst_analytics_od_mtd_get_obj_type");
            let place: unsafe extern "C" fn(
                &Mtd,
                &mut c_int,
                &mut c_int,
                &mut c_int,
                &mut c_int,
                &mut c_float,
            ) -> c_int = self.find(c"gst_analytics_od_mtd_get_location");
            let (mut x, mut y, mut w, mut h, mut confidence) = (-1, -1, 0, 0, 0.0);
            assert_eq!(place(mtd, &mut x, &mut y, &mut w, &mut h, &mut confidence), 1);
            assert_eq!(confidence, 1.0);
            let kind: glib::Quark = from_glib(kind(mtd));
            Entry::Object { kind: kind.as_str().to_string(), place: (x, y, w, h) }
        }
    }

    /// # Safety
    /// An entry of this kind, of living metadata.
    unsafe fn tracking(&self, mtd: &Mtd) -> Entry {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let get: unsafe extern "C" fn(&Mtd, &mut u64, &mut u64, &mut u64, &mut c_int) -> c_int =
                self.find(c"gst_analytics_tracking_mtd_get_info");
            let (mut id, mut first, mut last, mut lost) = (0, 0, 0, 1);
            assert_eq!(get(mtd, &mut id, &mut first, &mut last, &mut lost), 1);
            Entry::Tracking { id, first, last, lost: lost != 0 }
        }
    }

    /// How one entry relates to another.
    pub fn relation(&self, buffer: &gst::BufferRef, one: u32, other: u32) -> c_int {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let get: unsafe extern "C" fn(*mut u8, u32, u32) -> c_int =
                self.find(c"gst_analytics_relation_meta_get_relation");
            get(self.meta(buffer), one, other)
        }
    }

    /// Adds an entry as an earlier analyzer would.
    fn add_a_fish(&self, buffer: &mut gst::BufferRef) {
        self.add_fish(buffer, [1, 2, 3, 4], None);
    }

    /// Adds the mask of a segmentation, which lies at x, y, width and height of the frame.
    pub fn add_segmentation(
        &self,
        buffer: &mut gst::BufferRef,
        mask: gst::Buffer,
        [x, y]: [c_int; 2],
        [width, height]: [u32; 2],
    ) {
        // SAFETY: signatures as in GStreamer's headers; the metadata lives while its buffer is borrowed, and the mask's reference is
        // handed over.
        unsafe {
            let add: unsafe extern "C" fn(Buffer, *const [usize; 2]) -> *mut u8 =
                self.find(c"gst_buffer_add_analytics_relation_meta_full");
            let segmentation: unsafe extern "C" fn(
                *mut u8,
                Buffer,
                c_int,
                usize,
                *const u32,
                c_int,
                c_int,
                u32,
                u32,
                *mut Mtd,
            ) -> c_int = self.find(c"gst_analytics_relation_meta_add_segmentation_mtd");
            let mut mtd = Mtd { id: 0, meta: ptr::null_mut() };
            let found = self.meta(buffer);
            let meta = if found.is_null() { add(buffer.as_mut_ptr(), &[2, 128]) } else { found };
            let (ids, mask) = ([1], mask.into_glib_ptr());
            let is_added =
                segmentation(meta, mask, 1, ids.len(), ids.as_ptr(), x, y, width, height, &mut mtd);
            assert_eq!(is_added, 1);
        }
    }

    /// Adds a fish in a box, x, y, width and height, with its name by a tracker.
    pub fn add_fish(&self, buffer: &mut gst::BufferRef, [x, y, w, h]: [c_int; 4], track: Option<u64>) {
        // SAFETY: signatures as in GStreamer's headers; metadata and entries live while their buffer is borrowed.
        unsafe {
            let add: unsafe extern "C" fn(Buffer, *const [usize; 2]) -> *mut u8 =
                self.find(c"gst_buffer_add_analytics_relation_meta_full");
            let object: unsafe extern "C" fn(
                *mut u8,
                glib::ffi::GQuark,
                c_int,
                c_int,
                c_int,
                c_int,
                c_float,
                *mut Mtd,
            ) -> c_int = self.find(c"gst_analytics_relation_meta_add_od_mtd");
            let mut mtd = Mtd { id: 0, meta: ptr::null_mut() };
            let fish = glib::ffi::g_quark_from_static_string(c"fish".as_ptr());
            let found = self.meta(buffer);
            let meta = if found.is_null() { add(buffer.as_mut_ptr(), &[2, 128]) } else { found };
            assert_eq!(object(meta, fish, x, y, w, h, 1.0, &mut mtd), 1);
            let Some(track) = track else { return };
            let add_tracking: unsafe extern "C" fn(*mut u8, u64, u64, *mut Mtd) -> c_int =
                self.find(c"gst_analytics_relation_meta_add_tracking_mtd");
            let relate: unsafe extern "C" fn(*mut u8, c_int, u32, u32) -> c_int =
                self.find(c"gst_analytics_relation_meta_set_relation");
            let fish = mtd.id;
            assert_eq!(add_tracking(meta, track, 0, &mut mtd), 1);
            assert_eq!(relate(meta, RELATES_TO, fish, mtd.id), 1);
        }
    }
}

const IS_PART_OF: c_int = 2;
const CONTAINS: c_int = 4;
const RELATES_TO: c_int = 8;

/// Frames of a picture at one place and another in their buffers, 40 ms apart, as an element passes them on.
fn frames(element: gst::Element, count: u32) -> Vec<gst::Buffer> {
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 96, 64));
    (0..count)
        .map(|i| {
            let mut frame = picture(&info("RGB", 96, 64), 1, i as usize);
            frame.get_mut().unwrap().set_pts(gst::ClockTime::from_mseconds(40 * u64::from(i)));
            h.push_and_pull(frame).unwrap()
        })
        .collect()
}

fn segmentation(entries: &[Entry]) -> (&gst::Buffer, &[u32]) {
    let found: Vec<_> = entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Segmentation { mask, place, ids } => Some((mask, place, ids)),
            _ => None,
        })
        .collect();
    let [(mask, place, ids)] = found[..] else { panic!("{} segmentations", found.len()) };
    let video = mask.meta::<gst_video::VideoMeta>().expect("video meta");
    assert_eq!(*place, (0, 0, video.width(), video.height()));
    (mask, ids)
}

#[test]
fn few_regions_are_a_mask_of_8_bits_in_which_0_is_no_region() {
    let Some(reader) = Reader::open() else { return };
    for buffer in frames(superpixel(), 2) {
        let meta = SuperpixelMeta::from_buffer(&buffer).expect("our own metadata");
        assert!((2..=255).contains(&meta.regions()));
        let entries = reader.entries(&buffer);
        let (mask, ids) = segmentation(&entries);
        assert_eq!(ids, (1..=meta.regions()).collect::<Vec<_>>());
        let video = mask.meta::<gst_video::VideoMeta>().unwrap();
        assert_eq!(video.format(), gst_video::VideoFormat::Gray8);
        let (stride, map, labels) =
            (video.stride()[0] as usize, mask.map_readable().unwrap(), meta.labels().unwrap());
        for (y, row) in labels.rows().enumerate() {
            let wanted: Vec<u8> = row.iter().map(|&label| label as u8 + 1).collect();
            assert_eq!(map[y * stride..][..row.len()], wanted);
        }
    }
}

#[test]
fn many_regions_are_the_label_map_itself() {
    let Some(reader) = Reader::open() else { return };
    let element = superpixel();
    element.set_property("superpixel-size", 4u32);
    for buffer in frames(element, 2) {
        let meta = SuperpixelMeta::from_buffer(&buffer).expect("our own metadata");
        assert!(meta.regions() > 255);
        let entries = reader.entries(&buffer);
        let (mask, ids) = segmentation(&entries);
        assert_eq!(ids, (0..meta.regions()).collect::<Vec<_>>());
        assert_eq!(mask.as_ptr(), meta.label_buffer().as_ptr(), "one plane, attached twice");
    }
}

#[test]
fn every_region_is_an_object_with_an_identity() {
    let Some(reader) = Reader::open() else { return };
    let element = superpixel();
    element.set_property_from_str("analytics", "objects");
    element.set_property("temporal", true);
    let mut first_seen = std::collections::HashMap::new();
    for buffer in frames(element, 5) {
        let meta = SuperpixelMeta::from_buffer(&buffer).expect("our own metadata");
        let (entries, table) = (reader.entries(&buffer), meta.table().unwrap());
        segmentation(&entries[..1]);
        assert_eq!(entries.len(), 1 + 2 * table.len());
        let now = buffer.pts().unwrap().nseconds();
        for (i, region) in table.iter().enumerate() {
            let (object, identity) = (1 + 2 * i as u32, 2 + 2 * i as u32);
            let [x0, y0, x1, y1] = region.bounds.map(i32::from);
            let place = (x0, y0, x1 - x0, y1 - y0);
            assert_eq!(entries[object as usize], Entry::Object { kind: "superpixel".into(), place });
            let first = *first_seen.entry(region.track_id).or_insert(now);
            let id = u64::from(region.track_id);
            assert_eq!(entries[identity as usize], Entry::Tracking { id, first, last: now, lost: false });
            let relations = [
                (0, object, CONTAINS),
                (object, 0, IS_PART_OF),
                (object, identity, RELATES_TO),
                (identity, object, RELATES_TO),
            ];
            for (one, other, wanted) in relations {
                assert_eq!(reader.relation(&buffer, one, other), wanted);
            }
        }
    }
    assert!(first_seen.values().any(|&first| first == 0), "some region lasted");
}

#[test]
fn objects_without_a_table_or_of_too_many_regions_are_left_out() {
    let Some(reader) = Reader::open() else { return };
    for (name, value) in [("region-table", "false"), ("superpixel-size", "4")] {
        let element = superpixel();
        element.set_property_from_str("analytics", "objects");
        element.set_property_from_str(name, value);
        let (mut h, _bus) = harness(&element);
        h.set_src_caps(caps("RGB", 160, 120));
        let buffer = h.push_and_pull(picture(&info("RGB", 160, 120), 1, 0)).unwrap();
        assert_eq!(reader.entries(&buffer).len(), 1, "{name}");
    }
}

#[test]
fn what_an_earlier_analyzer_attached_stays() {
    let Some(reader) = Reader::open() else { return };
    let element = superpixel();
    let (mut h, _bus) = harness(&element);
    h.set_src_caps(caps("RGB", 61, 35));
    let mut input = picture(&info("RGB", 61, 35), 1, 0);
    reader.add_a_fish(input.get_mut().unwrap());
    let entries = reader.entries(&h.push_and_pull(input).unwrap());
    assert_eq!(entries[0], Entry::Object { kind: "fish".into(), place: (1, 2, 3, 4) });
    segmentation(&entries[1..]);
}

#[test]
fn nothing_is_attached_that_is_not_wanted() {
    let Some(reader) = Reader::open() else { return };
    for (name, value) in [("labels", "false"), ("analytics", "none")] {
        let element = superpixel();
        element.set_property_from_str(name, value);
        assert!(reader.meta(&frames(element, 1)[0]).is_null(), "{name}={value}");
    }
}

#[test]
fn it_passes_converters_and_queues() {
    let Some(reader) = Reader::open() else { return };
    let line = "videotestsrc num-buffers=3 ! video/x-raw,format=I420,width=64,height=48 ! \
                superpixel overlay=none threads=1 ! queue ! videoconvert ! video/x-raw,format=RGBA ! appsink name=out";
    for sample in samples(line) {
        let buffer = sample.buffer().unwrap();
        let meta = SuperpixelMeta::from_buffer(buffer).expect("our own metadata");
        assert_eq!(segmentation(&reader.entries(buffer)).1.len(), meta.regions() as usize);
    }
}

/// Frames of a size whose label map does not fit into the socket.
#[test]
fn frames_pass_a_unix_socket_without_the_metadata() {
    common::init();
    if gst::version() < (1, 24, 0, 0) {
        println!("SKIPPED: unixfdsink comes with GStreamer 1.24");
        return;
    }
    let path = std::env::temp_dir().join(format!("superpixel-{}", std::process::id()));
    let socket = path.to_str().unwrap();
    let sender = common::launch(
        "videotestsrc num-buffers=6 ! video/x-raw,format=RGB,width=640,height=480,framerate=25/1 ! \
         superpixel backend=cpu ! unixfdsink name=s wait-for-connection=true sync=false",
    );
    sender.by_name("s").unwrap().set_property("socket-path", socket);
    sender.set_state(gst::State::Playing).unwrap();
    let receiver = common::launch("unixfdsrc name=s ! appsink name=out sync=false");
    receiver.by_name("s").unwrap().set_property("socket-path", socket);
    let sink: gst_app::AppSink = receiver.by_name("out").unwrap().downcast().unwrap();
    receiver.set_state(gst::State::Playing).unwrap();
    let mut frames = 0;
    while let Some(sample) = sink.try_pull_sample(common::PATIENCE) {
        assert!(SuperpixelMeta::from_buffer(sample.buffer().unwrap()).is_none());
        frames += 1;
    }
    assert_eq!(frames, 6);
    receiver.set_state(gst::State::Null).unwrap();
    sender.set_state(gst::State::Null).unwrap();
    let _ = std::fs::remove_file(path);
}
