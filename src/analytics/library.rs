// SPDX-License-Identifier: MPL-2.0
//! GStreamer's analytics library, opened at run time: one build serves GStreamer without it and, from 1.26 on, with it.
//!
//! Only functions that 1.26 has are looked up, and only fields that are public in it are read.

use std::ffi::{c_float, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::sync::LazyLock;

use gst::glib;
use gst::glib::translate::{IntoGlib, IntoGlibPtr, from_glib, from_glib_full};

use crate::run_time::{self, symbol};

const LIBRARY: &str = "libgstanalytics-1.0.so.0";
/// `GST_SEGMENTATION_TYPE_INSTANCE`: every region is an object of its own.
const INSTANCE: c_int = 1;

/// `GstAnalyticsRelationMeta`, used as an opaque pointer.
#[repr(C)]
struct RelationMeta {
    _private: [u8; 0],
}

type Meta = *mut RelationMeta;

/// `GstAnalyticsMtd`: one entry of the metadata.
#[repr(C)]
struct Mtd {
    id: u32,
    meta: Meta,
}

/// `GstAnalyticsRelationMetaInitParams`.
#[repr(C)]
struct InitParams {
    entries: usize,
    bytes: usize,
}

/// Relation between two entries; values of `GstAnalyticsRelTypes`.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Relation {
    /// The first entry is part of the second.
    IsPartOf = 1 << 1,
    /// The first entry contains the second.
    Contains = 1 << 2,
    /// The first entry belongs with the second.
    RelatesTo = 1 << 3,
}

/// A rectangle in px.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rectangle {
    pub x: u32,
    pub y: u32,
    pub width: u32,
    pub height: u32,
}

/// The functions of the library.
pub(super) struct Library {
    get: unsafe extern "C" fn(*mut gst::ffi::GstBuffer) -> Meta,
    add: unsafe extern "C" fn(*mut gst::ffi::GstBuffer, *const InitParams) -> Meta,
    add_segmentation: unsafe extern "C" fn(
        Meta,
        *mut gst::ffi::GstBuffer,
        c_int,
        usize,
        *mut u32,
        c_int,
        c_int,
        u32,
        u32,
        *mut Mtd,
    ) -> glib::ffi::gboolean,
    add_object: unsafe extern "C" fn(
        Meta,
        glib::ffi::GQuark,
        c_int,
        c_int,
        c_int,
        c_int,
        c_float,
        *mut Mtd,
    ) -> glib::ffi::gboolean,
    add_tracking: unsafe extern "C" fn(Meta, u64, gst::ffi::GstClockTime, *mut Mtd) -> glib::ffi::gboolean,
    set_last_seen: unsafe extern "C" fn(*mut Mtd, gst::ffi::GstClockTime) -> glib::ffi::gboolean,
    relate: unsafe extern "C" fn(Meta, c_int, u32, u32) -> glib::ffi::gboolean,
    length: unsafe extern "C" fn(Meta) -> usize,
    get_object: unsafe extern "C" fn(Meta, u32, *mut Mtd) -> glib::ffi::gboolean,
    get_tracking: unsafe extern "C" fn(Meta, u32, *mut Mtd) -> glib::ffi::gboolean,
    get_segmentation: unsafe extern "C" fn(Meta, u32, *mut Mtd) -> glib::ffi::gboolean,
    mask: unsafe extern "C" fn(
        *const Mtd,
        *mut c_int,
        *mut c_int,
        *mut u32,
        *mut u32,
    ) -> *mut gst::ffi::GstBuffer,
    kind: unsafe extern "C" fn(*const Mtd) -> glib::ffi::GQuark,
    location: unsafe extern "C" fn(
        *const Mtd,
        *mut c_int,
        *mut c_int,
        *mut c_int,
        *mut c_int,
        *mut c_float,
    ) -> glib::ffi::gboolean,
    tracking: unsafe extern "C" fn(
        *const Mtd,
        *mut u64,
        *mut gst::ffi::GstClockTime,
        *mut gst::ffi::GstClockTime,
        *mut glib::ffi::gboolean,
    ) -> glib::ffi::gboolean,
    relation: unsafe extern "C" fn(Meta, u32, u32) -> c_int,
}

