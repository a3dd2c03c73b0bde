// SPDX-License-Identifier: MPL-2.0
//! Objects of a stream: requests and detections of a frame become evidence, and objects what is attached to it.

use std::sync::Mutex;

use gst::glib;

use super::requests::{Place, Request, Requests};
use crate::analytics::{self, Detected, FollowedObject};
use crate::error::Error;
use crate::image::Geometry;
use crate::meta::{self, SuperpixelMeta};
use crate::objects::{Detection, Evidence, Object, Objects, Tables, overlap};
use crate::regions::{Motion, Neighbor, Region};

/// Type of the regions of interest that are attached, and kind of objects without a class.
pub(super) const KIND: &str = "superpixel-object";
/// Kind of the objects that `superpixel` attaches, which are regions.
const REGION_KIND: &str = "superpixel";

/// Detections that are this alike are one, as where an element attaches each in two ways: intersection over union in tenths.
const EQUAL_TENTHS: i128 = 9;

/// Facts about an object beside its regions.
pub(super) struct About {
    /// Id inside of [`Objects`].
    inner: u32,
    pub id: u32,
    /// Class by the detection; empty if none gave one.
    pub kind: &'static str,
    confidence: f32,
    track: Option<u64>,
    first_seen: Option<gst::ClockTime>,
}

/// An object that has begun or ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    /// It begins, with its class and bounds.
    Begins { id: u32, kind: &'static str, bounds: [u16; 4] },
    /// It ends, for a reason.
    Ends { id: u32, reason: &'static str },
}

/// Limits and wishes of one frame.
pub(super) struct Wishes<'a> {
    /// Classes that are followed; all, if there is none.
    pub classes: &'a [String],
    pub most: usize,
}

/// Objects of a stream, and memory that is used again for each frame.
#[derive(Default)]
pub(super) struct State {
    objects: Objects,
    pub about: Vec<About>,
    waiting: Vec<Request>,
    detected: Vec<Detected>,
    pub regions: Vec<Region>,
    motion: Vec<Motion>,
    neighbors: Vec<Neighbor>,
    /// The object of each label, 0 for none.
    pub owners: Vec<u32>,
    values: Vec<u8>,
    labels: Vec<u16>,
    seen: Vec<FollowedObject>,
    pub changes: Vec<Change>,
    /// Reasons why a request or a detection is refused.
    pub refused: Vec<String>,
    /// Detections and requests that became evidence in this frame.
    pub taken: u64,
}

/// A box of the frame: x0, y0, x1, y1. Refuses one that is outside.
fn clipped([x, y, width, height]: Place, geometry: Geometry) -> Result<[i32; 4], String> {
    let (right, bottom) = (i64::from(geometry.width()), i64::from(geometry.height()));
    let [x0, y0] = [x.clamp(0, right), y.clamp(0, bottom)];
    let [x1, y1] = [x.saturating_add(width).clamp(0, right), y.saturating_add(height).clamp(0, bottom)];
    if width <= 0 || height <= 0 || x0 >= x1 || y0 >= y1 {
        return Err(format!("a box of {width}x{height} at {x}, {y} has no pixel of the frame of {geometry}"));
    }
    // Sides of a frame fit.
    Ok([x0, y0, x1, y1].map(|v| v as i32))
}

fn is_same(a: [i32; 4], b: [i32; 4]) -> bool {
    let (common, union) = overlap(a, b);
    10 * common >= EQUAL_TENTHS * union
}

/// The object that evidence is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A known one, by its id inside of [`Objects`].
    Known(u32),
    /// One that begins, by its reserved id inside of [`Objects`] and the id that an application has.
    New(u32, u32),
    /// The one that fits, or a new one.
    Any,
}

/// Evidence of a frame.
struct Evident {
    target: Target,
    /// A box; without one it consists of points, or it is a mask.
    bounds: Option<[i32; 4]>,
    /// Pixels of each region in a mask; empty for others.
    covered: Vec<u32>,
    inside: Vec<u32>,
    outside: Vec<u32>,
    detected: Option<Detected>,
}

impl Evident {
    fn of_box(target: Target, bounds: [i32; 4], detected: Option<Detected>) -> Self {
        Self { bounds: Some(bounds), detected, ..Self::of_points(target) }
    }

    fn of_points(target: Target) -> Self {
        let (inside, outside, covered) = (Vec::new(), Vec::new(), Vec::new());
        Self { target, bounds: None, covered, inside, outside, detected: None }
    }

    fn of_mask(target: Target, covered: Vec<u32>) -> Self {
        Self { covered, ..Self::of_points(target) }
    }

    fn is_of_points(&self) -> bool {
        self.bounds.is_none() && self.covered.is_empty()
    }

