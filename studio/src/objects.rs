// SPDX-License-Identifier: MPL-2.0
//! Objects that viewers have marked, and what `superpixelobjects` makes of them.
//!
//! A mark belongs to a moment of the source, not to a run of the pipeline: it is given to the element whenever its frame passes, so
//! that an object comes back after a seek, in the next round and in an export. Ids of viewers are small, from 1 to [`MOST_OBJECTS`];
//! the element's own, which are new in every run, are translated.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstsuperpixel::meta::SuperpixelMeta;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::problem::Problem;
use crate::request::Place;
use crate::source::make;

/// Objects that a studio follows at once, as the element does by default.
pub const MOST_OBJECTS: usize = 32;
/// Frames that an object may be marked in.
pub const MOST_MARKS: usize = 64;
/// Points of an object in a frame.
pub const MOST_POINTS: usize = 32;
/// Name of the metadata, and of the structure with what is known of an object.
const KIND: &str = "superpixel-object";
/// Room for seconds that are no whole numbers of nanoseconds.
const SLACK: u64 = 1000;
/// Seconds after which no source goes on.
const LATEST: f64 = 1e7;

/// What was said about an object in a frame.
#[derive(Debug, Clone, PartialEq)]
enum Evidence {
    /// It is in a box: x, y, width, height.
    Box([i32; 4]),
    /// Pixels are in it, or are not.
    Points(Vec<([i32; 2], bool)>),
}

/// Evidence with its object and the time of its frame.
#[derive(Debug, Clone, PartialEq)]
struct Mark {
    object: u8,
    time: gst::ClockTime,
    evidence: Evidence,
}

/// All marks of a studio, at most one of an object in a frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Marks(Vec<Mark>);

/// The size of frames, and the time of the one that a mark is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moment {
    /// Width and height in px.
    pub size: [u32; 2],
    /// From the start of the source.
    pub time: gst::ClockTime,
}

/// The moment of a viewer's seconds.
pub fn time_of(seconds: f64) -> Option<gst::ClockTime> {
    let is_one = (0.0..LATEST).contains(&seconds);
    is_one.then(|| gst::ClockTime::from_nseconds((seconds * 1e9).round() as u64))
}

fn refused(what: impl Into<String>, advice: &str) -> Problem {
    Problem::new(what, advice)
}

impl Marks {
    /// Adds what a viewer says about an object, or about a new one; returns its id. A box takes the place of what was said about the
    /// object in that frame, and a point that of a box.
    ///
    /// # Errors
    ///
    /// Places outside of the frame, objects that are not there, and too many of all, in words for the viewer. Nothing is added then.
    pub fn add(&mut self, object: Option<u8>, place: Place, moment: Moment) -> Result<u8, Problem> {
        let Moment { size: [width, height], time } = moment;
        let [right, bottom] = [width, height].map(|length| length as i32);
        match place {
            Place::Box([x, y, w, h]) => {
                let is_seen = |from: i32, length: i32, end: i32| {
                    length > 0 && from < end && i64::from(from) + i64::from(length) > 0
                };
                if !is_seen(x, w, right) || !is_seen(y, h, bottom) {
                    let what = format!(
                        "A box of {w}x{h} at {x}, {y} has no pixel of the picture of {width}x{height}."
                    );
                    return Err(refused(what, "Draw it around a thing in the picture."));
                }
            }
            Place::Inside([x, y]) | Place::Outside([x, y]) => {
                if !(0..right).contains(&x) || !(0..bottom).contains(&y) {
                    let what = format!("{x}, {y} is no pixel of the picture of {width}x{height}.");
                    return Err(refused(what, "Click into the picture."));
                }
            }
        }
        let id = match object {
            Some(id) if self.has(id) => id,
            Some(id) => {
                return Err(refused(format!("There is no object {id}."), "It was removed; mark a new one."));
            }
            None => (1..=MOST_OBJECTS as u8).find(|id| !self.has(*id)).ok_or_else(|| {
                refused(format!("{MOST_OBJECTS} objects are followed at once."), "Remove one of them first.")
            })?,
        };
        let known = self.0.iter().position(|mark| mark.object == id && mark.time == time);
        let before = match known.map(|at| &self.0[at].evidence) {
            Some(Evidence::Points(points)) => points.as_slice(),
            _ => &[],
        };
        let evidence = match place {
            Place::Box(bounds) => Evidence::Box(bounds),
            Place::Inside(at) | Place::Outside(at) => {
                let is_inside = matches!(place, Place::Inside(_));
                if !is_inside && !before.iter().any(|(_, is_inside)| *is_inside) {
                    return Err(refused(
                        "A click outside of an object says nothing by itself.",
                        "Click into the object in this picture first.",
                    ));
                }
                if before.len() == MOST_POINTS {
                    return Err(refused(
                        format!("An object has at most {MOST_POINTS} points in a picture."),
                        "Draw a box around it.",
                    ));
                }
                Evidence::Points(before.iter().copied().chain([(at, is_inside)]).collect())
            }
        };
        let mark = Mark { object: id, time, evidence };
        match known {
            Some(at) => self.0[at] = mark,
            None if self.count(id) == MOST_MARKS => {
                return Err(refused(
                    format!("An object is marked in at most {MOST_MARKS} pictures."),
                    "Remove the object and mark it anew.",
                ));
            }
            None => self.0.push(mark),
        }
        Ok(id)
    }

