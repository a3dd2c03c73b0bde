// SPDX-License-Identifier: MPL-2.0
//! Requests of an application, which wait for the next frame.

use super::given_mask::GivenMask;
pub(super) use crate::mask::Place;
use crate::mask::parse_place;

/// Most requests that wait.
const MOST_WAITING: usize = 4096;
/// Most masks that wait, which are as large as frames.
const MOST_MASKS: usize = 64;

/// A request about one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Request {
    /// The object is in a box.
    Box { id: u32, place: Place },
    /// A pixel is in the object, or is not.
    Point { id: u32, x: i64, y: i64, is_inside: bool },
    /// The object is in a mask.
    Mask { id: u32, mask: GivenMask },
    /// The object ends.
    Remove { id: u32 },
}

impl Request {
    pub(super) fn id(&self) -> u32 {
        let (Self::Box { id, .. } | Self::Point { id, .. } | Self::Mask { id, .. } | Self::Remove { id }) =
            self;
        *id
    }
}

/// Requests, and the ids of objects.
#[derive(Default)]
pub(super) struct Requests {
    waiting: Vec<Request>,
    /// Ids of objects that are followed.
    known: Vec<u32>,
    last_id: u32,
}

impl Requests {
    /// A new id, 1 or more. Ids are not given again.
    pub(super) fn next_id(&mut self) -> u32 {
        self.last_id = self.last_id.saturating_add(1);
        self.last_id
    }

    /// Returns true for the id of an object that is followed or waits for its first frame.
    fn is_known(&self, id: u32) -> bool {
        let is_about = |request: &Request| request.id() == id && *request != Request::Remove { id };
        self.known.contains(&id) || self.waiting.iter().any(is_about)
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < MOST_WAITING
    }

    /// Adds an object in a box. Returns its id; 0 for a box without area, or if too many requests wait.
    pub(super) fn add(&mut self, place: Place) -> u32 {
        if place[2] <= 0 || place[3] <= 0 || !self.has_room() {
            return 0;
        }
        let id = self.next_id();
        self.waiting.push(Request::Box { id, place });
        id
    }

    /// Adds a point of an object, of a new one where the id is 0. Returns its id; 0 if no such object is known, or if too many
    /// requests wait.
    pub(super) fn add_point(&mut self, id: u32, [x, y]: [i64; 2], is_inside: bool) -> u32 {
        if !self.has_room() || id != 0 && !self.is_known(id) {
            return 0;
        }
        let id = if id == 0 { self.next_id() } else { id };
        self.waiting.push(Request::Point { id, x, y, is_inside });
        id
    }

    /// Says what an object covers, a new one where the id is 0. Returns its id; 0 if no such object is known, or if too many requests or
    /// masks wait.
    pub(super) fn add_mask(&mut self, id: u32, mask: GivenMask) -> u32 {
        let masks = self.waiting.iter().filter(|request| matches!(request, Request::Mask { .. })).count();
        if masks >= MOST_MASKS || !self.has_room() || id != 0 && !self.is_known(id) {
            return 0;
        }
        let id = if id == 0 { self.next_id() } else { id };
        self.waiting.push(Request::Mask { id, mask });
        id
    }

    /// Says where a known object is. Returns false if it is not known, for a box without area, or if too many requests wait.
    pub(super) fn update(&mut self, id: u32, place: Place) -> bool {
        let is_taken = place[2] > 0 && place[3] > 0 && self.has_room() && self.is_known(id);
        if is_taken {
            self.waiting.push(Request::Box { id, place });
        }
        is_taken
    }

    /// Ends a known object. Returns false if it is not known.
    pub(super) fn remove(&mut self, id: u32) -> bool {
        if !self.is_known(id) {
            return false;
        }
        self.waiting.retain(|request| request.id() != id);
        if self.known.contains(&id) {
            self.known.retain(|own| *own != id);
            self.waiting.push(Request::Remove { id });
        }
        true
    }

    /// Moves all that wait to `to`, which is empty.
    pub(super) fn take(&mut self, to: &mut Vec<Request>) {
        std::mem::swap(&mut self.waiting, to);
    }

    /// Takes note of the objects that are followed. One whose end is waited for is not.
    pub(super) fn note(&mut self, ids: impl Iterator<Item = u32>) {
        self.known.clear();
        let waiting = &self.waiting;
        self.known.extend(ids.filter(|id| !waiting.contains(&Request::Remove { id: *id })));
    }
}

/// Boxes from a text: `x,y,width,height`, several with `;` between them.
pub(super) fn boxes(text: &str) -> Result<Vec<Place>, String> {
    let parts = text.split(';').map(str::trim).filter(|part| !part.is_empty());
    let all: Vec<Place> = parts
        .map(|part| parse_place(part).ok_or_else(|| format!("{part} is no box: x,y,width,height in px")))
        .collect::<Result<_, _>>()?;
    if all.len() > MOST_WAITING { Err(format!("{} boxes", all.len())) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_read() {
        assert_eq!(boxes("1,2,3,4"), Ok(vec![[1, 2, 3, 4]]));
        assert_eq!(boxes(" -1, 2,3,4; 5,6,7,8;"), Ok(vec![[-1, 2, 3, 4], [5, 6, 7, 8]]));
        assert_eq!(boxes(""), Ok(Vec::new()));
        for bad in ["1,2,3", "1,2,3,4,5", "1,2,0,4", "1,2,3,-4", "a,b,c,d", "1,2,3,4294967296", "1 2 3 4"] {
            assert!(boxes(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ids_of_requests_are_known_until_they_end() {
        let mut requests = Requests::default();
        assert_eq!((requests.add([0, 0, 1, 0]), requests.add([0, 0, 1, 1])), (0, 1));
        assert_eq!((requests.add_point(0, [0, 0], true), requests.add_point(9, [0, 0], true)), (2, 0));
        assert!(requests.update(2, [0, 0, 2, 2]) && !requests.update(3, [0, 0, 2, 2]));
        assert!(requests.remove(1) && !requests.remove(1));
        let mut taken = Vec::new();
        requests.take(&mut taken);
        assert_eq!(taken.iter().map(Request::id).collect::<Vec<_>>(), [2, 2]);
        requests.note([2, 7].into_iter());
        assert!(requests.remove(2) && !requests.remove(2) && requests.update(7, [0, 0, 1, 1]));
        // An end that came while the frame was worked on.
        requests.note([2, 7].into_iter());
        assert!(!requests.update(2, [0, 0, 1, 1]));
        while requests.add([0, 0, 1, 1]) != 0 {}
        assert_eq!(requests.add_point(7, [0, 0], true), 0);
    }
}
