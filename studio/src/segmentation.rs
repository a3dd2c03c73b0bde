// SPDX-License-Identifier: MPL-2.0
//! Segmentation of one frame, copied from the element's metadata.

use gst::prelude::*;
use gstsuperpixel::meta::{LabelMap, SuperpixelMeta};
use gstsuperpixel::regions::{Event, Motion, Neighbor, Region};

use crate::objects::Followed;

/// Label map and records of a frame, with what `stats` said after it.
pub struct Segmentation {
    /// The label map.
    pub labels: LabelMap,
    /// One record a label.
    pub table: Vec<Region>,
    /// One record a label, where identities last.
    pub motion: Vec<Motion>,
    /// Touching pairs.
    pub neighbors: Vec<Neighbor>,
    /// What became of regions since the last frame, where identities last.
    pub events: Vec<Event>,
    /// Nick of the algorithm.
    pub algo: String,
    /// Time of the frame in the element, in microseconds.
    pub time_us: u64,
    /// Time of each stage, if the backend reports it.
    pub stages: Vec<(String, u64)>,
    /// The frame with the element's drawing, if somebody looks at it.
    pub drawn: Option<gst::Buffer>,
    /// Objects, of the side that they are followed on.
    pub followed: Followed,
}

impl Segmentation {
    /// Reads the metadata of a buffer that has just left `element`, without what is drawn on it, and takes the objects that are `followed`
    /// in it.
    ///
    /// # Errors
    ///
    /// Metadata that is missing or contradicts itself.
    pub fn read(
        element: &gst::Element,
        buffer: &gst::BufferRef,
        followed: Result<Followed, gst::glib::BoolError>,
    ) -> Result<Self, gst::glib::BoolError> {
        let meta = SuperpixelMeta::from_buffer(buffer)
            .ok_or_else(|| gst::glib::bool_error!("a frame without superpixels"))?;
        let stats = element.property::<Option<gst::Structure>>("stats");
        let stages = stats.as_ref().and_then(|stats| stats.get::<gst::Structure>("stage-times-us").ok());
        let times = |stages: gst::Structure| {
            let named = stages.iter().filter_map(|(name, v)| Some((name.to_string(), v.get().ok()?)));
            named.collect()
        };
        Ok(Self {
            labels: meta.labels()?,
            table: meta.table()?,
            motion: meta.motion()?,
            neighbors: meta.neighbors()?,
            events: meta.events()?,
            algo: meta.algo().to_owned(),
            time_us: stats.and_then(|stats| stats.get("frame-time-us").ok()).unwrap_or(0),
            stages: stages.map(times).unwrap_or_default(),
            drawn: None,
            followed: followed?,
        })
    }
}