    /// Lets an object go; `false` where it is not there.
    pub fn remove(&mut self, object: u8) -> bool {
        let before = self.0.len();
        self.0.retain(|mark| mark.object != object);
        self.0.len() < before
    }

    /// Returns true if nothing is marked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In how many frames an object is marked.
    pub fn count(&self, object: u8) -> usize {
        self.of(object).count()
    }

    fn has(&self, object: u8) -> bool {
        self.of(object).next().is_some()
    }

    fn of(&self, object: u8) -> impl Iterator<Item = &Mark> {
        self.0.iter().filter(move |mark| mark.object == object)
    }

    /// Ids of all objects with the seconds of the frames that they are marked in.
    pub fn list(&self) -> Vec<Listed> {
        let mut all = BTreeMap::<u8, Vec<f64>>::new();
        for mark in &self.0 {
            all.entry(mark.object).or_default().push(seconds(mark.time));
        }
        all.into_iter()
            .map(|(id, mut marks)| {
                marks.sort_by(f64::total_cmp);
                Listed { id, marks }
            })
            .collect()
    }

    /// What was said about each object, for a file.
    pub fn json(&self) -> Json {
        let mark = |mark: &Mark| {
            let (time, point) = (
                seconds(mark.time),
                |[x, y]: [i32; 2], inside: bool| json!({ "x": x, "y": y, "inside": inside }),
            );
            match &mark.evidence {
                Evidence::Box(bounds) => json!({ "time": time, "box": bounds }),
                Evidence::Points(points) => {
                    let points: Vec<_> = points.iter().map(|(at, inside)| point(*at, *inside)).collect();
                    json!({ "time": time, "points": points })
                }
            }
        };
        let object = |Listed { id, .. }| {
            let marks: Vec<_> = self.of(id).map(mark).collect();
            json!({ "id": id, "marks": marks })
        };
        self.list().into_iter().map(object).collect()
    }
}

/// An object as viewers see it in the state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Listed {
    /// Its id.
    pub id: u8,
    /// Seconds of the frames that it is marked in, in order.
    pub marks: Vec<f64>,
}

fn seconds(time: gst::ClockTime) -> f64 {
    time.nseconds() as f64 / 1e9
}

/// An object in a frame.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Object {
    /// Its id.
    pub id: u8,
    /// Left, top, width, height in px.
    #[serde(rename = "box")]
    pub bounds: [u32; 4],
    /// Number of pixels.
    pub area: u64,
    /// Number of regions.
    pub regions: u32,
}

/// The objects of a frame.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Followed {
    /// Those that are seen, by their ids.
    pub objects: Vec<Object>,
    /// The object of each label, 0 for none; empty where none is seen.
    pub owners: Vec<u8>,
}

/// Time and duration of a frame.
type Span = (gst::ClockTime, Option<gst::ClockTime>);

/// Returns true if a time is within a frame. Frames behind a seek may begin later than they do without it.
fn covers((start, duration): Span, time: gst::ClockTime) -> bool {
    let (start, time) = (start.nseconds(), time.nseconds() + SLACK);
    let length = duration.map_or(2 * SLACK, |duration| duration.nseconds().max(2 * SLACK));
    (start..start + length).contains(&time)
}