impl Library {
    fn open() -> Result<Self, String> {
        let library = run_time::open(LIBRARY)?;
        // SAFETY: the names have had these signatures since 1.26, before which the first is not there; the library stays loaded,
        // see below.
        let opened = unsafe {
            Self {
                add_segmentation: symbol(&library, c"gst_analytics_relation_meta_add_segmentation_mtd")?,
                get: symbol(&library, c"gst_buffer_get_analytics_relation_meta")?,
                add: symbol(&library, c"gst_buffer_add_analytics_relation_meta_full")?,
                add_object: symbol(&library, c"gst_analytics_relation_meta_add_od_mtd")?,
                add_tracking: symbol(&library, c"gst_analytics_relation_meta_add_tracking_mtd")?,
                set_last_seen: symbol(&library, c"gst_analytics_tracking_mtd_update_last_seen")?,
                relate: symbol(&library, c"gst_analytics_relation_meta_set_relation")?,
                length: symbol(&library, c"gst_analytics_relation_get_length")?,
                get_object: symbol(&library, c"gst_analytics_relation_meta_get_od_mtd")?,
                get_tracking: symbol(&library, c"gst_analytics_relation_meta_get_tracking_mtd")?,
                get_segmentation: symbol(&library, c"gst_analytics_relation_meta_get_segmentation_mtd")?,
                mask: symbol(&library, c"gst_analytics_segmentation_mtd_get_mask")?,
                kind: symbol(&library, c"gst_analytics_od_mtd_get_obj_type")?,
                location: symbol(&library, c"gst_analytics_od_mtd_get_location")?,
                tracking: symbol(&library, c"gst_analytics_tracking_mtd_get_info")?,
                relation: symbol(&library, c"gst_analytics_relation_meta_get_relation")?,
            }
        };
        // Types that it has registered with GObject cannot be unloaded.
        std::mem::forget(library);
        Ok(opened)
    }

    /// The library, opened once, or the reason why it cannot be.
    pub(super) fn get() -> Result<&'static Self, &'static str> {
        static LIBRARY: LazyLock<Result<Library, String>> = LazyLock::new(Library::open);
        LIBRARY.as_ref().map_err(String::as_str)
    }
}

/// The analytics metadata of a buffer, for adding entries.
pub(super) struct Relations<'a> {
    library: &'static Library,
    meta: NonNull<RelationMeta>,
    buffer: PhantomData<&'a mut gst::BufferRef>,
}

impl<'a> Relations<'a> {
    /// Returns the metadata of earlier analyzers, or adds metadata with memory for `entries`.
    pub(super) fn of(
        library: &'static Library,
        buffer: &'a mut gst::BufferRef,
        entries: usize,
    ) -> Option<Self> {
        // Entries take a few dozen bytes; the metadata grows if they take more.
        let room = InitParams { entries, bytes: 64 * entries };
        // SAFETY: the buffer is valid and writable, `room` is read during the call.
        let meta = unsafe {
            let found = (library.get)(buffer.as_mut_ptr());
            if found.is_null() { (library.add)(buffer.as_mut_ptr(), &room) } else { found }
        };
        Some(Self { library, meta: NonNull::new(meta)?, buffer: PhantomData })
    }

    fn add(&mut self, add: impl FnOnce(&Library, Meta, *mut Mtd) -> glib::ffi::gboolean) -> Option<Mtd> {
        let mut entry = Mtd { id: 0, meta: ptr::null_mut() };
        let added = add(self.library, self.meta.as_ptr(), &mut entry) != glib::ffi::GFALSE;
        added.then_some(entry)
    }

    /// Adds a mask with a video meta and the values `ids`. Returns the index of the entry.
    pub(super) fn add_segmentation(
        &mut self,
        mask: gst::Buffer,
        ids: &mut [u32],
        place: Rectangle,
    ) -> Option<u32> {
        let Rectangle { x, y, width, height } = place;
        // SAFETY: the metadata lives while its buffer is borrowed; the mask passes its reference on; the list has the announced
        // length and is copied; the entry is written.
        let added = self.add(|library, meta, entry| unsafe {
            (library.add_segmentation)(
                meta,
                mask.into_glib_ptr(),
                INSTANCE,
                ids.len(),
                ids.as_mut_ptr(),
                x as c_int,
                y as c_int,
                width,
                height,
                entry,
            )
        })?;
        Some(added.id)
    }

    /// Adds an object of a kind with its bounding box. Returns the index of the entry.
    pub(super) fn add_object(&mut self, kind: glib::Quark, place: Rectangle, confidence: f32) -> Option<u32> {
        let [x, y, width, height] = [place.x, place.y, place.width, place.height].map(|n| n as c_int);
        // SAFETY: the metadata lives while its buffer is borrowed; the entry is written.
        let added = self.add(|library, meta, entry| unsafe {
            (library.add_object)(meta, kind.into_glib(), x, y, width, height, confidence, entry)
        })?;
        Some(added.id)
    }

    /// Adds a track id. Returns the index of the entry.
    pub(super) fn add_tracking(
        &mut self,
        identity: u32,
        first: Option<gst::ClockTime>,
        last: Option<gst::ClockTime>,
    ) -> Option<u32> {
        // SAFETY: the metadata lives while its buffer is borrowed; the entry is written.
        let mut added = self.add(|library, meta, entry| unsafe {
            (library.add_tracking)(meta, identity.into(), first.into_glib(), entry)
        })?;
        // SAFETY: the entry is of this metadata and has just been written.
        let seen: bool = unsafe { from_glib((self.library.set_last_seen)(&mut added, last.into_glib())) };
        seen.then_some(added.id)
    }

