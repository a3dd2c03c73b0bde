// SPDX-License-Identifier: MPL-2.0
//! Temporal mode written down once more: what `src/temporal/mod.rs` says of motion, clusters, identities and cuts, as loops over
//! pixels, cells and regions in wide integers. Places and motions are in 1/16 px.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::FRAC_PI_2;

use super::{NO_LABEL, OUTSIDE};
use gstsuperpixel::algo::grid::Grid;
use gstsuperpixel::algo::{AlgorithmPlan, lsc, slic};
use gstsuperpixel::color::{ColorSpace, unpack};
use gstsuperpixel::params::Params;
use gstsuperpixel::plan::Plan;

type Pair = [i64; 2];

/// A frame's answer: the label map, and of each region its identity, its age and its motion in 1/16 px.
#[derive(Debug)]
pub struct Answer {
    pub labels: Vec<u16>,
    pub ids: Vec<u32>,
    pub ages: Vec<u32>,
    pub motions: Vec<Pair>,
    /// The region of the last frame that it goes on from.
    pub from: Vec<Option<usize>>,
}

/// Parameters of a stream, and the state after its last frame.
pub struct Stream {
    plan: Plan,
    params: Params,
    last: Option<Last>,
    /// The next identity of a region as users see it, and of a superpixel where regions are merged.
    pub next_id: u32,
    next_hidden: u32,
    /// Of the last frame: the merged region of each superpixel, and what is known of merged regions.
    merged: (Vec<usize>, Vec<Way>),
    /// How often what is rare has happened: tests that never get there would say nothing of it.
    pub seen: Seen,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    pub cuts: u32,
    /// Regions whose motion was found to be another than before.
    pub tracked: u32,
    /// Frames in which all slots moved with the picture.
    pub drifts: u32,
    /// Clusters that took a cell in the second or third round, and that found none.
    pub displaced: u32,
    pub ended: u32,
    /// Cells without a cluster, whose pixels are left to a new one.
    pub born: u32,
    /// Regions that took over an identity by overlap, and that took a slot without having a cluster.
    pub adopted: u32,
    pub planted: u32,
    /// Superpixels that go on from what was at their center.
    pub found: u32,
    /// Components of parts, and small ones that were kept.
    pub parts: u32,
    pub kept: u32,
}

struct Last {
    features: Vec<u32>,
    /// Before merging.
    labels: Vec<u16>,
    thumbnail: Vec<i64>,
    ways: Vec<Way>,
    /// By cell; none where clusters do not go on.
    slots: Vec<Slot>,
    /// The region that is a slot's part of a number.
    parts: BTreeMap<(usize, usize), usize>,
    clusters: Vec<Cluster>,
    residual: u128,
}

#[derive(Clone, Default)]
struct Way {
    id: u32,
    age: u32,
    motion: Pair,
    /// The region of the last frame whose identity it has.
    from: Option<usize>,
}

#[derive(Clone, Default)]
struct Slot {
    place: Pair,
    /// Less that of the picture.
    motion: Pair,
    id: u32,
    size: u64,
    region: Option<usize>,
    /// Mean color of the region without a cluster that took the slot.
    planted: Option<[i64; 3]>,
}

/// Origin of a cell's cluster.
struct Source {
    slot: usize,
    motion: Pair,
}

#[derive(Clone)]
enum Cluster {
    /// Color and scaled place; SLICO's largest squared color distance.
    Slic { mean: [i64; 5], spread: i64 },
    /// Sums of the members' ten numbers.
    Lsc([i64; 10]),
}

/// The cluster that a pixel is predicted to belong to, and how it looks beside where it comes from.
#[derive(Clone, Copy)]
struct Prediction {
    cluster: usize,
    /// 0 for the cluster's own region.
    part: usize,
    looks: Looks,
}

#[derive(Clone, Copy)]
enum Looks {
    /// As what was in the same place.
    Stays,
    Eighths(u128),
}

/// Numbers that the documentation gives, or that stand beside it as constants.
const ONE_PX: i64 = 16;
const WARM_ROUNDS: usize = 2;
const MATCH_ROUNDS: usize = 4;
const CLAIM_ROUNDS: usize = 2;

fn whole_px(v: Pair) -> Pair {
    v.map(|v| (v + 8).div_euclid(ONE_PX))
}

fn add(a: Pair, b: Pair) -> Pair {
    [a[0] + b[0], a[1] + b[1]]
}

fn color_difference(a: u32, b: u32) -> i64 {
    (0..3).map(|j| i64::from(unpack(a)[j].abs_diff(unpack(b)[j]))).sum()
}

/// Rounded half up.
fn mean(sum: i64, n: i64) -> i64 {
    (2 * sum + n).div_euclid(2 * n)
}

impl Stream {
    pub fn new(params: &Params, plan: &Plan) -> Self {
        let (params, plan) = (params.clone(), plan.clone());
        Self {
            plan,
            params,
            last: None,
            next_id: 1,
            next_hidden: 1,
            merged: Default::default(),
            seen: Seen::default(),
        }
    }

    pub fn reset(&mut self) {
        self.last = None;
    }

    fn grid(&self) -> &Grid {
        self.plan.grid()
    }

    fn sides(&self) -> Pair {
        [i64::from(self.grid().geometry().width()), i64::from(self.grid().geometry().height())]
    }

    /// Returns true if clusters continue from frame to frame; else only identities do.
    fn has_slots(&self) -> bool {
        let goes_on = matches!(self.plan.algorithm(), AlgorithmPlan::Slic(_) | AlgorithmPlan::Lsc(_));
        goes_on && self.grid().step() > 1
    }

    fn cells(&self) -> Pair {
        [i64::from(self.grid().nx()), i64::from(self.grid().ny())]
    }

    /// Column and row of the cell that a place in px is in.
    fn cell_of(&self, at: Pair) -> Pair {
        let (step, cells) = (i64::from(self.grid().step()), self.cells());
        [0, 1].map(|i| (at[i] / step).min(cells[i] - 1))
    }

    fn index(&self, cell: Pair) -> usize {
        (cell[1] * self.cells()[0] + cell[0]) as usize
    }

    /// Returns true if the cell exists.
    fn is_cell(&self, cell: Pair) -> bool {
        (0..2).all(|i| cell[i] >= 0 && cell[i] < self.cells()[i])
    }

    fn cell(&self, index: usize) -> Pair {
        let nx = self.cells()[0];
        [index as i64 % nx, index as i64 / nx]
    }

    /// The middle between a cell's first and last pixel.
    fn center(&self, index: usize) -> Pair {
        let ([gx, gy], grid) = (self.cell(index), self.grid());
        let middle = |r: std::ops::Range<usize>| ONE_PX / 2 * (r.start + r.end - 1) as i64;
        [middle(grid.columns(gx as usize)), middle(grid.rows(gy as usize))]
    }

    fn pixel(&self, at: Pair) -> usize {
        let [w, h] = self.sides();
        (at[1].clamp(0, h - 1) * w + at[0].clamp(0, w - 1)) as usize
    }

    /// Pixels whose columns and rows are multiples of `step`, in raster order.
    fn lattice(&self, step: usize) -> Vec<Pair> {
        let [w, h] = self.sides();
        (0..h).step_by(step).flat_map(|y| (0..w).step_by(step).map(move |x| [x, y])).collect()
    }