    /// Adds the label of a point. Of two points in one region the later counts.
    fn add_point(&mut self, label: u32, is_inside: bool) {
        self.inside.retain(|own| *own != label);
        self.outside.retain(|own| *own != label);
        if is_inside { self.inside.push(label) } else { self.outside.push(label) }
    }

    fn detection(&self) -> Detection<'_> {
        let object = match self.target {
            Target::Known(inner) | Target::New(inner, _) => Some(inner),
            Target::Any => None,
        };
        let evidence = match self.bounds {
            Some(bounds) => Evidence::Box(bounds),
            None if !self.covered.is_empty() => Evidence::Mask(&self.covered),
            None => Evidence::Seeds { inside: &self.inside, outside: &self.outside },
        };
        Detection { object, evidence }
    }
}

impl State {
    /// Ends all objects.
    pub(super) fn reset(&mut self, reason: &'static str) {
        self.objects.reset();
        self.changes.extend(self.about.drain(..).map(|about| Change::Ends { id: about.id, reason }));
    }

    /// Collects all that is said about objects in this frame. Returns true if there is something to do.
    pub(super) fn collect(
        &mut self,
        buffer: &gst::BufferRef,
        requests: &Mutex<Requests>,
        wishes: &Wishes<'_>,
    ) -> bool {
        self.waiting.clear();
        requests.lock().unwrap().take(&mut self.waiting);
        self.detected.clear();
        let is_wanted = |kind: &str| {
            let is_own = kind == KIND || kind == REGION_KIND;
            !is_own && (wishes.classes.is_empty() || wishes.classes.iter().any(|class| class == kind))
        };
        analytics::of_objects(buffer, wishes.most, is_wanted, &mut self.detected);
        analytics::of_rois(buffer, wishes.most, is_wanted, &mut self.detected);
        !(self.about.is_empty() && self.waiting.is_empty() && self.detected.is_empty())
    }

    /// Finds the objects of a frame, for which there is [something to do](Self::collect).
    ///
    /// # Errors
    ///
    /// If the metadata is not that of one frame. Objects stay as they were.
    pub(super) fn update(
        &mut self,
        meta: &SuperpixelMeta<'_>,
        geometry: Geometry,
        requests: &Mutex<Requests>,
        wishes: &Wishes<'_>,
        now: Option<gst::ClockTime>,
    ) -> Result<(), String> {
        let bad = |error: glib::BoolError| error.to_string();
        meta.read(&mut self.regions).map_err(bad)?;
        meta.read(&mut self.motion).map_err(bad)?;
        meta.read(&mut self.neighbors).map_err(bad)?;
        if self.regions.len() != meta.regions() as usize {
            return Err(format!("{} records for {} regions", self.regions.len(), meta.regions()));
        }
        let mut evident = Vec::new();
        self.hear_requests(meta, geometry, &mut evident)?;
        self.refuse_beyond(wishes.most, &mut evident);
        self.hear_detections(geometry, &mut evident);
        let tables =
            Tables { geometry, regions: &self.regions, motion: &self.motion, neighbors: &self.neighbors };
        let update = |objects: &mut Objects, evident: &[Evident]| {
            let detections: Vec<Detection> = evident.iter().map(Evident::detection).collect();
            objects.update(&tables, &detections).map(|_| ())
        };
        let mut updated = update(&mut self.objects, &evident);
        if let Err(Error::Value { name: "object", .. }) = updated {
            // At a cut a known object ends and cannot be named: a detection is then about another one.
            let is_known = |one: &Evident| matches!(one.target, Target::Known(_));
            if evident.iter().any(|one| is_known(one) && one.detected.is_none()) {
                self.refused.push("its object ended at a cut".to_owned());
            }
            evident.retain(|one| !is_known(one) || one.detected.is_some());
            evident.iter_mut().filter(|one| is_known(one)).for_each(|one| one.target = Target::Any);
            updated = update(&mut self.objects, &evident);
        }
        if let Err(error) = updated {
            for one in &evident {
                if let Target::New(inner, _) = one.target {
                    self.objects.end(inner);
                }
            }
            return Err(error.to_string());
        }
        self.taken = evident.len() as u64;
        self.note(&evident, requests, wishes.most, now);
        self.own(geometry);
        Ok(())
    }

