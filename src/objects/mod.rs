// SPDX-License-Identifier: MPL-2.0
//! From regions to objects: a box, a mask or a few clicks become the regions of an object, which is followed from frame to frame.
//!
//! Works on the tables of a frame alone, a few hundred regions with their neighbors, on the CPU. Everything is an integer; results
//! depend on nothing but the tables. docs/objects.md has the method, figures, and what does not hold.
//!
//! ```
//! use gstsuperpixel::cpu::Cpu;
//! use gstsuperpixel::engine::Engine;
//! use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
//! use gstsuperpixel::objects::{Detection, Evidence, Objects, Tables};
//! use gstsuperpixel::params::{Outputs, Params};
//! use gstsuperpixel::plan::Plan;
//!
//! # fn main() -> gstsuperpixel::error::Result<()> {
//! let geometry = Geometry::new(320, 240)?;
//! let info = FrameInfo::new(geometry, PixelFormat::Gray8);
//! let params = Params { superpixels: 300, temporal: true, ..Params::default() };
//! let mut engine = Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?;
//! let outputs = Outputs { table: true, neighbors: true, ..Outputs::default() };
//! let mut map = vec![0; geometry.pixels()];
//! let mut objects = Objects::default();
//! # let mut pixels = vec![30; 320 * 240];
//! # for y in 60..160 { pixels[320 * y + 80..320 * y + 200].fill(220); }
//! for frame in 0..3 {
//!     let mut labels = Labels::new(geometry, &mut map, 320)?;
//!     let regions = engine.segment(&Frame::new(info, &[&pixels], &[320])?, &mut labels, outputs)?;
//!     let tables =
//!         Tables { geometry, regions: &regions.table, motion: &regions.motion, neighbors: &regions.neighbors };
//!     let found = Detection { object: None, evidence: Evidence::Box([70, 50, 210, 170]) };
//!     let all = objects.update(&tables, if frame == 0 { std::slice::from_ref(&found) } else { &[] })?;
//!     assert_eq!(all[0].id, 1);
//!     # assert!((11_000..13_000).contains(&all[0].area), "{}", all[0].area);
//! }
//! # Ok(())
//! # }
//! ```

mod color_model;
mod graph;
mod minimum_cut;
mod start;
mod tables;
mod track;

use graph::Graph;
use track::Track;

use crate::error::{Error, Result};
use crate::image::Geometry;

pub use tables::{Detection, Evidence, Tables};

/// An object in a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its name over time, from 1 on; ids are not given again.
    pub id: u32,
    /// Labels of its regions, in order. None while it is hidden.
    pub labels: Vec<u32>,
    /// Number of pixels.
    pub area: u64,
    /// Box around its regions: x0, y0, x1, y1 in px, the latter two exclusive. All 0 while it is hidden.
    pub bounds: [u16; 4],
    /// Motion since the last frame in px, x then y: the median of its regions that go on, or what it was before.
    pub velocity: [i32; 2],
}

/// Least intersection over union at which a box is about a known object, in tenths.
const SAME_TENTHS: i128 = 3;

/// An object with what is known of it.
struct Known {
    object: Object,
    track: Track,
}

/// Follows objects through the frames of a stream, one after another.
#[derive(Default)]
pub struct Objects {
    known: Vec<Known>,
    seen: Vec<Object>,
    assigned: Vec<u32>,
    last_id: u32,
    /// Ids that were given out before their objects.
    reserved: Vec<u32>,
    geometry: Option<Geometry>,
}

/// Evidence of one frame about an object: its regions, and how strongly each belongs to it.
struct Candidate {
    known: Known,
    inside: Vec<bool>,
    scores: Vec<Option<i64>>,
    /// Colors and box, where the frame had evidence.
    anchor: Option<([color_model::ColorModel; 2], Option<[i32; 4]>)>,
    is_new: bool,
}