    /// Pixels of the sample lattice that are inside of the mask.
    fn samples(&self, features: &[u32]) -> Vec<Pair> {
        let all = self.lattice(self.grid().sample_step() as usize);
        all.into_iter().filter(|&at| features[self.pixel(at)] != OUTSIDE).collect()
    }

    /// The samples of each region.
    fn samples_of(&self, features: &[u32], labels: &[u16], regions: usize) -> Vec<Vec<Pair>> {
        let mut samples = vec![Vec::new(); regions];
        for at in self.samples(features) {
            samples[usize::from(labels[self.pixel(at)])].push(at);
        }
        samples
    }

    /// Segments the next frame.
    pub fn frame(&mut self, features: &[u32]) -> Answer {
        let thumbnail = self.thumbnail(features);
        let (mut shift, mut unlike) = ([0; 2], false);
        let mut last = self.last.take();
        if let Some(before) = &last {
            (shift, unlike) = self.picture_motion(&thumbnail, &before.thumbnail);
        }
        // Without clusters there is no residual to ask: the thumbnails decide.
        if !self.has_slots() && unlike {
            last = None;
            self.seen.cuts += 1;
        }
        let mut sources: Vec<Option<Source>> = self.every_cell(|_| None);
        let mut released = self.every_cell(|_| false);
        if let Some(before) = &mut last {
            self.track(before, features, shift);
            (sources, released) = self.reassign(before, shift);
        }
        // Motion of each cell's pixels, in whole px.
        let moves: Vec<Pair> =
            sources.iter().map(|source| whole_px(source.as_ref().map_or(shift, |s| s.motion))).collect();

        let was_warm = last.is_some();
        let (clusters, map, residual) = if self.has_slots() {
            self.cluster(&mut last, (&sources, &released), &moves, features, unlike)
        } else {
            (Vec::new(), self.cluster_alone(features), 0)
        };
        let geometry = self.grid().geometry();
        let kept = self.kept(&last, &sources, &map);
        self.seen.kept += kept.len() as u32;
        let labels = if self.plan.connectivity() {
            super::connect_but(geometry, &map, features, self.plan.min_region(), kept.clone())
        } else {
            super::numbered(&map, features)
        };
        let count = labels.iter().filter(|l| **l != NO_LABEL).max().map_or(0, |&l| usize::from(l) + 1);

        let samples = self.samples_of(features, &labels, count);
        let mut ways = vec![Way { motion: last.as_ref().map_or([0; 2], |_| shift), ..Way::default() }; count];
        let mut used = vec![false; last.as_ref().map_or(0, |before| before.ways.len())];
        let mut slots = Vec::new();
        let mut owners = vec![None; count];
        if self.has_slots() {
            slots = self.settled(&last, &sources, &clusters);
            let mains = self.mains(&map, &labels);
            for (k, main) in mains.iter().enumerate() {
                let Some((size, region)) = *main else { continue };
                if owners[region].is_none_or(|owner: usize| mains[owner].is_some_and(|m| size > m.0)) {
                    owners[region] = Some(k);
                }
            }
            if let Some(before) = &last {
                for (region, way) in ways.iter_mut().enumerate() {
                    let Some(slot) = owners[region].map(|k| &slots[k]).filter(|slot| slot.id != 0) else {
                        continue;
                    };
                    let from = slot.region.expect("who has an identity has a region");
                    (way.id, way.age, way.from) = (slot.id, before.ways[from].age + 1, Some(from));
                    used[from] = true;
                }
            }
            for (k, slot) in slots.iter_mut().enumerate() {
                slot.size = mains[k].map_or(0, |main| main.0);
                slot.region = mains[k].map(|main| main.1).filter(|&region| owners[region] == Some(k));
            }
        }
        self.seen.cuts += u32::from(was_warm && last.is_none());
        if let Some(before) = &last {
            let named = ways.iter().filter(|way| way.id != 0).count();
            self.adopt(before, features, &labels, &moves, &mut ways, &mut used);
            self.seen.adopted += (ways.iter().filter(|way| way.id != 0).count() - named) as u32;
        }
        let next = if self.plan.merge().is_some() { &mut self.next_hidden } else { &mut self.next_id };
        number(&mut ways, next);
        for slot in &mut slots {
            slot.id = slot.region.map_or(0, |region| ways[region].id);
            if let (Some(region), true) = (slot.region, last.is_some()) {
                ways[region].motion = add(slot.motion, shift);
            }
        }
        if self.has_slots() {
            self.plant(features, &samples, &owners, &ways, &mut slots);
            self.seen.planted += slots.iter().filter(|slot| slot.planted.is_some()).count() as u32;
        }
        let parts = self.parts(&samples, &map, &labels, &kept, &owners, &ways, &slots);

        if let Some(before) = last.as_ref().filter(|_| self.has_slots() && self.params.hierarchy.regions > 0)
        {
            let centers: Vec<Option<Pair>> = (0..count)
                .map(|region| match owners[region] {
                    Some(k) => Some(slots[k].place),
                    None => centroid(&samples[region]),
                })
                .collect();
            for (way, center) in ways.iter_mut().zip(centers).filter(|(way, _)| way.from.is_none()) {
                way.from = center.and_then(|center| self.origin(before, features, &moves, center));
                self.seen.found += u32::from(way.from.is_some());
            }
        }

        let answer = self.answer(&labels, &ways, features);
        let features = features.to_vec();
        self.last = Some(Last { features, labels, thumbnail, ways, slots, parts, clusters, residual });
        answer
    }

    fn every_cell<T>(&self, f: impl Fn(usize) -> T) -> Vec<T> {
        (0..self.grid().cells()).map(f).collect()
    }

    // Motion.

    /// Side of a thumbnail's squares: a power of two that leaves at most 128 along the longer side.
    fn square(&self) -> i64 {
        let longer = *self.sides().iter().max().unwrap();
        let mut square = 1;
        while square * 128 < longer {
            square *= 2;
        }
        square
    }

    /// Means of channel 0 over what is inside of whole squares, cut to integers; -1 where nothing is.
    fn thumbnail(&self, features: &[u32]) -> Vec<i64> {
        let side = self.square();
        let [columns, rows] = self.sides().map(|s| s / side);
        let mut means = Vec::new();
        for v in 0..rows {
            for u in 0..columns {
                let (mut sum, mut n) = (0, 0);
                for y in 0..side {
                    for x in 0..side {
                        let feature = features[self.pixel([u * side + x, v * side + y])];
                        if feature != OUTSIDE {
                            sum += i64::from(unpack(feature)[0]);
                            n += 1;
                        }
                    }
                }
                means.push(if n == 0 { -1 } else { sum / n });
            }
        }
        means
    }