    /// Turns requests into evidence, and ends objects.
    fn hear_requests(
        &mut self,
        meta: &SuperpixelMeta<'_>,
        geometry: Geometry,
        evident: &mut Vec<Evident>,
    ) -> Result<(), String> {
        self.labels.clear();
        if self.waiting.iter().any(|request| matches!(request, Request::Point { .. } | Request::Mask { .. }))
        {
            let labels = &mut self.labels;
            let add = |row: &[u8]| labels.extend(row.as_chunks().0.iter().map(|l| u16::from_le_bytes(*l)));
            meta.for_each_row(add).map_err(|error| error.to_string())?;
        }
        for request in std::mem::take(&mut self.waiting) {
            let id = request.id();
            let known = self.about.iter().position(|about| about.id == id);
            match request {
                Request::Remove { .. } => {
                    if let Some(known) = known {
                        self.objects.end(self.about.remove(known).inner);
                        self.changes.push(Change::Ends { id, reason: "removed" });
                    }
                }
                Request::Box { place, .. } => match clipped(place, geometry) {
                    Ok(bounds) => {
                        let target = self.target(id, known, evident);
                        evident.push(Evident::of_box(target, bounds, None));
                    }
                    Err(reason) => self.refused.push(reason),
                },
                Request::Mask { mask, .. } => {
                    let covered = mask.counts(&self.labels, geometry, self.regions.len());
                    if covered.iter().any(|&count| count > 0) {
                        let target = self.target(id, known, evident);
                        evident.push(Evident::of_mask(target, covered));
                    } else {
                        self.refused.push("a mask has no pixel of a region".to_owned());
                    }
                }
                Request::Point { x, y, is_inside, .. } => match self.label_at(x, y, geometry) {
                    Some(label) => {
                        let target = self.target(id, known, evident);
                        let same = |one: &Evident| one.target == target && one.is_of_points();
                        let at = evident.iter().position(same).unwrap_or_else(|| {
                            evident.push(Evident::of_points(target));
                            evident.len() - 1
                        });
                        evident[at].add_point(label, is_inside);
                    }
                    None => self.refused.push(format!("there is no region at {x}, {y}")),
                },
            }
        }
        let is_whole = |one: &Evident| !one.is_of_points() || !one.inside.is_empty();
        if !evident.iter().all(is_whole) {
            self.refused.push("points of an object have to have one inside of it".to_owned());
        }
        for one in evident.iter().filter(|one| !is_whole(one)) {
            if let Target::New(inner, _) = one.target {
                self.objects.end(inner);
            }
        }
        evident.retain(is_whole);
        Ok(())
    }

    /// Refuses new objects past the limit, so that they take no region from those that are followed.
    fn refuse_beyond(&mut self, most: usize, evident: &mut Vec<Evident>) {
        let mut room = most.saturating_sub(self.about.len());
        evident.retain(|one| {
            let Target::New(inner, _) = one.target else { return true };
            let fits = room > 0;
            if fits {
                room -= 1;
            } else {
                self.refused.push(beyond(most));
                self.objects.end(inner);
            }
            fits
        });
    }

    /// The target of a request: a known object, one that another request of this frame begins, or a new one.
    fn target(&mut self, id: u32, known: Option<usize>, evident: &[Evident]) -> Target {
        let begins = |one: &Evident| matches!(one.target, Target::New(_, own) if own == id);
        match (known, evident.iter().find(|one| begins(one))) {
            (Some(known), _) => Target::Known(self.about[known].inner),
            (None, Some(one)) => one.target,
            (None, None) => Target::New(self.objects.reserve(), id),
        }
    }

    /// Label of a pixel; `None` outside of the frame or of all regions.
    fn label_at(&self, x: i64, y: i64, geometry: Geometry) -> Option<u32> {
        let [x, y] = [(x, geometry.width()), (y, geometry.height())]
            .map(|(v, length)| usize::try_from(v).ok().filter(|v| *v < length as usize));
        let label = *self.labels.get(y? * geometry.width() as usize + x?)?;
        (usize::from(label) < self.regions.len()).then_some(label.into())
    }

    /// Turns detections into evidence.
    fn hear_detections(&mut self, geometry: Geometry, evident: &mut Vec<Evident>) {
        for detected in &self.detected {
            let bounds = match clipped(detected.place, geometry) {
                Ok(bounds) => bounds,
                Err(reason) => {
                    self.refused.push(reason);
                    continue;
                }
            };
            if evident.iter().filter_map(|one| one.bounds).any(|own| is_same(own, bounds)) {
                continue;
            }
            let by_track = |about: &&About| detected.track.is_some() && about.track == detected.track;
            let target = self.about.iter().find(by_track).map_or(Target::Any, |a| Target::Known(a.inner));
            evident.push(Evident::of_box(target, bounds, Some(*detected)));
        }
    }