impl Objects {
    /// Finds the objects of the next frame, in the order of their ids.
    ///
    /// `detections` say what is known in this frame. The first about an object counts. An object without one is followed by track
    /// ids, positions, colors and motion of its regions, which needs a stream that was segmented with
    /// [`temporal`](crate::params::Params::temporal). A region that several objects claim goes to the one that it fits best (ties: the
    /// lowest id).
    ///
    /// An object that is hidden has no regions, and ends when it is not seen again within a few frames. All end at a cut, which
    /// is a frame whose track ids are all new, and where the frame has another size.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and nothing is changed: tables that are not of one frame; a box outside of the frame or without area;
    /// labels that the frame does not have; an id of no object that goes on, and of none that was reserved.
    pub fn update(&mut self, tables: &Tables, detections: &[Detection]) -> Result<&[Object]> {
        tables.check()?;
        for detection in detections {
            detection.check(tables)?;
        }
        let graph = Graph::new(tables);
        let is_next = self.geometry == Some(tables.geometry);
        let goes_on = |known: &Known| is_next && (graph.nodes.is_empty() || known.track.goes_on(&graph));
        // Detections cannot name an object that ends here.
        let alive: Vec<bool> = self.known.iter().map(goes_on).collect();
        let ids =
            || self.known.iter().zip(&alive).filter(|(_, alive)| **alive).map(|(known, _)| known.object.id);
        let is_named = |id: &u32| ids().any(|own| own == *id) || self.reserved.contains(id);
        if let Some(id) = detections.iter().filter_map(|one| one.object).find(|id| !is_named(id)) {
            let all: Vec<String> = ids().map(|id| id.to_string()).collect();
            let allowed = match &all[..] {
                [] => "None: no object goes on in this frame".to_owned(),
                _ => format!("None or an object that goes on in this frame: {}", all.join(", ")),
            };
            return Err(Error::Value { name: "object", got: id.to_string(), allowed });
        }
        let mut alive = alive.into_iter();
        self.known.retain(|_| alive.next() == Some(true));
        self.geometry = Some(tables.geometry);
        for known in &mut self.known {
            known.track.predict(&graph);
        }
        let mut chosen = self.assign(detections);
        let mut candidates: Vec<Candidate> = Vec::new();
        for known in std::mem::take(&mut self.known) {
            let at = chosen.iter().position(|id| *id == Some(known.object.id));
            candidates.push(followed(&graph, known, at.map(|at| &detections[at].evidence)));
        }
        for (detection, chosen) in detections.iter().zip(&mut chosen) {
            let id = match *chosen {
                None => self.next_id(),
                Some(id) => match self.reserved.iter().position(|own| *own == id) {
                    Some(at) => self.reserved.swap_remove(at),
                    None => continue,
                },
            };
            *chosen = Some(id);
            candidates.push(found(&graph, id, &detection.evidence));
        }
        self.assigned.clear();
        self.assigned.extend(chosen.into_iter().flatten());
        candidates.sort_by_key(|candidate| candidate.known.object.id);
        resolve(&mut candidates);
        self.known = candidates.into_iter().map(|candidate| candidate.finish(&graph)).collect();
        self.known.retain(|known| known.track.is_known());
        self.seen.clear();
        self.seen.extend(self.known.iter().map(|known| known.object.clone()));
        Ok(&self.seen)
    }

    /// The objects of the last update, in the order of their ids.
    pub fn current(&self) -> &[Object] {
        &self.seen
    }

    /// For each detection of the last update the id of its object.
    pub fn assigned(&self) -> &[u32] {
        &self.assigned
    }

    /// Gives out the id of an object that begins later: with the first detection that names it, whatever else is there.
    pub fn reserve(&mut self) -> u32 {
        let id = self.next_id();
        self.reserved.push(id);
        id
    }