    /// The shift of the picture, and whether no shift makes the thumbnails alike.
    fn picture_motion(&self, now: &[i64], before: &[i64]) -> (Pair, bool) {
        let side = self.square();
        let [columns, rows] = self.sides().map(|s| s / side);
        let reach = [columns, rows].map(|s| 8.min(s / 4));
        // Squares that every shift can compare.
        let inner = || {
            (reach[1]..rows - reach[1]).flat_map(move |v| (reach[0]..columns - reach[0]).map(move |u| [u, v]))
        };
        let own: Vec<i64> =
            inner().map(|[u, v]| now[(v * columns + u) as usize]).filter(|&mean| mean >= 0).collect();
        let n = own.len() as i64;
        // As if all squares could be compared that have something inside now; half of them have to.
        let difference = |[dx, dy]: Pair| -> i64 {
            let pairs: Vec<(i64, i64)> = inner()
                .map(|[u, v]| {
                    (now[(v * columns + u) as usize], before[((v - dy) * columns + u - dx) as usize])
                })
                .filter(|&(a, b)| a >= 0 && b >= 0)
                .collect();
            let m = pairs.len() as i64;
            let masked = self.params.masked && (m == 0 || 2 * m < n);
            if masked {
                return 1 << 40;
            }
            pairs.iter().map(|(a, b)| (a - b).pow(2)).sum::<i64>() * n / m.max(1)
        };
        // Least difference; ties: the shorter, then the first in raster order.
        let mut best = (i64::MAX, i64::MAX, [0; 2]);
        for dy in -reach[1]..=reach[1] {
            for dx in -reach[0]..=reach[0] {
                let (d, length) = (difference([dx, dy]), dx * dx + dy * dy);
                if (d, length) < (best.0, best.1) {
                    best = (d, length, [dx, dy]);
                }
            }
        }
        let (least, length, at) = best;
        let clear = length == 0 || 8 * least <= 7 * difference([0, 0]);
        let mut shift = [0; 2];
        for axis in 0..2 {
            if !clear {
                continue;
            }
            // The vertex of the parabola through the least and its two neighbors, where there are two.
            let mut vertex = 0;
            if at[axis].abs() < reach[axis] {
                let near = |by: i64| {
                    let mut other = at;
                    other[axis] += by;
                    difference(other)
                };
                let (low, high) = (near(-1), near(1));
                let (slope, bend) = ((low - high).abs(), low + high - 2 * least);
                // What it would explain is at most twice what there is.
                if bend > 0 && slope * (256 * slope / bend) <= 16 * 256 * least {
                    vertex = ONE_PX / 2 * side * (low - high) / (low + high - 2 * least);
                }
            }
            shift[axis] = ONE_PX * side * at[axis] + vertex;
        }
        // Squared differences against the variance: both times the number of squares, squared.
        let sum: i64 = own.iter().sum();
        let squares: i64 = own.iter().map(|mean| mean.pow(2)).sum();
        let (eighths, noise) = if self.has_slots() { (10, 0) } else { (9, 64) };
        (shift, 8 * least * n > eighths * (n * squares - sum * sum) + 8 * noise * n * n)
    }

