// SPDX-License-Identifier: MPL-2.0
//! Regions as GStreamer's standard analytics metadata, from 1.26 on, for readers that know nothing of this plugin.
//!
//! The label map is an instance segmentation. Its mask is GRAY8 with values 1 to n if these fit, and 0 means no region,
//! as drawing elements expect; else it is the label map itself, GRAY16_LE with values 0 to n-1. Regions are listed in
//! label order. On request every region is an object with its bounding box, and a tracking entry with its track id,
//! first and last seen. Objects that are followed are described in the same way; objects and segmentations of earlier analyzers are
//! read.

mod detections;
mod library;
mod mask;

use std::collections::HashMap;

use gst::glib;

use crate::image::Geometry;
use crate::regions::Region;
pub(crate) use detections::{Detected, last_segmentation, of_objects, of_rois};
use library::{Library, Rectangle, Relation, Relations};

/// Extent of the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The mask.
    Segmentation,
    /// The mask, and an object and a tracking entry for every region.
    Objects,
}

/// Most regions that are described one by one: the library keeps a square table of relations.
pub(crate) const MOST_OBJECTS: u32 = 1000;

/// The reason why no metadata can be attached, if there is one.
pub(crate) fn unavailable() -> Option<&'static str> {
    Library::get().err()
}

/// Results of a frame that the metadata describes.
pub(crate) struct FrameRegions<'a> {
    /// GRAY16_LE with a video meta.
    pub labels: &'a gst::Buffer,
    pub geometry: Geometry,
    /// Number of labels.
    pub regions: u32,
    /// [`Region`]s, if they were asked for.
    pub table: Option<&'a gst::Buffer>,
}

/// Attaches the metadata to the frames of a stream.
#[derive(Default)]
pub(crate) struct Writer {
    /// Time at which the last frame's regions were first seen, by track id.
    seen: HashMap<u32, Option<gst::ClockTime>>,
    next_seen: HashMap<u32, Option<gst::ClockTime>>,
    ids: Vec<u32>,
}

impl Writer {
    /// Describes a frame. Returns true if every region is described that should be. Attaches no metadata if the library
    /// is missing.
    ///
    /// # Errors
    ///
    /// If there is no memory, the label map or the table cannot be read, or the library refuses.
    pub(crate) fn attach(
        &mut self,
        buffer: &mut gst::BufferRef,
        found: &FrameRegions<'_>,
        detail: Detail,
    ) -> Result<bool, glib::BoolError> {
        let is_complete = |described| detail == Detail::Segmentation || described;
        let Ok(library) = Library::get() else { return Ok(is_complete(false)) };
        let refused = || glib::bool_error!("GStreamer's analytics library refuses an entry");
        let table = match (detail, found.table) {
            (Detail::Objects, Some(table)) if found.regions <= MOST_OBJECTS => Some(table.map_readable()?),
            _ => None,
        };
        let (mask, first) = mask::of(found.labels, found.geometry, found.regions)?;
        let now = buffer.pts();
        let objects = if table.is_some() { found.regions as usize } else { 0 };
        let mut relations = Relations::of(library, buffer, 1 + 2 * objects).ok_or_else(refused)?;
        self.ids.clear();
        self.ids.extend(first..first + found.regions);
        let Geometry { width, height } = found.geometry;
        let whole = Rectangle { x: 0, y: 0, width, height };
        let mask = relations.add_segmentation(mask, &mut self.ids, whole).ok_or_else(refused)?;
        let Some(table) = table else { return Ok(is_complete(false)) };
        self.next_seen.clear();
        for record in table.chunks_exact(size_of::<Region>()) {
            let region: Region = bytemuck::pod_read_unaligned(record);
            let first_seen = self.seen.get(&region.track_id).copied().unwrap_or(now);
            self.next_seen.insert(region.track_id, first_seen);
            describe(&mut relations, mask, &region, first_seen, now).ok_or_else(refused)?;
        }
        std::mem::swap(&mut self.seen, &mut self.next_seen);
        Ok(true)
    }
}

/// Adds a region as an object and a tracking entry, both related to the mask and to each other.
fn describe(
    relations: &mut Relations<'_>,
    mask: u32,
    region: &Region,
    first_seen: Option<gst::ClockTime>,
    now: Option<gst::ClockTime>,
) -> Option<()> {
    let [x0, y0, x1, y1] = region.bounds.map(u32::from);
    let place = Rectangle { x: x0, y: y0, width: x1 - x0, height: y1 - y0 };
    let kind = glib::Quark::from_static_str(glib::gstr!("superpixel"));
    add_tracked(relations, mask, (kind, place, 1.0), (region.track_id, first_seen, now))
}

/// Adds an object, its kind, place and confidence, and a tracking entry, its id, when it was first and last seen.
fn add_tracked(
    relations: &mut Relations<'_>,
    mask: u32,
    (kind, place, confidence): (glib::Quark, Rectangle, f32),
    (id, first_seen, last_seen): (u32, Option<gst::ClockTime>, Option<gst::ClockTime>),
) -> Option<()> {
    let object = relations.add_object(kind, place, confidence)?;
    let identity = relations.add_tracking(id, first_seen, last_seen)?;
    relations.relate(mask, Relation::Contains, object)?;
    relations.relate(object, Relation::IsPartOf, mask)?;
    relations.relate(object, Relation::RelatesTo, identity)?;
    relations.relate(identity, Relation::RelatesTo, object)
}

/// An object that was followed to this frame.
pub(crate) struct FollowedObject {
    pub id: u32,
    pub kind: glib::Quark,
    /// x0, y0, x1, y1 in px, the latter two exclusive.
    pub bounds: [u16; 4],
    pub confidence: f32,
    pub first_seen: Option<gst::ClockTime>,
}

/// Describes objects of a frame that are seen, at most 255: a mask in which the i-th has value i + 1, and for each an object and a
/// tracking entry. `values` has the value of each label. Attaches nothing if the library is missing.
///
/// # Errors
///
/// If the library refuses.
pub(crate) fn attach_objects(
    buffer: &mut gst::BufferRef,
    labels: &gst::Buffer,
    geometry: Geometry,
    values: &[u8],
    objects: &[FollowedObject],
) -> Result<(), glib::BoolError> {
    let Ok(library) = Library::get() else { return Ok(()) };
    let refused = || glib::bool_error!("GStreamer's analytics library refuses an entry");
    let mask = mask::of_values(labels, geometry, values)?;
    let now = buffer.pts();
    let mut relations = Relations::of(library, buffer, 1 + 2 * objects.len()).ok_or_else(refused)?;
    let mut ids: Vec<u32> = (1..=objects.len() as u32).collect();
    let Geometry { width, height } = geometry;
    let whole = Rectangle { x: 0, y: 0, width, height };
    let mask = relations.add_segmentation(mask, &mut ids, whole).ok_or_else(refused)?;
    for object in objects {
        let [x0, y0, x1, y1] = object.bounds.map(u32::from);
        let place = Rectangle { x: x0, y: y0, width: x1.saturating_sub(x0), height: y1.saturating_sub(y0) };
        let what = (object.kind, place, object.confidence);
        add_tracked(&mut relations, mask, what, (object.id, object.first_seen, now)).ok_or_else(refused)?;
    }
    Ok(())
}