    fn next_id(&mut self) -> u32 {
        // After 2^32 objects ids would come again.
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Ends an object. Returns whether it was known.
    pub fn end(&mut self, id: u32) -> bool {
        let before = self.known.len();
        self.reserved.retain(|own| *own != id);
        self.known.retain(|known| known.object.id != id);
        self.seen.retain(|object| object.id != id);
        self.known.len() < before
    }

    /// Ends all objects. Ids go on.
    pub fn reset(&mut self) {
        self.known.clear();
        self.seen.clear();
        self.reserved.clear();
    }

    /// For each detection the id of the known object that it is about. The best fits come first (ties: the earlier detection, then the
    /// lower id).
    fn assign(&self, detections: &[Detection]) -> Vec<Option<u32>> {
        let mut chosen: Vec<Option<u32>> = detections.iter().map(|detection| detection.object).collect();
        let mut fits = Vec::new();
        for (at, detection) in detections.iter().enumerate() {
            let (Evidence::Box(bounds), None) = (detection.evidence, detection.object) else { continue };
            for known in &self.known {
                let [dx, dy] = known.track.velocity;
                let [x0, y0, x1, y1] = known.object.bounds.map(i32::from);
                let (common, union) = overlap(bounds, [x0 + dx, y0 + dy, x1 + dx, y1 + dy]);
                if 10 * common >= SAME_TENTHS * union && common > 0 {
                    let share = (common << 32) / union;
                    fits.push((std::cmp::Reverse(share), at, known.object.id));
                }
            }
        }
        fits.sort_unstable();
        for (_, at, id) in fits {
            if chosen[at].is_none() && !chosen.contains(&Some(id)) {
                chosen[at] = Some(id);
            }
        }
        chosen
    }
}

/// Areas of the intersection and of the union of two boxes.
pub(crate) fn overlap(a: [i32; 4], b: [i32; 4]) -> (i128, i128) {
    let side = |low: i32, high: i32| (i128::from(high) - i128::from(low)).max(0);
    let area = |[x0, y0, x1, y1]: [i32; 4]| side(x0, x1) * side(y0, y1);
    let common = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    (common, area(a) + area(b) - common)
}

/// A known object in the next frame.
fn followed(graph: &Graph, known: Known, evidence: Option<&Evidence>) -> Candidate {
    let scores = known.track.scores(graph);
    let Some(evidence) = evidence else {
        let inside = graph.cut(&scores);
        return Candidate { known, inside, scores, anchor: None, is_new: false };
    };
    let found = start::find(graph, evidence, Some(&scores));
    let anchor = Some((found.models, box_of(evidence)));
    Candidate { known, inside: found.inside, scores, anchor, is_new: false }
}

/// A new object.
fn found(graph: &Graph, id: u32, evidence: &Evidence) -> Candidate {
    let found = start::find(graph, evidence, None);
    let track = Track::new(graph, &found.inside);
    let object = Object { id, labels: Vec::new(), area: 0, bounds: [0; 4], velocity: [0; 2] };
    Candidate {
        known: Known { object, track },
        scores: vec![None; found.inside.len()],
        inside: found.inside,
        anchor: Some((found.models, box_of(evidence))),
        is_new: true,
    }
}

fn box_of(evidence: &Evidence) -> Option<[i32; 4]> {
    match evidence {
        Evidence::Box(bounds) => Some(*bounds),
        Evidence::Mask(_) | Evidence::Seeds { .. } => None,
    }
}

/// Gives each region that several objects claim to one of them.
fn resolve(candidates: &mut [Candidate]) {
    let regions = candidates.first().map_or(0, |first| first.inside.len());
    for label in 0..regions {
        let claims = candidates.iter().enumerate().filter(|(_, one)| one.inside[label]);
        let best = claims.max_by_key(|(at, one)| {
            // Evidence in the frame goes before what was carried on.
            (one.anchor.is_some(), one.scores[label], std::cmp::Reverse(*at))
        });
        let Some((best, _)) = best else { continue };
        for (at, one) in candidates.iter_mut().enumerate() {
            one.inside[label] &= at == best;
        }
    }
}

impl Candidate {
    fn finish(self, graph: &Graph) -> Known {
        let Self { known: Known { mut object, mut track }, inside, anchor, is_new, .. } = self;
        if is_new {
            track = Track::new(graph, &inside);
        } else {
            track.remember(graph, &inside);
        }
        if let Some((models, bounds)) = anchor {
            track.anchor(models, bounds, graph);
        }
        object.velocity = track.velocity;
        object.labels.clear();
        object.area = 0;
        let mut bounds: Option<[i32; 4]> = None;
        for (label, node) in graph.nodes.iter().enumerate().filter(|&(label, _)| inside[label]) {
            object.labels.push(label as u32);
            object.area += node.area as u64;
            let [x0, y0, x1, y1] = node.bounds;
            let [a, b, c, d] = bounds.unwrap_or(node.bounds);
            bounds = Some([a.min(x0), b.min(y0), c.max(x1), d.max(y1)]);
        }
        object.bounds = bounds.unwrap_or([0; 4]).map(|v| v as u16);
        Known { object, track }
    }
}