    /// Gives every slot that has a region the motion of that region's samples.
    fn track(&mut self, last: &mut Last, features: &[u32], shift: Pair) {
        let (step, sample) = (self.grid().step() as usize, self.grid().sample_step() as usize);
        let lattice = self.lattice(sample * (step / 8).div_ceil(sample).max(1));
        let most = if self.params.hierarchy.regions > 0 { 120 } else { i64::MAX };
        // Six quanta a px, fewer in frames with a side above 864 px, in 1/256.
        let [w, h] = self.sides();
        let px = 6 * 256 * 864 / w.max(h).max(864);
        let mut tracked = 0;
        for k in 0..last.slots.len() {
            let Some(region) = last.slots[k].region else { continue };
            let cell = self.cell(k);
            let samples: Vec<Pair> = lattice
                .iter()
                .copied()
                .filter(|&at| usize::from(last.labels[self.pixel(at)]) == region)
                .filter(|&at| (0..2).all(|i| (self.cell_of(at)[i] - cell[i]).abs() <= 1))
                .collect();
            let n = samples.len() as i64;
            let difference = |by: Pair| -> i64 {
                let pair = |&at: &Pair| (features[self.pixel(add(at, by))], last.features[self.pixel(at)]);
                samples.iter().map(pair).map(|(now, before)| color_difference(now, before)).sum()
            };
            let still = difference([0, 0]);
            let flat = |by: Pair| still < n * 30.max((px * by[0].abs().max(by[1].abs()) / 256).min(most));
            let own = whole_px(add(shift, last.slots[k].motion));
            let mut best = ([0, 0], still);
            if !flat([0, 0]) {
                let around = |hop: i64| {
                    move |[x, y]: Pair| -> Vec<Pair> {
                        let ring = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| [dx, dy]));
                        ring.filter(|&d| d != [0, 0]).map(|d| [x + hop * d[0], y + hop * d[1]]).collect()
                    }
                };
                let (two, one) = (around(2), around(1));
                for offers in [&|_| vec![own, whole_px(shift)], &two as &dyn Fn(Pair) -> Vec<Pair>, &one] {
                    // Clearly better than what was the best before: by an eighth, and by three quanta a sample.
                    let mut bar = (best.1 - best.1 / 8 - 3 * n).max(0);
                    for by in offers(best.0) {
                        let d = difference(by);
                        if d < bar {
                            (best, bar) = ((by, d), d);
                        }
                    }
                }
                if flat(best.0) {
                    best.0 = [0, 0];
                }
            }
            if best.0 != own {
                tracked += 1;
                last.slots[k].motion = [0, 1].map(|i| ONE_PX * best.0[i] - shift[i]);
            }
        }
        self.seen.tracked += tracked;
    }

    /// Finds the origin of each cell's cluster, and the cells that are left to new ones.
    fn reassign(&mut self, last: &Last, shift: Pair) -> (Vec<Option<Source>>, Vec<bool>) {
        let (step, sides) = (i64::from(self.grid().step()), self.sides());
        // Half a cell and more, in the mean over clusters that own a region, make the slots move.
        let owners: Vec<usize> = (0..last.slots.len())
            .filter(|&k| last.slots[k].region.is_some() && last.slots[k].planted.is_none())
            .collect();
        let along = [0, 1].map(|i| {
            let sum: i64 = owners.iter().map(|&k| last.slots[k].place[i] - self.center(k)[i]).sum();
            let offset = sum.div_euclid(owners.len().max(1) as i64) + shift[i];
            (2 * offset + ONE_PX * step).div_euclid(2 * ONE_PX * step)
        });
        let reach = match self.plan.algorithm() {
            AlgorithmPlan::Lsc(_) => ONE_PX * step * 3 / 2,
            _ => i64::MAX,
        };
        let now = |slot: &Slot| add(slot.place, add(shift, slot.motion));
        let distance = |a: Pair, b: Pair| [0, 1].map(|i| (a[i] - b[i]).abs());
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        let mut wanting: BTreeMap<usize, usize> = BTreeMap::new();
        let mut displaced = 0;
        for (h, slot) in last.slots.iter().enumerate().filter(|(_, slot)| slot.region.is_some()) {
            let at = now(slot);
            if (0..2).any(|i| at[i] < 0 || at[i] > ONE_PX * (sides[i] - 1)) {
                continue;
            }
            let moved = add(self.cell(h), along);
            let stays = self.is_cell(moved)
                && distance(at, self.center(self.index(moved))).iter().all(|&d| d <= 9 * ONE_PX * step / 10);
            let cell = if stays { moved } else { self.cell_of(at.map(|v| v / ONE_PX)) };
            wanting.insert(h, self.index(cell));
        }
        // First all of them, then those without a cell twice more.
        for round in 0..=CLAIM_ROUNDS {
            if round > 0 {
                wanting.retain(|h, cell| taken.get(cell) != Some(h));
                let free = |h: usize, cell: usize| {
                    let at = now(&last.slots[h]);
                    let [gx, gy] = self.cell(cell);
                    let near = (gy - 2..=gy + 2).flat_map(|y| (gx - 2..=gx + 2).map(move |x| [x, y]));
                    near.filter(|&cell| self.is_cell(cell))
                        .map(|cell| self.index(cell))
                        .filter(|cell| !taken.contains_key(cell))
                        .map(|cell| (distance(at, self.center(cell)), cell))
                        .filter(|(d, _)| d.iter().all(|&d| d <= reach))
                        .min_by_key(|&(d, cell)| (d[0] * d[0] + d[1] * d[1], cell))
                        .map(|(_, cell)| cell)
                };
                wanting = wanting.iter().filter_map(|(&h, &cell)| Some((h, free(h, cell)?))).collect();
            }
            let mut largest: BTreeMap<usize, usize> = BTreeMap::new();
            for (&h, &cell) in wanting.iter().filter(|(_, cell)| !taken.contains_key(cell)) {
                let best = largest.entry(cell).or_insert(h);
                if last.slots[h].size > last.slots[*best].size {
                    *best = h;
                }
            }
            displaced += if round > 0 { largest.len() as u32 } else { 0 };
            taken.extend(largest);
        }
        let ended = (last.slots.iter().filter(|slot| slot.region.is_some()).count() - taken.len()) as u32;
        let source = |c: usize| {
            let &slot = taken.get(&c)?;
            Some(Source { slot, motion: add(shift, last.slots[slot].motion) })
        };
        let sources = self.every_cell(source);
        let released = self.every_cell(|c| {
            let before = self.cell(c);
            let before = [0, 1].map(|i| before[i] - along[i]);
            let held = self.is_cell(before)
                && last.slots.get(self.index(before)).is_some_and(|slot| slot.region.is_some());
            sources[c].is_none() && !held
        });
        self.seen.born += released.iter().filter(|&&released| released).count() as u32;
        self.seen.drifts += u32::from(along != [0, 0]);
        self.seen.displaced += displaced;
        self.seen.ended += ended;
        (sources, released)
    }

    // Clusters.

    /// The clusters of algorithms that do not go on from the last frame, by any names.
    fn cluster_alone(&self, features: &[u32]) -> Vec<u32> {
        let grid = self.grid();
        let wide = |labels: Vec<u16>| labels.into_iter().map(u32::from).collect();
        match self.plan.algorithm() {
            AlgorithmPlan::Slic(slic) => wide(super::slic(grid, slic, features)),
            AlgorithmPlan::Lsc(lsc) => wide(super::lsc(grid, lsc, features)),
            AlgorithmPlan::Snic(snic) => wide(super::snic(grid, snic, features)),
            AlgorithmPlan::QuickShift(own) => super::quickshift(grid.geometry(), own, features),
        }
    }

    /// Clusters and every pixel's, and the residual. Takes `last` away where the first round tells of a cut.
    fn cluster(
        &self,
        last: &mut Option<Last>,
        (sources, released): (&[Option<Source>], &[bool]),
        moves: &[Pair],
        features: &[u32],
        unlike: bool,
    ) -> (Vec<Cluster>, Vec<u32>, u128) {
        let samples = self.samples(features);
        let pixels = self.lattice(1);
        // The last residual as if it were of as many samples, and one that nothing exceeds if there were none.
        let residual_of = |before: &Last| match self.samples(&before.features).len() as u128 {
            0 => (self.lattice(self.grid().sample_step() as usize).len() as u128) << 32,
            n => before.residual * samples.len() as u128 / n,
        };
        let last_residual = last.as_ref().map_or(0, residual_of);
        let measure = Measure::new(self, features, last_residual);
        let mut predictions = vec![None; pixels.len()];
        let mut clusters = self.every_cell(|k| measure.seed(k));
        let mut rounds = measure.rounds();
        if let Some(before) = last.as_ref() {
            rounds = WARM_ROUNDS;
            predictions = self.predictions(before, (sources, released), moves, features);
            for (k, source) in sources.iter().enumerate() {
                if let Some(source) = source {
                    let slot = &before.slots[source.slot];
                    clusters[k] = measure.moved(&before.clusters[source.slot], slot, source.motion);
                }
            }
        }
        for round in 0..rounds {
            let (mut members, residual) = measure.assign(&clusters, &samples, &predictions);
            if let (Some(_), 0) = (last.as_ref(), round) {
                let most = if unlike { 2 } else { 4 };
                if residual > most * last_residual + samples.len() as u128 {
                    *last = None;
                    predictions = vec![None; pixels.len()];
                    clusters = self.every_cell(|k| measure.seed(k));
                    (members, _) = measure.assign(&clusters, &samples, &predictions);
                }
            }
            measure.update(&mut clusters, &samples, &members);
        }
        let (map, _) = measure.assign(&clusters, &pixels, &predictions);
        let (_, residual) = measure.assign(&clusters, &samples, &predictions);
        let map: Vec<usize> = map
            .iter()
            .zip(&predictions)
            .map(|(&k, predicted)| match predicted {
                Some(predicted) if predicted.cluster == k => k + self.grid().cells() * predicted.part,
                _ => k,
            })
            .collect();
        let inside = |(k, &feature): (usize, &u32)| if feature == OUTSIDE { u32::MAX } else { k as u32 };
        (clusters, map.into_iter().zip(features).map(inside).collect(), residual)
    }

    /// The prediction for every pixel.
    fn predictions(
        &self,
        last: &Last,
        (sources, released): (&[Option<Source>], &[bool]),
        moves: &[Pair],
        features: &[u32],
    ) -> Vec<Option<Prediction>> {
        // Cell of the cluster of each of the last frame's regions, and the number as a part.
        let mut homes = BTreeMap::new();
        for (cell, source) in sources.iter().enumerate() {
            let Some(source) = source else { continue };
            if let Some(region) = last.slots[source.slot].region {
                homes.insert(region, (cell, 0));
            }
            for (&(_, part), &region) in last.parts.iter().filter(|((slot, _), _)| *slot == source.slot) {
                homes.insert(region, (cell, part));
            }
        }
        let predict = |at: Pair| -> Option<Prediction> {
            let home = self.cell_of(at);
            if released[self.index(home)] {
                return None;
            }
            let by = moves[self.index(home)];
            let (here, there) = (self.pixel(at), self.pixel([at[0] - by[0], at[1] - by[1]]));
            let (from, looks) = if color_difference(features[here], last.features[here]) < 45 {
                (here, Looks::Stays)
            } else {
                // Eighths of 128 quanta, rounded up.
                let alike = (128 - color_difference(features[here], last.features[there])).max(0);
                (there, Looks::Eighths((alike as u128).div_ceil(16)))
            };
            let &(cluster, part) = homes.get(&usize::from(last.labels[from]))?;
            let near = (0..2).all(|i| (self.cell(cluster)[i] - home[i]).abs() <= 1);
            near.then_some(Prediction { cluster, part, looks })
        };
        self.lattice(1).into_iter().map(predict).collect()
    }

    /// The slots of this frame before identities are known: what came along with the cluster of each.
    fn settled(&self, last: &Option<Last>, sources: &[Option<Source>], clusters: &[Cluster]) -> Vec<Slot> {
        self.every_cell(|k| {
            let place = self.place_of(k, &clusters[k]);
            match (last, &sources[k]) {
                (Some(before), Some(source)) => {
                    Slot { place, planted: None, ..before.slots[source.slot].clone() }
                }
                _ => Slot { place, ..Slot::default() },
            }
        })
    }

    fn place_of(&self, k: usize, cluster: &Cluster) -> Pair {
        match (self.plan.algorithm(), cluster) {
            (AlgorithmPlan::Slic(plan), Cluster::Slic { mean, .. }) => {
                [3, 4].map(|j| rescaled(mean[j], slic_scales(self, plan)[0]))
            }
            (AlgorithmPlan::Lsc(_), Cluster::Lsc(sums)) => {
                let cell = self.cell(k);
                let (x, y) = self.grid().seed(cell[0] as usize, cell[1] as usize);
                [(x, 6), (y, 8)].map(|(near, j)| self.pointed_at([sums[j], sums[j + 1]], near as i64))
            }
            _ => unreachable!("clusters are the algorithm's"),
        }
    }

    /// The position that a pair of LSC points to: the middle of a px, of those a turn of four steps apart the nearest
    /// to `near`.
    fn pointed_at(&self, v: Pair, near: i64) -> i64 {
        if v == [0, 0] {
            return near * ONE_PX;
        }
        let turn = 4 * i64::from(self.grid().step());
        let past = |px: i64| {
            let t = turned(self, px);
            t[0] * v[1] - t[1] * v[0]
        };
        // Not before the px's own direction, and before the next one's.
        let at = (0..turn).find(|&px| past(px) >= 0 && past(px + 1) < 0).expect("a direction is between two");
        let turns = (2 * (near - at) + turn).div_euclid(2 * turn);
        ONE_PX * (at + turns * turn) + ONE_PX / 2
    }

    // Identities.

    /// Of each cluster that has pixels the size of its main component, and the region that this is part of.
    fn mains(&self, map: &[u32], labels: &[u16]) -> Vec<Option<(u64, usize)>> {
        let mut mains = vec![None; self.grid().cells()];
        if !self.plan.connectivity() {
            // All of a cluster is its region: sizes do not matter.
            for (&k, &label) in map.iter().zip(labels).filter(|(_, label)| **label != NO_LABEL) {
                mains[k as usize] = Some((1, usize::from(label)));
            }
            return mains;
        }
        let sizes = self.component_sizes(map);
        for (root, size) in sizes.into_iter().filter(|&(root, _)| labels[root] != NO_LABEL) {
            // Parts have no slot.
            let Some(main) = mains.get_mut(map[root] as usize) else { continue };
            if main.is_none_or(|(most, _)| size > most) {
                *main = Some((size, usize::from(labels[root])));
            }
        }
        mains
    }

    /// Numbers of parts that labels of 16 bits can name.
    fn part_numbers(&self) -> usize {
        let cells = self.grid().cells();
        if self.has_slots() && self.plan.connectivity() {
            (65535 / cells).saturating_sub(1).min(7)
        } else {
            0
        }
    }

    /// First pixels of the components below the smallest region that are kept.
    fn kept(&self, last: &Option<Last>, sources: &[Option<Source>], map: &[u32]) -> BTreeSet<usize> {
        let Some(last) = last.as_ref().filter(|_| self.has_slots() && self.plan.connectivity()) else {
            return BTreeSet::new();
        };
        let smallest = u64::from(self.plan.min_region());
        let is_kept = |&(root, size): &(usize, u64)| {
            let least = match sources.get(map[root] as usize) {
                None if map[root] == u32::MAX => return false,
                None => smallest * 9 / 16,
                Some(None) => smallest,
                Some(Some(source)) => {
                    (last.slots[source.slot].size * 9 / 16).clamp(smallest * 9 / 16, smallest)
                }
            };
            size < smallest && size >= least
        };
        let sizes = self.component_sizes(map);
        sizes.into_iter().filter(is_kept).map(|(root, _)| root).collect()
    }

    /// Pixels of each component of the map, by its first pixel.
    fn component_sizes(&self, map: &[u32]) -> BTreeMap<usize, u64> {
        let mut sizes: BTreeMap<usize, u64> = BTreeMap::new();
        for root in super::components(self.grid().geometry(), map) {
            *sizes.entry(root).or_default() += 1;
        }
        sizes
    }

    /// Regions without a slot become parts of clusters.
    #[allow(clippy::too_many_arguments)]
    fn parts(
        &mut self,
        samples: &[Vec<Pair>],
        map: &[u32],
        labels: &[u16],
        kept: &BTreeSet<usize>,
        owners: &[Option<usize>],
        ways: &[Way],
        slots: &[Slot],
    ) -> BTreeMap<(usize, usize), usize> {
        let (numbers, cells) = (self.part_numbers(), self.grid().cells());
        let mut parts: BTreeMap<(usize, usize), (usize, usize)> = BTreeMap::new();
        if numbers == 0 {
            return BTreeMap::new();
        }
        let sizes = self.component_sizes(map);
        for region in (0..owners.len()).filter(|&region| owners[region].is_none()) {
            let taken = slots.iter().any(|slot| slot.planted.is_some() && slot.region == Some(region));
            let is_own = |&i: &usize| usize::from(labels[i]) == region;
            let samples = samples[region].len();
            if taken || samples == 0 {
                continue;
            }
            let is_large = |root: &usize| {
                sizes.get(root).is_some_and(|&n| n >= u64::from(self.plan.min_region()))
                    || kept.contains(root)
            };
            let first = (0..labels.len()).find(is_own).expect("a region has pixels");
            let large = sizes.keys().copied().find(|root| is_own(root) && is_large(root));
            let slot = map[large.unwrap_or(first)] as usize % cells;
            let part = parts.entry((slot, 1 + ways[region].id as usize % numbers)).or_insert((0, region));
            // The larger of several; they come in the order of their labels.
            if samples > part.0 {
                *part = (samples, region);
            }
        }
        self.seen.parts +=
            sizes.keys().filter(|&&r| map[r] != u32::MAX && map[r] as usize >= cells).count() as u32;
        parts.into_iter().map(|(key, (_, region))| (key, region)).collect()
    }

    /// Regions without an identity take over free ones.
    fn adopt(
        &self,
        last: &Last,
        features: &[u32],
        labels: &[u16],
        moves: &[Pair],
        ways: &mut [Way],
        used: &mut [bool],
    ) {
        let mut overlaps: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for at in self.samples(features) {
            let by = moves[self.index(self.cell_of(at))];
            let region = usize::from(labels[self.pixel(at)]);
            let earlier = usize::from(last.labels[self.pixel([at[0] - by[0], at[1] - by[1]])]);
            if earlier != usize::from(NO_LABEL) {
                *overlaps.entry((region, earlier)).or_default() += 1;
            }
        }
        unite(&overlaps, ways, &last.ways, used);
    }

    /// The last frame's region at a place: where it is if that looks the same, else where its cell comes from.
    fn origin(&self, last: &Last, features: &[u32], moves: &[Pair], center: Pair) -> Option<usize> {
        let sides = self.sides();
        let at = [0, 1].map(|i| (center[i] / ONE_PX).clamp(0, sides[i] - 1));
        let by = moves[self.index(self.cell_of(at))];
        let here = self.pixel(at);
        let looks_the_same = color_difference(features[here], last.features[here]) < 45;
        let from = if looks_the_same { here } else { self.pixel([at[0] - by[0], at[1] - by[1]]) };
        Some(usize::from(last.labels[from])).filter(|&region| region != usize::from(NO_LABEL))
    }

    /// Regions without a cluster take slots nearby that no region belongs to.
    fn plant(
        &self,
        features: &[u32],
        samples: &[Vec<Pair>],
        owners: &[Option<usize>],
        ways: &[Way],
        slots: &mut [Slot],
    ) {
        struct Claim {
            region: usize,
            samples: i64,
            place: Pair,
            color: [i64; 3],
        }
        let mut claims: BTreeMap<usize, Claim> = BTreeMap::new();
        for region in (0..owners.len()).filter(|&region| owners[region].is_none()) {
            let own = &samples[region];
            let n = own.len() as i64;
            if n == 0 {
                continue;
            }
            let sum = |of: &dyn Fn(Pair) -> i64| own.iter().map(|&at| of(at)).sum::<i64>();
            let place = [0, 1].map(|i| mean(ONE_PX * sum(&|at| at[i]), n));
            let channel = |j: usize| move |at: Pair| i64::from(unpack(features[self.pixel(at)])[j]);
            let color = [0, 1, 2].map(|j| mean(sum(&channel(j)), n));
            let [gx, gy] = self.cell_of(place.map(|v| v / ONE_PX));
            let near = (gy - 1..=gy + 1).flat_map(|y| (gx - 1..=gx + 1).map(move |x| [x, y]));
            let nearest = near
                .filter(|&cell| self.is_cell(cell))
                .map(|cell| self.index(cell))
                .filter(|&k| slots[k].region.is_none())
                .min_by_key(|&k| {
                    let center = self.center(k);
                    ((0..2).map(|i| (place[i] - center[i]).pow(2)).sum::<i64>(), k)
                });
            // The larger of several; they come in the order of their labels.
            if let Some(k) = nearest
                && claims.get(&k).is_none_or(|claim| n > claim.samples)
            {
                claims.insert(k, Claim { region, samples: n, place, color });
            }
        }
        let area = i64::from(self.grid().sample_step()).pow(2);
        for (k, claim) in claims {
            slots[k] = Slot {
                place: claim.place,
                motion: slots[k].motion,
                id: ways[claim.region].id,
                size: (claim.samples * area) as u64,
                region: Some(claim.region),
                planted: Some(claim.color),
            };
        }
    }

    /// Regions that users see: superpixels, or the regions that they are merged to.
    fn answer(&mut self, labels: &[u16], ways: &[Way], features: &[u32]) -> Answer {
        if self.plan.merge().is_none() {
            return Answer::new(labels.to_vec(), ways);
        }
        let quanta = if self.plan.color_space() == ColorSpace::Rgb { 4.0 } else { 8.0 };
        let merged = super::merge(self.grid().geometry(), labels, features, &self.params.merge, quanta);
        let mut parts = vec![(0, 0i64); ways.len()];
        for (&label, &to) in labels.iter().zip(&merged).filter(|(_, to)| **to != NO_LABEL) {
            let part = &mut parts[usize::from(label)];
            *part = (usize::from(to), part.1 + 1);
        }
        let count = parts.iter().map(|part| part.0 + 1).max().unwrap_or(0);
        let mut regions = vec![Way::default(); count];
        // A superpixel votes, with its pixels, for the merged region that its predecessor was in.
        let (numbers, before) = std::mem::take(&mut self.merged);
        let mut votes: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (way, &(to, size)) in ways.iter().zip(&parts) {
            if let Some(from) = way.from {
                *votes.entry((to, numbers[from])).or_default() += size as u64;
            }
        }
        unite(&votes, &mut regions, &before, &mut vec![false; before.len()]);
        number(&mut regions, &mut self.next_id);
        for (r, region) in regions.iter_mut().enumerate() {
            let own = || ways.iter().zip(&parts).filter(|(_, part)| part.0 == r);
            let pixels: i64 = own().map(|(_, part)| part.1).sum();
            region.motion =
                [0, 1].map(|i| mean(own().map(|(way, part)| part.1 * way.motion[i]).sum(), pixels));
        }
        let answer = Answer::new(merged, &regions);
        self.merged = (parts.into_iter().map(|part| part.0).collect(), regions);
        answer
    }
}