    /// Takes note of objects that begin, are detected, or end.
    fn note(
        &mut self,
        evident: &[Evident],
        requests: &Mutex<Requests>,
        most: usize,
        now: Option<gst::ClockTime>,
    ) {
        let mut requests = requests.lock().unwrap();
        let mut room = most.saturating_sub(self.about.len());
        for (one, inner) in evident.iter().zip(self.objects.assigned().to_vec()) {
            if let Some(about) = self.about.iter_mut().find(|about| about.inner == inner) {
                if let Some(detected) = one.detected {
                    about.hear(&detected);
                }
                continue;
            }
            // A box in which nothing is an object.
            let Some(object) = self.objects.current().iter().find(|object| object.id == inner) else {
                self.refused.push("no region there is an object".to_owned());
                continue;
            };
            if room == 0 {
                self.refused.push(beyond(most));
                self.objects.end(inner);
                continue;
            }
            room -= 1;
            let id = match one.target {
                Target::New(_, id) => id,
                Target::Known(_) | Target::Any => requests.next_id(),
            };
            let mut about = About { inner, id, kind: "", confidence: 1.0, track: None, first_seen: now };
            if let Some(detected) = one.detected {
                about.hear(&detected);
            }
            self.changes.push(Change::Begins { id, kind: about.kind, bounds: object.bounds });
            self.about.push(about);
        }
        let (current, changes) = (self.objects.current(), &mut self.changes);
        self.about.retain(|about| {
            let goes_on = current.iter().any(|object| object.id == about.inner);
            if !goes_on {
                changes.push(Change::Ends { id: about.id, reason: "lost" });
            }
            goes_on
        });
        requests.note(self.about.iter().map(|about| about.id));
    }

    /// Lists the object of each label, and the objects that are seen.
    fn own(&mut self, geometry: Geometry) {
        let regions = self.regions.len();
        self.owners.clear();
        self.owners.resize(regions, 0);
        self.values.clear();
        self.values.resize(regions, 0);
        self.seen.clear();
        let [right, bottom] = [geometry.width(), geometry.height()].map(|length| length as u16);
        for object in self.objects.current() {
            let Some(about) = self.about.iter().find(|about| about.inner == object.id) else { continue };
            let [x0, y0, x1, y1] = object.bounds;
            let bounds = [x0.min(right), y0.min(bottom), x1.min(right), y1.min(bottom)];
            if object.labels.is_empty() || bounds[0] >= bounds[2] || bounds[1] >= bounds[3] {
                continue;
            }
            self.seen.push(FollowedObject {
                id: about.id,
                kind: glib::Quark::from_str(if about.kind.is_empty() { KIND } else { about.kind }),
                bounds,
                confidence: about.confidence,
                first_seen: about.first_seen,
            });
            let value = u8::try_from(self.seen.len()).unwrap_or(0);
            for &label in &object.labels {
                self.owners[label as usize] = about.id;
                self.values[label as usize] = value;
            }
        }
    }

    /// Attaches the objects of the frame.
    ///
    /// # Errors
    ///
    /// If the buffer has lost its metadata, or GStreamer refuses.
    pub(super) fn attach(
        &self,
        buffer: &mut gst::BufferRef,
        labels: &gst::Buffer,
        geometry: Geometry,
        analytics: bool,
    ) -> Result<(), glib::BoolError> {
        meta::add_objects(buffer, &self.owners)?;
        for seen in &self.seen {
            let about = self.about.iter().find(|about| about.id == seen.id);
            let object = about.and_then(|a| self.objects.current().iter().find(|one| one.id == a.inner));
            if let (Some(about), Some(object)) = (about, object) {
                attach_roi(buffer, about, object, seen.bounds);
            }
        }
        if analytics && !self.seen.is_empty() {
            analytics::attach_objects(buffer, labels, geometry, &self.values, &self.seen)?;
        }
        Ok(())
    }
}

/// Reason to refuse an object past the limit.
fn beyond(most: usize) -> String {
    format!("max-objects={most} are followed")
}

impl About {
    fn hear(&mut self, detected: &Detected) {
        if !detected.kind.is_empty() {
            self.kind = detected.kind;
        }
        self.confidence =
            if detected.confidence.is_finite() { detected.confidence.clamp(0.0, 1.0) } else { 0.0 };
        self.track = detected.track.or(self.track);
    }
}

/// Attaches an object as a region of interest.
fn attach_roi(buffer: &mut gst::BufferRef, about: &About, object: &Object, bounds: [u16; 4]) {
    let [x0, y0, x1, y1] = bounds.map(u32::from);
    let place = (x0, y0, x1 - x0, y1 - y0);
    let mut fields = gst::Structure::builder(KIND)
        .field("id", about.id)
        .field("area", object.area)
        .field("regions", object.labels.len() as u32)
        .field("velocity-x", object.velocity[0])
        .field("velocity-y", object.velocity[1])
        .field("confidence", f64::from(about.confidence))
        .build();
    if !about.kind.is_empty() {
        fields.set("class", about.kind);
    }
    let mut roi = gst_video::VideoRegionOfInterestMeta::add(buffer, KIND, place);
    // Ids of regions of interest are signed.
    roi.set_id(i32::try_from(about.id).unwrap_or(i32::MAX));
    roi.add_param(fields);
}
