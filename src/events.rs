// SPDX-License-Identifier: MPL-2.0
//! Births, deaths, splits, merges and cuts: what became of the regions of one frame in the next, from label maps and track ids alone.

use std::cmp::Reverse;

use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::{Geometry, NO_LABEL};
use crate::regions::{Event, Motion, Region};

/// What an [`Event`] says, as its field `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// A region is new, and no single one of the last frame is behind it.
    Birth = 1,
    /// A region is new: more than half of it was in one that goes on, which `other` names.
    Split = 2,
    /// A region of the last frame is gone, and not into a single one.
    Death = 3,
    /// A region of the last frame is gone: more than half of it is now in one that was there before, which `other` names.
    Merge = 4,
    /// No region goes on from the last frame. All others of the frame are births and deaths.
    Cut = 5,
}

impl EventKind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Birth, Self::Split, Self::Death, Self::Merge, Self::Cut];

    /// The kind of an event; `None` where a later version has written another number.
    pub fn of(event: &Event) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == event.kind)
    }
}

/// Name of the memory in errors.
const EVENTS: &str = "events";
/// Overlaps are counted on every second column and row.
const STEP: usize = 2;
/// No label of this frame.
const GONE: u32 = u32::MAX;

/// A region of the frame that is looked at: where its pixels come from, and which it may have split off from.
#[derive(Clone, Copy)]
struct Now {
    motion: [i32; 2],
    is_new: bool,
    /// Track id, or 0.
    other: u32,
}

/// A region of the last frame.
#[derive(Clone, Copy)]
struct Earlier {
    id: u32,
    area: u32,
    /// Its label in this frame, or [`GONE`].
    goes_on: u32,
    /// Track id of the region that it has merged into, or 0.
    other: u32,
}

/// Compares every frame of a stream with the one before.
///
/// A pixel is taken to come from where its region was: its position less the region's velocity, rounded. Of a region that is new the
/// pixels that come from regions that go on are counted, and of a region that is gone those that are in regions that were there before,
/// on every second column and row. Reads label maps and tables only, so that events do not depend on the backend.
#[derive(Default)]
pub struct Events {
    /// Size of the last frame; `None` before the first.
    last: Option<Geometry>,
    labels: Array<u16>,
    earlier: Array<Earlier>,
    now: Array<Now>,
    /// Track ids of this frame with their labels, sorted.
    ids: Array<(u32, u32)>,
    /// Overlaps: of a new region and an earlier one, or with the highest bit of an earlier region and one of now.
    overlaps: Array<(u64, u32)>,
    found: Array<Event>,
}

/// Marks an overlap of a region that is gone.
const OF_GONE: u64 = 1 << 63;

impl Events {
    /// Discards the last frame, so that the next one is the first: it has no events.
    pub fn forget(&mut self) {
        self.last = None;
    }