impl Answer {
    fn new(labels: Vec<u16>, ways: &[Way]) -> Self {
        Self {
            labels,
            ids: ways.iter().map(|way| way.id).collect(),
            ages: ways.iter().map(|way| way.age).collect(),
            motions: ways.iter().map(|way| way.motion).collect(),
            from: ways.iter().map(|way| way.from).collect(),
        }
    }
}

/// The mean of a region's samples, where it has any.
fn centroid(samples: &[Pair]) -> Option<Pair> {
    let n = samples.len() as i64;
    (n > 0).then(|| [0, 1].map(|i| mean(ONE_PX * samples.iter().map(|at| at[i]).sum::<i64>(), n)))
}

/// In four rounds those unite that are each other's best: most overlap, then the lower number.
fn unite(overlaps: &BTreeMap<(usize, usize), u64>, ways: &mut [Way], before: &[Way], used: &mut [bool]) {
    for _ in 0..MATCH_ROUNDS {
        let open = |region: usize, earlier: usize| ways[region].id == 0 && !used[earlier];
        let pairs: Vec<(usize, usize, u64)> = overlaps
            .iter()
            .map(|(&(region, earlier), &n)| (region, earlier, n))
            .filter(|&(region, earlier, _)| open(region, earlier))
            .collect();
        let better = |n: u64, i: usize, than: (u64, usize)| n > than.0 || n == than.0 && i < than.1;
        let agreed: Vec<(usize, usize)> = pairs
            .iter()
            .filter(|&&(region, earlier, n)| {
                pairs.iter().all(|&(r, e, m)| {
                    (r != region || e == earlier || better(n, earlier, (m, e)))
                        && (e != earlier || r == region || better(n, region, (m, r)))
                })
            })
            .map(|&(region, earlier, _)| (region, earlier))
            .collect();
        for (region, earlier) in agreed {
            used[earlier] = true;
            let (way, old) = (&mut ways[region], &before[earlier]);
            (way.id, way.age, way.from) = (old.id, old.age + 1, Some(earlier));
        }
    }
}