    /// Relates two entries.
    pub(super) fn relate(&mut self, one: u32, relation: Relation, other: u32) -> Option<()> {
        // SAFETY: the metadata lives while its buffer is borrowed; entries that are not there are refused.
        let done: bool =
            unsafe { from_glib((self.library.relate)(self.meta.as_ptr(), relation as c_int, one, other)) };
        done.then_some(())
    }
}

/// An object that an earlier analyzer has found. Its values are as they stand there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub kind: glib::ffi::GQuark,
    /// x, y, width, height.
    pub place: [i32; 4],
    pub confidence: f32,
}

/// The analytics metadata of a buffer, for reading.
pub(super) struct Found<'a> {
    library: &'static Library,
    meta: NonNull<RelationMeta>,
    buffer: PhantomData<&'a gst::BufferRef>,
}

impl<'a> Found<'a> {
    /// The metadata of earlier analyzers, if there is any.
    pub(super) fn of(library: &'static Library, buffer: &'a gst::BufferRef) -> Option<Self> {
        // SAFETY: the buffer is valid; it is only read.
        let meta = unsafe { (library.get)(buffer.as_mut_ptr()) };
        Some(Self { library, meta: NonNull::new(meta)?, buffer: PhantomData })
    }

    /// Number of entries.
    pub(super) fn count(&self) -> u32 {
        // SAFETY: the metadata lives while its buffer is borrowed.
        unsafe { (self.library.length)(self.meta.as_ptr()) }.try_into().unwrap_or(u32::MAX)
    }

    /// An entry of one kind, by its index; `None` for entries of other kinds.
    fn entry(
        &self,
        get: unsafe extern "C" fn(Meta, u32, *mut Mtd) -> glib::ffi::gboolean,
        index: u32,
    ) -> Option<Mtd> {
        let mut entry = Mtd { id: 0, meta: ptr::null_mut() };
        // SAFETY: the metadata lives while its buffer is borrowed; the entry is written where it is of that kind.
        let is_there: bool = unsafe { from_glib(get(self.meta.as_ptr(), index, &mut entry)) };
        is_there.then_some(entry)
    }

    /// The object of an entry; `None` for entries of other kinds.
    pub(super) fn object(&self, index: u32) -> Option<Entry> {
        let entry = self.entry(self.library.get_object, index)?;
        let ([mut x, mut y, mut width, mut height], mut confidence) = ([0; 4], 0.0);
        // SAFETY: the entry is an object of this metadata, which lives while its buffer is borrowed; all values are written.
        unsafe {
            let read =
                (self.library.location)(&entry, &mut x, &mut y, &mut width, &mut height, &mut confidence);
            let kind = (self.library.kind)(&entry);
            let place = [x, y, width, height];
            (read != glib::ffi::GFALSE).then_some(Entry { kind, place, confidence })
        }
    }

    /// The track id of an entry; `None` for entries of other kinds, and for a track that is lost.
    pub(super) fn track(&self, index: u32) -> Option<u64> {
        let entry = self.entry(self.library.get_tracking, index)?;
        let (mut id, mut first, mut last, mut lost) = (0, 0, 0, glib::ffi::GFALSE);
        // SAFETY: the entry is a track of this metadata, which lives while its buffer is borrowed; all values are written.
        let read: bool =
            unsafe { from_glib((self.library.tracking)(&entry, &mut id, &mut first, &mut last, &mut lost)) };
        (read && lost == glib::ffi::GFALSE).then_some(id)
    }

    /// The mask of an entry, and where it lies in the frame: x, y, width, height; `None` for entries of other kinds. Its buffer is as the
    /// other element has made it.
    pub(super) fn segmentation(&self, index: u32) -> Option<(gst::Buffer, [i64; 4])> {
        let entry = self.entry(self.library.get_segmentation, index)?;
        let (mut x, mut y, mut width, mut height) = (0, 0, 0, 0);
        // SAFETY: the entry is a segmentation of this metadata, which lives while its buffer is borrowed; all values are written, and the
        // reference that comes back is ours.
        let mask: Option<gst::Buffer> = unsafe {
            let mask = (self.library.mask)(&entry, &mut x, &mut y, &mut width, &mut height);
            (!mask.is_null()).then(|| from_glib_full(mask))
        };
        Some((mask?, [x.into(), y.into(), width.into(), height.into()]))
    }

    /// Returns true if one entry has a relation to another. Both are below [`count`](Self::count).
    pub(super) fn is_related(&self, one: u32, other: u32) -> bool {
        // SAFETY: the metadata lives while its buffer is borrowed.
        unsafe { (self.library.relation)(self.meta.as_ptr(), one, other) != 0 }
    }
}