#[derive(Default)]
struct State {
    marks: Marks,
    /// Marks that the element has heard with the last frame.
    given: Marks,
    /// The element's ids of objects.
    known: BTreeMap<u8, u32>,
    /// Objects in the last frame.
    seen: Vec<u8>,
    /// Objects that are marked in the last frame and were not found there in two attempts.
    missing: Vec<u8>,
    last: Option<Span>,
    size: Option<[u32; 2]>,
    /// True if the last frame had what objects are followed by.
    is_fit: bool,
    /// Time of the frame that was asked for again, since an object that is marked there was not found.
    asked: Option<gst::ClockTime>,
}

/// An element `superpixelobjects` that gets the marks of viewers.
#[derive(Clone)]
pub struct Follower {
    element: gst::Element,
    state: Arc<Mutex<State>>,
}

impl Follower {
    /// Makes the element. `again` asks for the last frame once more, where that is possible.
    ///
    /// # Errors
    ///
    /// An element that is missing.
    pub fn new(marks: Marks, again: impl Fn() + Send + Sync + 'static) -> Result<Self, Problem> {
        let element = make("superpixelobjects")?;
        element.set_property("analytics", false);
        element.set_property("max-objects", MOST_OBJECTS as u32);
        element.set_property_from_str("on-missing", "pass");
        let state = Arc::new(Mutex::new(State { marks, ..State::default() }));
        let pad = |name| {
            element.static_pad(name).ok_or_else(|| Problem::internal("superpixelobjects without a pad"))
        };
        let own = state.clone();
        pad("sink")?.add_probe(
            gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM | gst::PadProbeType::EVENT_FLUSH,
            move |pad, info| {
                let mut state = own.lock().unwrap();
                match (&info.data, pad.parent_element()) {
                    (Some(gst::PadProbeData::Buffer(buffer)), Some(element)) => state.enter(&element, buffer),
                    (Some(gst::PadProbeData::Event(event)), _) => state.hear(event),
                    _ => {}
                }
                gst::PadProbeReturn::Ok
            },
        );
        let own = state.clone();
        pad("src")?.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
            let wants = info.buffer().is_some_and(|buffer| own.lock().unwrap().leave(buffer));
            if wants {
                again();
            }
            gst::PadProbeReturn::Ok
        });
        Ok(Self { element, state })
    }

    /// The element.
    pub fn element(&self) -> &gst::Element {
        &self.element
    }

    /// Sets the marks; objects without one end.
    pub fn set(&self, marks: &Marks) {
        let mut state = self.state.lock().unwrap();
        state.marks = marks.clone();
        state.asked = None;
        state.missing.clear();
        let State { known, seen, .. } = &mut *state;
        seen.retain(|object| marks.has(*object));
        known.retain(|object, id| {
            let stays = marks.has(*object);
            if !stays {
                self.element.emit_by_name::<bool>("remove-object", &[&*id]);
            }
            stays
        });
    }

    /// Size of the last frame.
    ///
    /// # Errors
    ///
    /// Words for the viewer where there is none, or where objects cannot be followed in it.
    pub fn size(&self) -> Result<[u32; 2], Problem> {
        let state = self.state.lock().unwrap();
        let size =
            state.size.ok_or_else(|| refused("There is no picture yet.", "Wait for the first one."))?;
        if !state.is_fit {
            return Err(refused(
                "Objects are followed by track ids, which regions do not have now.",
                "Switch “temporal” on.",
            ));
        }
        Ok(size)
    }

    /// Returns true if a time is that of the last frame.
    pub fn is_at(&self, time: gst::ClockTime) -> bool {
        self.state.lock().unwrap().last.is_some_and(|span| covers(span, time))
    }

    /// Returns true if an object is in the last frame, and false if it is marked there and is not found; `None` where nothing is known
    /// yet.
    pub fn is_found(&self, object: u8) -> Option<bool> {
        let state = self.state.lock().unwrap();
        let is_seen = state.seen.contains(&object);
        (is_seen || state.missing.contains(&object)).then_some(is_seen)
    }

    /// Reads the objects of a frame that has left the element.
    ///
    /// # Errors
    ///
    /// Metadata that contradicts itself.
    pub fn read(&self, buffer: &gst::BufferRef) -> Result<Followed, gst::glib::BoolError> {
        self.state.lock().unwrap().read(buffer)
    }
}

impl State {
    fn hear(&mut self, event: &gst::EventRef) {
        // The element ends its objects there, too.
        if matches!(event.type_(), gst::EventType::FlushStop | gst::EventType::Segment | gst::EventType::Caps)
        {
            self.given.0.clear();
            self.known.clear();
            self.seen.clear();
            self.missing.clear();
            self.asked = None;
        }
    }