/// New identities in label order.
fn number(ways: &mut [Way], next: &mut u32) {
    for way in ways.iter_mut().filter(|way| way.id == 0) {
        way.id = *next;
        *next = next.checked_add(1).unwrap_or(1);
    }
}

/// SLIC: a scaled place of 1 in 1/16 px, and the other way, in 1/65536.
fn slic_scales(stream: &Stream, plan: &slic::Plan) -> Pair {
    let gstsuperpixel::algo::AlgorithmParams::Slic(own) = &stream.params.algorithm else {
        unreachable!("a plan of SLIC")
    };
    // 8 quanta a unit; what is coarser by half has half of them. SLICO's places are as if m were 64.
    let m = if own.adaptive_compactness {
        64.0
    } else {
        f64::from(own.compactness) / f64::from(1u32 << plan.color_shift)
    };
    let quanta = 8.0 * m / (f64::from(stream.grid().step()) * ONE_PX as f64);
    [1.0 / quanta, quanta].map(|v| (v * 65536.0).round() as i64)
}

fn rescaled(v: i64, scale: i64) -> i64 {
    (v * scale + 32768).div_euclid(65536)
}

/// LSC: the direction of a px, as a pair of length 2^14.
fn turned(stream: &Stream, px: i64) -> Pair {
    let step = i64::from(stream.grid().step());
    let angle = px.rem_euclid(4 * step) as f64 / step as f64 * FRAC_PI_2;
    [angle.cos(), angle.sin()].map(|v| (v * 16384.0).round() as i64)
}

