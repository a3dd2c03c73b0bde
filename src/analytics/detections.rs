// SPDX-License-Identifier: MPL-2.0
//! Objects that earlier elements have found in a frame: regions of interest, and objects and segmentations of GStreamer's analytics
//! metadata.

use super::library::{Found, Library};
use crate::meta;

/// An object that an earlier element has found. Its values are as they stand in the metadata.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Detected {
    /// Its class; empty where it has none.
    pub kind: &'static str,
    /// x, y, width, height in px.
    pub place: [i64; 4],
    /// 1 where none is given.
    pub confidence: f32,
    /// Its name by a tracker.
    pub track: Option<u64>,
}

/// Adds the regions of interest of a frame to `found`, as long as it has less than `most` that `is_wanted`.
pub(crate) fn of_rois(
    buffer: &gst::BufferRef,
    most: usize,
    is_wanted: impl Fn(&str) -> bool,
    found: &mut Vec<Detected>,
) {
    for roi in buffer.iter_meta::<gst_video::VideoRegionOfInterestMeta>() {
        if found.len() >= most {
            return;
        }
        let kind = meta::roi_kind(&roi);
        if !is_wanted(kind) {
            continue;
        }
        let (x, y, width, height) = roi.rect();
        let confidence = roi.param("detection").and_then(|fields| fields.get::<f64>("confidence").ok());
        found.push(Detected {
            kind,
            place: [x, y, width, height].map(i64::from),
            confidence: confidence.unwrap_or(1.0) as f32,
            track: None,
        });
    }
}

/// Adds the objects of the analytics metadata likewise, if the library is there.
pub(crate) fn of_objects(
    buffer: &gst::BufferRef,
    most: usize,
    is_wanted: impl Fn(&str) -> bool,
    found: &mut Vec<Detected>,
) {
    let Some(meta) = Library::get().ok().and_then(|library| Found::of(library, buffer)) else { return };
    let count = meta.count();
    for index in 0..count {
        if found.len() >= most {
            return;
        }
        let Some(object) = meta.object(index) else { continue };
        let kind = meta::quark_text(object.kind);
        if !is_wanted(kind) {
            continue;
        }
        let is_related = |other: &u32| meta.is_related(index, *other) || meta.is_related(*other, index);
        let track = (0..count).filter(|other| *other != index).filter(is_related).find_map(|i| meta.track(i));
        found.push(Detected {
            kind,
            place: object.place.map(i64::from),
            confidence: object.confidence,
            track,
        });
    }
}

/// The segmentation of a frame that the analytics metadata has last: its mask, and where that lies in the frame, x, y, width, height
/// in px. Both are as they stand there.
pub(crate) fn last_segmentation(buffer: &gst::BufferRef) -> Option<(gst::Buffer, [i64; 4])> {
    let meta = Library::get().ok().and_then(|library| Found::of(library, buffer))?;
    (0..meta.count()).rev().find_map(|index| meta.segmentation(index))
}