    /// A frame comes to the element, which gets the marks of this frame before.
    fn enter(&mut self, element: &gst::Element, buffer: &gst::BufferRef) {
        self.last = buffer.pts().map(|pts| (pts, buffer.duration()));
        if let Some(meta) = SuperpixelMeta::from_buffer(buffer) {
            self.size = Some([meta.width(), meta.height()]);
            self.is_fit = meta.motion().is_ok_and(|motion| !motion.is_empty());
        }
        self.given.0.clear();
        let Some(span) = self.last.filter(|_| self.is_fit) else { return };
        // A paused picture comes again and again: without its marks objects would go on into it as into a next frame.
        for mark in self.marks.0.iter().filter(|mark| covers(span, mark.time)) {
            if let Some(id) = give(element, mark, self.known.get(&mark.object).copied()) {
                self.known.insert(mark.object, id);
            }
            self.given.0.push(mark.clone());
        }
    }

    /// A frame leaves the element. Returns true once if objects are marked there and were not found.
    fn leave(&mut self, buffer: &gst::BufferRef) -> bool {
        // A frame that cannot be read is told where it is shown.
        let Followed { objects, .. } = self.read(buffer).unwrap_or_default();
        self.seen = objects.iter().map(|object| object.id).collect();
        self.missing.clear();
        let Some((pts, duration)) = buffer.pts().map(|pts| (pts, buffer.duration())) else { return false };
        let State { marks, given, seen, missing, .. } = self;
        let is_missing = |mark: &&Mark| {
            covers((pts, duration), mark.time) && given.0.contains(mark) && !seen.contains(&mark.object)
        };
        let mut unseen = marks.0.iter().filter(is_missing).map(|mark| mark.object);
        // At a cut, as after a change of settings, the element ends an object that is marked, and refuses its mark.
        if self.asked == Some(pts) {
            missing.extend(unseen);
            return false;
        }
        self.asked = unseen.next().map(|_| pts);
        self.asked.is_some()
    }

    fn read(&self, buffer: &gst::BufferRef) -> Result<Followed, gst::glib::BoolError> {
        let object_of = |id: u32| self.known.iter().find(|(_, own)| **own == id).map(|(object, _)| *object);
        let mut objects = Vec::new();
        for roi in buffer.iter_meta::<VideoRegionOfInterestMeta>() {
            let Some(fields) = roi.params().find(|fields| fields.name() == KIND) else { continue };
            let of = |error: gst::structure::GetError<_>| gst::glib::bool_error!("an object: {error}");
            let Some(id) = object_of(fields.get("id").map_err(of)?) else { continue };
            let (x, y, width, height) = roi.rect();
            let (area, regions) = (fields.get("area").map_err(of)?, fields.get("regions").map_err(of)?);
            objects.push(Object { id, bounds: [x, y, width, height], area, regions });
        }
        objects.sort_by_key(|object| object.id);
        if objects.is_empty() {
            return Ok(Followed::default());
        }
        let meta = SuperpixelMeta::from_buffer(buffer)
            .ok_or_else(|| gst::glib::bool_error!("objects without superpixels"))?;
        let owner = |id: u32| if id == 0 { 0 } else { object_of(id).unwrap_or(0) };
        Ok(Followed { objects, owners: meta.objects()?.into_iter().map(owner).collect() })
    }
}