/// A cluster of LSC as scores of pixels take it: `w t` of each number, and the sum of `w t²`.
struct LscTerms {
    weighted: [f32; 10],
    square: f32,
}

/// How pixels are compared with clusters in one frame.
struct Measure<'a> {
    stream: &'a Stream,
    features: &'a [u32],
    /// In 1/256: what is spared at most.
    sure: u128,
    /// What is spared at most of moved pixels, per eighth of similarity, and of those that stay.
    eighth: u128,
    still: u128,
    /// LSC: the mean color of the samples.
    mean: [i64; 6],
}

impl<'a> Measure<'a> {
    fn new(stream: &'a Stream, features: &'a [u32], residual: u128) -> Self {
        let samples = stream.samples(features);
        let wanted = (f64::from(stream.params.temporal_inertia) * 256.0).round() as u128;
        let of_mean = |times: u128| {
            (residual / samples.len().max(1) as u128 * times * wanted / 256).min(u128::from(u32::MAX))
        };
        let mut all = Self {
            stream,
            features,
            sure: (5 * wanted).min(252),
            eighth: of_mean(6) / 8,
            still: of_mean(45),
            mean: [0; 6],
        };
        if let AlgorithmPlan::Lsc(_) = stream.plan.algorithm() {
            let n = samples.len() as i64;
            let nothing = all.numbers_of(unpack(OUTSIDE).map(i64::from), [0, 0]);
            all.mean = std::array::from_fn(|j| match n {
                0 => nothing[j],
                _ => mean(samples.iter().map(|&at| all.numbers(at)[j]).sum(), n),
            });
        }
        all
    }

    fn rounds(&self) -> usize {
        match self.stream.plan.algorithm() {
            AlgorithmPlan::Slic(plan) => plan.iterations as usize,
            AlgorithmPlan::Lsc(plan) => plan.iterations as usize,
            _ => unreachable!("clusters of a grid"),
        }
    }

    /// SLIC: color in quanta and scaled place. LSC: ten numbers, color before place.
    fn numbers(&self, at: Pair) -> Vec<i64> {
        let color = unpack(self.features[self.stream.pixel(at)]).map(i64::from);
        self.numbers_of(color, at)
    }

    fn numbers_of(&self, color: [i64; 3], [x, y]: Pair) -> Vec<i64> {
        let (x, y) = (x as usize, y as usize);
        match self.stream.plan.algorithm() {
            AlgorithmPlan::Slic(plan) => {
                let [l, a, b] = color.map(|v| v >> plan.color_shift);
                vec![l, a, b, i64::from(plan.px[x]), i64::from(plan.py[y])]
            }
            AlgorithmPlan::Lsc(plan) => {
                let [l, a, b] = color.map(|v| v as usize);
                [plan.color.l[l], plan.color.ab[a], plan.color.ab[b], plan.px[x], plan.py[y]]
                    .into_iter()
                    .flat_map(|pair| [i64::from(pair as u16 as i16), i64::from((pair >> 16) as u16 as i16)])
                    .collect()
            }
            _ => unreachable!("clusters of a grid"),
        }
    }

    fn first_spread(&self) -> i64 {
        match self.stream.plan.algorithm() {
            AlgorithmPlan::Slic(plan) => plan.adaptive.map_or(1, |adaptive| i64::from(adaptive.initial)),
            _ => 1,
        }
    }

    fn cluster_of(&self, numbers: &[i64]) -> Cluster {
        match numbers.try_into() {
            Ok(mean) => Cluster::Slic { mean, spread: self.first_spread() },
            Err(_) => Cluster::Lsc(numbers.try_into().expect("ten numbers")),
        }
    }

    fn seed(&self, k: usize) -> Cluster {
        let (x, y) = super::seed(self.stream.grid(), self.features, k);
        self.cluster_of(&self.numbers([x as i64, y as i64]))
    }

    /// A cluster of the last frame, or the region that took its slot, where it is now.
    fn moved(&self, cluster: &Cluster, slot: &Slot, by: Pair) -> Cluster {
        let planted = slot.planted;
        match (self.stream.plan.algorithm(), cluster) {
            (AlgorithmPlan::Slic(plan), Cluster::Slic { mean, .. }) => {
                let scale = slic_scales(self.stream, plan)[1];
                let mut mean = *mean;
                if let Some(color) = planted {
                    let [l, a, b] = color.map(|v| v >> plan.color_shift);
                    let [x, y] = slot.place.map(|v| rescaled(v, scale));
                    mean = [l, a, b, x, y];
                }
                mean[3] += rescaled(by[0], scale);
                mean[4] += rescaled(by[1], scale);
                Cluster::Slic { mean, spread: self.first_spread() }
            }
            (AlgorithmPlan::Lsc(_), Cluster::Lsc(sums)) => {
                let mut sums = *sums;
                if let Some(color) = planted {
                    let sides = self.stream.sides();
                    let at = whole_px(slot.place);
                    let at = [0, 1].map(|i| at[i].clamp(0, sides[i] - 1));
                    sums = self.numbers_of(color, at).try_into().expect("ten numbers");
                }
                let by = whole_px(by);
                for (axis, j) in [(0, 6), (1, 8)] {
                    let ([c, s], [x, y]) = (turned(self.stream, by[axis]), [sums[j], sums[j + 1]]);
                    sums[j] = (x * c - y * s + 8192).div_euclid(16384);
                    sums[j + 1] = (x * s + y * c + 8192).div_euclid(16384);
                }
                Cluster::Lsc(sums)
            }
            _ => unreachable!("clusters are the algorithm's"),
        }
    }

    /// The distance after a discount; `unit` is the number of its units in one of the residual's.
    fn left(&self, distance: u128, looks: Looks, unit: u128) -> u128 {
        let most = distance * self.sure / 256;
        let bound = match looks {
            Looks::Stays => self.still,
            Looks::Eighths(n) => n * self.eighth,
        };
        distance - most.min(bound * unit)
    }