    /// Finds what has happened since the last frame. A cut comes first, then births and splits in the order of labels, then deaths
    /// and merges in the order of the labels of the last frame. The first frame has none, and neither has one of another size.
    ///
    /// `row` gives a row of the label map, `table` and `motion` are its records; regions without motion stand still.
    ///
    /// # Errors
    ///
    /// If memory is short; the next frame is then the first.
    ///
    /// # Panics
    ///
    /// If a row is shorter than the frame is wide.
    pub fn next<'a>(
        &mut self,
        geometry: Geometry,
        row: impl Fn(usize) -> &'a [u16],
        table: &[Region],
        motion: &[Motion],
    ) -> Result<&[Event]> {
        self.found.clear();
        if self.last.take() == Some(geometry) {
            self.compare(geometry, &row, table, motion)?;
        }
        self.labels.clear();
        for y in 0..geometry.height as usize {
            memory::append(&mut self.labels, EVENTS, &row(y)[..geometry.width as usize])?;
        }
        self.earlier.clear();
        memory::reserve(&mut self.earlier, EVENTS, table.len())?;
        let region =
            |region: &Region| Earlier { id: region.track_id, area: region.area, goes_on: GONE, other: 0 };
        self.earlier.extend(table.iter().map(region));
        self.last = Some(geometry);
        Ok(&self.found)
    }

    fn compare<'a>(
        &mut self,
        geometry: Geometry,
        row: &impl Fn(usize) -> &'a [u16],
        table: &[Region],
        motion: &[Motion],
    ) -> Result<()> {
        let Self { earlier, now, ids, found, .. } = self;
        now.clear();
        memory::reserve(now, EVENTS, table.len())?;
        let motions = motion.iter().map(|motion| motion.velocity).chain(std::iter::repeat([0.0; 2]));
        now.extend(motions.take(table.len()).map(|velocity| Now {
            motion: velocity.map(|v| (v + 0.5).floor() as i32),
            is_new: true,
            other: 0,
        }));
        ids.clear();
        memory::reserve(ids, EVENTS, table.len())?;
        ids.extend(table.iter().zip(0..).map(|(region, label)| (region.track_id, label)));
        ids.sort_unstable();
        for region in earlier.iter_mut() {
            let at = ids.binary_search_by_key(&region.id, |(id, _)| *id);
            if let Ok(at) = at {
                region.goes_on = ids[at].1;
                now[ids[at].1 as usize].is_new = false;
            }
        }
        let is_cut = !(now.is_empty() || earlier.is_empty()) && now.iter().all(|region| region.is_new);
        let changes = now.iter().any(|region| region.is_new) || earlier.iter().any(|r| r.goes_on == GONE);
        memory::reserve(found, EVENTS, 1 + now.len() + earlier.len())?;
        if is_cut {
            found.push(Event { kind: EventKind::Cut as u32, track_id: 0, other: 0, area: 0 });
        } else if changes {
            self.count_overlaps(geometry, row)?;
            self.choose_others(table);
        }
        let Self { earlier, now, found, .. } = self;
        let event = |kinds: [EventKind; 2], track_id, other, area| {
            let kind = kinds[usize::from(other != 0)] as u32;
            Event { kind, track_id, other, area }
        };
        for (region, now) in table.iter().zip(&now[..]).filter(|(_, now)| now.is_new) {
            found.push(event([EventKind::Birth, EventKind::Split], region.track_id, now.other, region.area));
        }
        for region in earlier.iter().filter(|region| region.goes_on == GONE) {
            found.push(event([EventKind::Death, EventKind::Merge], region.id, region.other, region.area));
        }
        Ok(())
    }

    /// Counts the overlaps that could tell of splits and merges.
    fn count_overlaps<'a>(&mut self, geometry: Geometry, row: &impl Fn(usize) -> &'a [u16]) -> Result<()> {
        let Self { labels, earlier, now, overlaps, .. } = self;
        let (width, height) = (geometry.width as usize, geometry.height as usize);
        overlaps.clear();
        for y in (0..height).step_by(STEP) {
            memory::reserve(overlaps, EVENTS, width.div_ceil(STEP))?;
            for (x, &label) in row(y)[..width].iter().enumerate().step_by(STEP) {
                let Some(region) = now.get(usize::from(label)).filter(|_| label != NO_LABEL) else {
                    continue;
                };
                let from = [x, y].map(|v| v as i64);
                let [x, y] = [0, 1]
                    .map(|i| usize::try_from(from[i] - i64::from(region.motion[i])).unwrap_or(usize::MAX));
                if x >= width || y >= height {
                    continue;
                }
                let before = labels[y * width + x];
                let Some(old) = earlier.get(usize::from(before)).filter(|_| before != NO_LABEL) else {
                    continue;
                };
                let goes_on = old.goes_on != GONE;
                if region.is_new != goes_on {
                    continue;
                }
                let (label, before) = (u64::from(label), u64::from(before));
                let key = if goes_on { label << 16 | before } else { OF_GONE | before << 16 | label };
                match overlaps.last_mut() {
                    Some((last, n)) if *last == key => *n += 1,
                    _ => overlaps.push((key, 1)),
                }
            }
        }
        overlaps.sort_unstable();
        overlaps.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        Ok(())
    }

    /// Finds the regions that new ones have split off from, and those that gone ones have merged into: with more than half of the area,
    /// and of several the one with the most (ties: the lowest label).
    fn choose_others(&mut self, table: &[Region]) {
        let Self { earlier, now, overlaps, .. } = self;
        let is_most = |n: u32, area: u32| 2 * (STEP * STEP) as u64 * u64::from(n) > u64::from(area);
        for of_one in overlaps.chunk_by(|(a, _), (b, _)| a >> 16 == b >> 16) {
            let largest = of_one.iter().max_by_key(|&&(key, n)| (n, Reverse(key)));
            let Some(&(key, n)) = largest else { continue };
            let [a, b] = [key >> 16 & 0xffff, key & 0xffff].map(|label| label as usize);
            if key & OF_GONE == 0 {
                if is_most(n, table[a].area) {
                    now[a].other = earlier[b].id;
                }
            } else if is_most(n, earlier[a].area) {
                earlier[a].other = table[b].track_id;
            }
        }
    }
}