/// Gives a mark to the element, about the object of an id while that is known, else about a new one; returns its id.
fn give(element: &gst::Element, mark: &Mark, known: Option<u32>) -> Option<u32> {
    match &mark.evidence {
        Evidence::Box([x, y, width, height]) => {
            if let Some(id) = known
                && element.emit_by_name::<bool>("update-object", &[&id, x, y, width, height])
            {
                return Some(id);
            }
            let id = element.emit_by_name::<u32>("add-object", &[x, y, width, height]);
            (id != 0).then_some(id)
        }
        Evidence::Points(points) => {
            let add = |id: u32, ([x, y], is_inside): &([i32; 2], bool)| {
                element.emit_by_name::<u32>("add-point", &[&id, x, y, is_inside])
            };
            let (first, rest) = points.split_first()?;
            // 0 where the element does not know it any more, or no room is left.
            let mut id = known.map_or(0, |id| add(id, first));
            if id == 0 {
                id = add(0, first);
            }
            rest.iter().for_each(|point| {
                add(id, point);
            });
            (id != 0).then_some(id)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: [u32; 2] = [64, 48];

    fn at(milliseconds: u64) -> Moment {
        Moment { size: SIZE, time: gst::ClockTime::from_mseconds(milliseconds) }
    }

    #[test]
    fn a_mark_is_added_corrected_and_removed() {
        let mut marks = Marks::default();
        assert_eq!(marks.add(None, Place::Box([1, 2, 30, 40]), at(40)), Ok(1));
        assert_eq!(marks.add(None, Place::Inside([5, 6]), at(40)), Ok(2));
        assert_eq!(marks.add(Some(2), Place::Outside([7, 8]), at(40)), Ok(2));
        assert_eq!(marks.add(Some(1), Place::Box([0, 0, 9, 9]), at(40)), Ok(1));
        assert_eq!(marks.add(Some(1), Place::Inside([3, 3]), at(0)), Ok(1));
        let listed: Vec<_> = marks.list().into_iter().map(|Listed { id, marks }| (id, marks)).collect();
        assert_eq!(listed, [(1, vec![0.0, 0.04]), (2, vec![0.04])]);
        assert_eq!(
            marks.json()[1],
            json!({ "id": 2, "marks": [{ "time": 0.04, "points": [
                { "x": 5, "y": 6, "inside": true }, { "x": 7, "y": 8, "inside": false }] }] })
        );
        assert!(marks.remove(1) && !marks.remove(1));
        // A free id is given again.
        assert_eq!(marks.add(None, Place::Box([0, 0, 1, 1]), at(0)), Ok(1));
    }

    #[test]
    fn places_and_numbers_out_of_bounds_are_refused_and_change_nothing() {
        let mut marks = Marks::default();
        marks.add(None, Place::Box([0, 0, 9, 9]), at(0)).unwrap();
        let before = marks.clone();
        for (object, place, words) in [
            (None, Place::Box([64, 0, 5, 5]), "no pixel of the picture of 64x48"),
            (None, Place::Box([0, 0, 0, 5]), "no pixel"),
            (None, Place::Box([i32::MIN, 0, i32::MAX, 5]), "no pixel"),
            (None, Place::Inside([64, 0]), "no pixel"),
            (None, Place::Inside([0, -1]), "no pixel"),
            (Some(2), Place::Inside([0, 0]), "no object 2"),
            (Some(0), Place::Inside([0, 0]), "no object 0"),
            (Some(1), Place::Outside([0, 0]), "says nothing by itself"),
            (None, Place::Outside([0, 0]), "says nothing by itself"),
        ] {
            let problem = marks.add(object, place.clone(), at(0)).unwrap_err();
            assert!(problem.what.contains(words), "{place:?}: {problem}");
            assert_eq!(marks, before);
        }
        assert_eq!(marks.add(None, Place::Box([-5, -5, i32::MAX, i32::MAX]), at(0)), Ok(2));
        for _ in 2..MOST_OBJECTS {
            marks.add(None, Place::Inside([0, 0]), at(0)).unwrap();
        }
        assert!(marks.add(None, Place::Inside([0, 0]), at(0)).is_err());
        for frame in 1..MOST_MARKS as u64 {
            marks.add(Some(1), Place::Inside([0, 0]), at(frame)).unwrap();
        }
        assert!(marks.add(Some(1), Place::Inside([0, 0]), at(9999)).is_err());
        for _ in 1..MOST_POINTS {
            marks.add(Some(3), Place::Inside([0, 0]), at(0)).unwrap();
        }
        assert!(marks.add(Some(3), Place::Inside([0, 0]), at(0)).is_err());
    }

    #[test]
    fn a_time_is_that_of_the_frame_on_show_then() {
        let ms = gst::ClockTime::from_mseconds;
        let frame = (ms(40), Some(ms(40)));
        for (time, is_within) in [(39, false), (40, true), (79, true), (80, false)] {
            assert_eq!(covers(frame, ms(time)), is_within, "{time}");
        }
        let lone = (ms(40), None);
        assert!(covers(lone, ms(40)) && !covers(lone, ms(41)));
        for nanoseconds in [0, 1, 33_366_666, 12_345_678_901_234] {
            let time = gst::ClockTime::from_nseconds(nanoseconds);
            assert_eq!(time_of(seconds(time)), Some(time));
        }
        for no_time in [-1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(time_of(no_time), None);
        }
    }
}