    /// The cluster of each of some pixels, and the sum of their least distances, of which nothing is spared.
    fn assign(
        &self,
        clusters: &[Cluster],
        pixels: &[Pair],
        predictions: &[Option<Prediction>],
    ) -> (Vec<usize>, u128) {
        let terms: Vec<LscTerms> = match self.stream.plan.algorithm() {
            AlgorithmPlan::Lsc(plan) => clusters.iter().map(|cluster| self.terms(plan, cluster)).collect(),
            _ => Vec::new(),
        };
        let chosen = |&at: &Pair| {
            let [gx, gy] = self.stream.cell_of(at);
            let near = (gy - 1..=gy + 1).flat_map(|y| (gx - 1..=gx + 1).map(move |x| [x, y]));
            let candidates: Vec<usize> =
                near.filter(|&c| self.stream.is_cell(c)).map(|c| self.stream.index(c)).collect();
            let predicted = predictions[self.stream.pixel(at)];
            match self.stream.plan.algorithm() {
                AlgorithmPlan::Slic(plan) => self.nearest_slic(plan, clusters, &candidates, at, predicted),
                AlgorithmPlan::Lsc(_) => self.nearest_lsc(&terms, &candidates, at, predicted),
                _ => unreachable!("clusters of a grid"),
            }
        };
        let all: Vec<(usize, u128)> = pixels.iter().map(chosen).collect();
        (all.iter().map(|c| c.0).collect(), all.iter().map(|c| c.1).sum())
    }

    fn nearest_slic(
        &self,
        plan: &slic::Plan,
        clusters: &[Cluster],
        candidates: &[usize],
        at: Pair,
        predicted: Option<Prediction>,
    ) -> (usize, u128) {
        let p = self.numbers(at);
        let distance = |k: usize| -> u128 {
            let Cluster::Slic { mean, spread } = &clusters[k] else { unreachable!("SLIC's") };
            let place: i64 = (3..5).map(|j| (p[j] - mean[j]).pow(2)).sum();
            match plan.adaptive {
                None => ((0..3).map(|j| (p[j] - mean[j]).abs()).sum::<i64>().pow(2) + place) as u128,
                Some(adaptive) => {
                    let color: i64 = (0..3).map(|j| (p[j] - mean[j]).pow(2)).sum();
                    let weight = i64::from(slic::ADAPTIVE_ONE) / spread;
                    color as u128 * weight as u128 + place as u128 * u128::from(adaptive.position)
                }
            }
        };
        // Residuals of SLICO go without 20 bits.
        let unit = if plan.adaptive.is_some() { 1 << 20 } else { 1 };
        let least = candidates.iter().map(|&k| distance(k)).min().expect("a candidate");
        let felt = |k: usize| match predicted.filter(|predicted| predicted.cluster == k) {
            Some(predicted) => self.left(distance(k), predicted.looks, unit),
            None => distance(k),
        };
        let nearest = candidates.iter().copied().min_by_key(|&k| (felt(k), k)).expect("a candidate");
        (nearest, least / unit)
    }

    /// The parts of a distance that follow from the cluster alone.
    fn terms(&self, plan: &lsc::Plan, cluster: &Cluster) -> LscTerms {
        let Cluster::Lsc(sums) = cluster else { unreachable!("LSC's") };
        let norm: i64 = self.mean.iter().map(|m| m * m).sum();
        let dot: i64 = (0..6).map(|j| sums[j] * self.mean[j]).sum();
        let scale = 1.0f32 / dot as f32;
        let mean = |j: usize| if j < 6 { self.mean[j] } else { 0 };
        let t: [f32; 10] = std::array::from_fn(|j| (norm * sums[j] - dot * mean(j)) as f32 * scale);
        let weighted: [f32; 10] =
            std::array::from_fn(|j| if j < 6 { t[j] } else { t[j] * plan.position_weight });
        LscTerms { weighted, square: (0..10).fold(0.0f32, |sum, j| weighted[j].mul_add(t[j], sum)) }
    }

    fn nearest_lsc(
        &self,
        terms: &[LscTerms],
        candidates: &[usize],
        at: Pair,
        predicted: Option<Prediction>,
    ) -> (usize, u128) {
        let p: Vec<f32> = self.numbers(at).iter().map(|&v| v as f32).collect();
        let norm: i64 = self.mean.iter().map(|m| m * m).sum();
        let inverse = 1.0f32 / norm as f32;
        let mut weight = p[0] * (self.mean[0] as f32 * inverse);
        for j in 1..6 {
            weight = p[j].mul_add(self.mean[j] as f32 * inverse, weight);
        }
        let score = |k: usize| -> f32 {
            let LscTerms { weighted, square } = &terms[k];
            let mut score = p[6] * (-2.0 * weighted[6]);
            for j in [7, 8, 9] {
                score = p[j].mul_add(-2.0 * weighted[j], score);
            }
            score = weight.mul_add(*square, score);
            for j in 0..6 {
                score = p[j].mul_add(-2.0 * weighted[j], score);
            }
            score
        };
        // `|φ'|²` of any pixel: C_c is 1280, 2.55 times that for a and b, and C_s twice.
        let square = 1280f64.powi(2) * (1.0 + 2.0 * 2.55f64.powi(2));
        let gstsuperpixel::algo::AlgorithmParams::Lsc(own) = &self.stream.params.algorithm else {
            unreachable!("a plan of LSC")
        };
        let square = (square + 2.0 * (1280.0 * f64::from(own.ratio)).powi(2)) as f32;
        let shared = square / weight - norm as f32 * weight;
        let distance = |score: f32| (shared + score).max(0.0).floor() as u32;
        let scores: Vec<(f32, usize)> = candidates.iter().map(|&k| (score(k), k)).collect();
        let mut best = scores[0];
        for &(score, k) in &scores {
            if score < best.0 {
                best = (score, k);
            }
        }
        let least = u128::from(distance(best.0));
        let mut nearest = best.1;
        if let Some(predicted) = predicted {
            let own = scores.iter().find(|(_, k)| *k == predicted.cluster).expect("a candidate").0;
            let felt = self.left(u128::from(distance(own)), predicted.looks, 1);
            if (felt, predicted.cluster) < (least, nearest) {
                nearest = predicted.cluster;
            }
        }
        (nearest, least)
    }

    fn update(&self, clusters: &mut [Cluster], samples: &[Pair], members: &[usize]) {
        let mut all = vec![Vec::new(); clusters.len()];
        for (&at, &k) in samples.iter().zip(members) {
            all[k].push(self.numbers(at));
        }
        for (cluster, own) in clusters.iter_mut().zip(&all) {
            let n = own.len() as i64;
            if n == 0 {
                continue;
            }
            let sum = |j: usize| own.iter().map(|p| p[j]).sum::<i64>();
            match cluster {
                Cluster::Slic { mean: center, spread } => {
                    let color = |p: &Vec<i64>| (0..3).map(|j| (p[j] - center[j]).pow(2)).sum::<i64>();
                    *spread = own.iter().map(color).max().unwrap_or(0).max(*spread);
                    *center = std::array::from_fn(|j| mean(sum(j), n));
                }
                Cluster::Lsc(sums) => *sums = std::array::from_fn(sum),
            }
        }
    }
}
