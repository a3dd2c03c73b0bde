// SPDX-License-Identifier: MPL-2.0
//! Stage `connectivity` on the CPU: components of strips of rows are united over the whole frame, and small ones absorbed.

use std::ops::Range;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

use super::MAX_REGIONS;
use super::areas::{self, Vote};
use super::components::COMPONENTS;
use super::shared::{Components, OUTSIDE};
use super::strip::{InArea, Kind, Strip, StripBorder, overlaps};
use crate::backend;
use crate::buffers::cpu::{FrameBuffers, NO_CLUSTER, RegionSums};
use crate::cpu::memory::Array;
use crate::cpu::{Cpu, atomic, memory};
use crate::error::Result;
use crate::image::{Geometry, Labels, NO_LABEL};
use crate::parallel::prelude::*;
use crate::plan::Plan;
use crate::temporal::state::{Largest, State};

/// Name of the strips in errors about memory.
const STRIPS_OF_ROWS: &str = "strips of rows";

/// Rows per task: several tasks for each thread, but few borders between them. Results do not depend on it.
const STRIP_ROWS: Range<usize> = 8..32;
const STRIPS: usize = 8;
/// Edges from which a round is faster on all threads.
const MANY_EDGES: usize = 2500;
/// Components from which numbering them is faster on all threads.
const MANY_COMPONENTS: usize = 10_000;
/// Clusters per task when their largest components are named.
const NAMED_AT_ONCE: usize = 2048;

/// Writes the label of a run. It may write over the runs behind it, which are written next: most runs are short, so a
/// single store of fixed size does.
#[inline(always)]
fn write_run(row: &mut [u16], columns: Range<usize>, label: u16) {
    const PIECE: usize = 32;
    let mut x = columns.start;
    loop {
        match row[x..].first_chunk_mut() {
            Some(piece) => *piece = [label; PIECE],
            None => return row[x..columns.end].fill(label),
        }
        x += PIECE;
        if x >= columns.end {
            return;
        }
    }
}

pub(crate) struct Connectivity {
    cpu: Cpu,
    geometry: Geometry,
    /// Rows of a strip; the last strip may have fewer.
    pub(super) rows: usize,
    clusters: usize,
    pub(super) min_region: u32,
    /// True if stage `hierarchy` follows, which needs the sums of regions.
    is_before_hierarchy: bool,
    /// True if the sums of regions are added up here in this frame, because `statistics` does not measure them before
    /// `hierarchy`.
    adds_up: bool,
    /// True if a map of the smallest regions could have more regions than labels can name.
    may_overflow: bool,
    /// The cluster that means outside of the mask; `None` for plans without masks.
    pub(super) outside: Option<u32>,
    pub(super) strips: Vec<Strip>,
    borders: Vec<StripBorder>,
    pub(super) components: Components,
    /// The largest component of each cluster: size, and the complement of its number; 0 is none.
    largest: Array<AtomicU64>,
    /// Label of each root.
    labels: Array<AtomicU16>,
    /// Cluster and area of each pixel in a frame with a prior that cuts regions, else empty.
    kinds: Array<InArea>,
    /// True if areas cut regions.
    cuts: bool,
    vote: Vote,
}

impl Connectivity {
    pub fn new(cpu: &Cpu, plan: &Plan) -> Result<Self> {
        let (height, threads) = (plan.frame.geometry.height as usize, cpu.threads());
        let most = if threads == 1 { STRIP_ROWS.end } else { height / (STRIPS * threads) };
        let rows = most.clamp(STRIP_ROWS.start, STRIP_ROWS.end);
        let strips = height.div_ceil(rows);
        Ok(Self {
            cpu: cpu.clone(),
            geometry: plan.frame.geometry,
            rows,
            clusters: plan.max_clusters(),
            min_region: plan.min_region,
            is_before_hierarchy: plan.hierarchy().is_some(),
            adds_up: false,
            may_overflow: plan.may_overflow(),
            outside: plan.masked.then_some(if plan.clusters_are_pixels() {
                NO_CLUSTER
            } else {
                u32::from(NO_LABEL)
            }),
            strips: memory::collected(STRIPS_OF_ROWS, (0..strips).map(|_| Strip::default()))?,
            borders: memory::collected(STRIPS_OF_ROWS, (0..strips).map(|_| StripBorder::default()))?,
            components: Components::default(),
            largest: Array::new(),
            labels: Array::new(),
            kinds: Array::new(),
            cuts: plan.prior_cuts,
            vote: Vote::default(),
        })
    }

    /// Calls `pass` for every strip, with the components of the frame. Uses all threads if `worth_it`.
    fn for_each_strip(
        &mut self,
        worth_it: bool,
        pass: impl Fn(usize, &mut Strip, &[StripBorder], &Components) -> Result<()> + Sync,
    ) -> Result<()> {
        let Self { cpu, strips, borders, components, .. } = self;
        components.alone = !worth_it || cpu.threads() == 1;
        let (borders, components) = (&borders[..], &*components);
        if components.alone {
            return strips
                .iter_mut()
                .enumerate()
                .try_for_each(|(i, strip)| pass(i, strip, borders, components));
        }
        cpu.run(|| {
            strips.par_iter_mut().enumerate().try_for_each(|(i, strip)| pass(i, strip, borders, components))
        })
    }

    /// Finds the components of the whole frame from a plane of clusters of either width, and a prior, which may be empty.
    pub(super) fn find_components<'r, T: Kind + 'r>(
        &mut self,
        cluster_row: impl Fn(usize) -> &'r [T] + Sync,
        prior: &[u32],
        features: &[u32],
    ) -> Result<()> {
        if prior.is_empty() || !self.cuts {
            return self.find_components_of_kinds(cluster_row, features);
        }
        let mut kinds = std::mem::take(&mut self.kinds);
        let width = self.geometry.width as usize;
        memory::resize(&mut kinds, "areas of pixels", prior.len(), InArea::default())?;
        self.cpu.run(|| {
            let rows = kinds.par_chunks_mut(width).zip(prior.par_chunks(width)).with_min_len(self.rows);
            rows.enumerate().for_each(|(y, (kinds, areas))| {
                for ((kind, &area), &cluster) in kinds.iter_mut().zip(areas).zip(cluster_row(y)) {
                    *kind = InArea { cluster: cluster.cluster(), area };
                }
            });
        });
        let found = self.find_components_of_kinds(|y| &kinds[y * width..][..width], features);
        self.kinds = kinds;
        found
    }

    fn find_components_of_kinds<'r, T: Kind + 'r>(
        &mut self,
        cluster_row: impl Fn(usize) -> &'r [T] + Sync,
        features: &[u32],
    ) -> Result<()> {
        let Geometry { width, height } = self.geometry;
        let (width, height, rows) = (width as usize, height as usize, self.rows);
        let adds_up = self.adds_up;
        self.for_each_strip(true, |i, strip, _, _| {
            strip.scan(&cluster_row, features, i * rows, rows.min(height - i * rows))?;
            if adds_up { strip.add_positions(i * rows, width) } else { Ok(()) }
        })?;
        let Self { cpu, strips, borders, components, .. } = self;
        let mut count = 0;
        for strip in &mut *strips {
            strip.offset = count;
            count += strip.sums.len() as u32;
        }
        components.begin(count as usize, T::HAS_AREA)?;
        cpu.run(|| {
            strips.par_iter().zip(borders).try_for_each(|(strip, border)| {
                components.place(strip.offset, &strip.sums, &strip.areas);
                border.copy_last_row(strip)
            })
        })?;
        self.for_each_strip(true, |i, strip, borders, all| {
            let Some(border) = i.checked_sub(1).map(|above| &borders[above]) else { return Ok(()) };
            let (above, below) = (cluster_row(i * rows - 1), cluster_row(i * rows));
            overlaps(&border.starts, &strip.starts[strip.runs(0)], width, |u, l, x| {
                if above[x] == below[x] {
                    all.unite(border.first + border.components[u], strip.offset + strip.components[l]);
                }
            });
            Ok(())
        })?;
        self.for_each_strip(true, |_, strip, _, all| {
            all.flatten(strip.ids());
            Ok(())
        })?;
        let Some(outside) = self.outside else { return Ok(()) };
        // Outside components neither join others nor are joined.
        self.for_each_strip(true, |_, strip, _, all| {
            let ids = strip.ids().zip(&strip.clusters).filter(|(_, cluster)| **cluster == outside);
            ids.for_each(|(i, _)| all.set_outside(i));
            Ok(())
        })
    }

    /// Finds the largest component of each cluster, lists those that are not small, and keeps those below the smallest size that
    /// temporal mode wants kept.
    fn find_largest(&mut self, state: &State) -> Result<()> {
        let mut largest = std::mem::take(&mut self.largest);
        largest.clear();
        memory::reserve(&mut largest, COMPONENTS, self.clusters)?;
        largest.extend((0..self.clusters).map(|_| AtomicU64::new(0)));
        let min_region = self.min_region;
        self.for_each_strip(true, |_, strip, _, all| {
            strip.large.clear();
            memory::reserve(&mut strip.large, COMPONENTS, strip.clusters.len())?;
            for (i, &cluster) in strip.ids().zip(&strip.clusters) {
                // Components that joined another have size 0; those outside of the mask belong to no cluster.
                let size = all.size(i);
                if size == 0 || size == OUTSIDE {
                    continue;
                }
                // Parts have no slot. Of equal sizes the lowest id wins.
                if let Some(main) = largest.get(cluster as usize) {
                    atomic::raise(main, u64::from(size) << 32 | u64::from(!i), all.alone);
                }
                if size >= min_region {
                    strip.large.push(i);
                } else if size >= state.least_kept(cluster as usize, min_region) {
                    strip.large.push(i);
                    all.keep(i);
                }
            }
            Ok(())
        })?;
        self.largest = largest;
        Ok(())
    }

    /// Looks up the cluster that each region would be a part of: that of its only component that was not small; where all were,
    /// or where the smallest size has been doubled since, that of its first pixel, which the root has.
    fn find_part_clusters(&self, clusters: &mut Array<u16>, count: usize, doubled: bool) -> Result<()> {
        memory::refill(clusters, COMPONENTS, count, 0)?;
        let Self { components, labels, strips, .. } = self;
        let mut set = |i: u32, cluster: u32| {
            let label = labels[components.parent(i) as usize].load(Relaxed);
            if let Some(known) = clusters.get_mut(usize::from(label)) {
                *known = cluster as u16;
            }
        };
        for strip in strips {
            let roots = strip.ids().zip(&strip.clusters).filter(|(i, _)| components.parent(*i) == *i);
            roots.for_each(|(i, &cluster)| set(i, cluster));
        }
        for strip in strips.iter().filter(|_| !doubled) {
            strip.large.iter().for_each(|&i| set(i, strip.clusters[(i - strip.offset) as usize]));
        }
        Ok(())
    }

    /// Looks up the labels of the largest components.
    fn name_largest(&self, named: &mut Array<Largest>) -> Result<()> {
        memory::refill(named, COMPONENTS, self.largest.len(), Largest::default())?;
        let name = |largest: &AtomicU64| {
            let largest = largest.load(Relaxed);
            let (size, component) = ((largest >> 32) as u32, !(largest as u32));
            if size == 0 {
                return Largest::default();
            }
            match self.labels[self.components.parent(component) as usize].load(Relaxed) {
                NO_LABEL => Largest::default(),
                label => Largest { size, label: label.into() },
            }
        };
        self.cpu.run(|| {
            let all = named.par_iter_mut().zip(&self.largest[..]).with_min_len(NAMED_AT_ONCE);
            all.for_each(|(named, largest)| *named = name(largest));
        });
        Ok(())
    }

    /// Unites every small component with a neighbor, round by round, until no small one has any.
    pub(super) fn absorb(&mut self, min_region: u32) -> Result<()> {
        let width = self.geometry.width as usize;
        let has_areas = self.components.area(0).is_some();
        self.for_each_strip(true, |i, strip, borders, all| {
            let above = i.checked_sub(1).map(|above| &borders[above]);
            match has_areas {
                false => strip.list_edges::<false>(above, all, min_region, width)?,
                true => strip.list_edges::<true>(above, all, min_region, width)?,
            }
            all.select(&strip.edges, min_region, 0);
            Ok(())
        })?;
        for round in 1.. {
            let edges: usize = self.strips.iter().map(|strip| strip.edges.len()).sum();
            if edges == 0 {
                break;
            }
            let worth_it = edges >= MANY_EDGES;
            // These passes are mostly atomic operations, on which two threads take as long as one does without atomics.
            let several = worth_it && self.cpu.threads() > 2;
            self.for_each_strip(several, |_, strip, _, all| {
                all.unite_selected(&strip.small);
                Ok(())
            })?;
            self.for_each_strip(several, |_, strip, _, all| {
                all.merge(&strip.small, min_region);
                Ok(())
            })?;
            self.for_each_strip(worth_it, |_, strip, _, all| {
                all.keep_small(&mut strip.small, min_region);
                all.contract(&mut strip.edges, min_region);
                all.select(&strip.edges, min_region, round);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Absorbs until every component below the smallest size lacks a neighbor, doubling that size until labels can name
    /// all regions. Returns the number of labels, and whether it was doubled.
    fn absorb_all(&mut self) -> Result<(usize, bool)> {
        let (mut min_region, pixels) = (self.min_region, self.geometry.pixels());
        loop {
            if min_region > 1 {
                self.absorb(min_region)?;
            }
            let count = self.number()?;
            if count <= MAX_REGIONS || !self.may_overflow || min_region as usize > pixels {
                return Ok((count.min(MAX_REGIONS), min_region > self.min_region));
            }
            min_region *= 2;
            self.components.forget_means();
        }
    }

    /// Numbers the roots in raster order, without those outside of the mask. Returns how many there are.
    fn number(&mut self) -> Result<usize> {
        memory::lengthen(&mut self.labels, COMPONENTS, self.components.len())?;
        let (masked, worth_it) = (self.outside.is_some(), self.components.len() >= MANY_COMPONENTS);
        let is_region = |all: &Components, i: u32| !masked || all.size(i) != OUTSIDE;
        self.for_each_strip(worth_it, |_, strip, _, all| {
            strip.regions = strip.ids().filter(|&i| all.point_at_root(i) == i && is_region(all, i)).count();
            Ok(())
        })?;
        let mut count = 0;
        for strip in &mut self.strips {
            strip.first_region = count;
            count += strip.regions;
        }
        let labels = std::mem::take(&mut self.labels);
        let done = self.for_each_strip(worth_it, |_, strip, _, all| {
            let mut next = strip.first_region;
            for i in strip.ids().filter(|&i| all.parent(i) == i) {
                let counts = is_region(all, i);
                // Regions past the last label get none.
                let label = if counts { next.min(MAX_REGIONS) as u16 } else { NO_LABEL };
                labels[i as usize].store(label, Relaxed);
                next += usize::from(counts);
            }
            Ok(())
        });
        self.labels = labels;
        done.map(|()| count)
    }

    /// Writes each run's label.
    fn write_labels(&mut self, labels: &mut Labels<'_>) -> Result<()> {
        let Self { cpu, strips, components, labels: numbers, rows, .. } = self;
        let label = |i: u32| numbers[components.parent(i) as usize].load(Relaxed);
        cpu.run(|| {
            labels.bands_mut(*rows).zip(strips).try_for_each(|(mut band, strip)| {
                let ids = strip.ids();
                strip.labels.clear();
                memory::reserve(&mut strip.labels, COMPONENTS, ids.len())?;
                strip.labels.extend(ids.map(label));
                for y in 0..band.rows() {
                    let row = band.row_mut(y);
                    let runs = strip.runs(y);
                    for run in runs.clone() {
                        let end = match run + 1 {
                            next if next == runs.end => row.len(),
                            next => usize::from(strip.starts[next]),
                        };
                        let label = strip.labels[strip.components[run] as usize];
                        write_run(row, usize::from(strip.starts[run])..end, label);
                    }
                }
                Ok(())
            })
        })
    }
}

/// Adds up area, position and color of each region from its components. Samples and bounds are not known here.
fn add_components(strips: &[Strip], sums: &mut Array<RegionSums>, count: usize) -> Result<()> {
    memory::refill(sums, COMPONENTS, count, RegionSums::default())?;
    for strip in strips {
        for ((own, &position), &label) in strip.sums.iter().zip(&strip.positions).zip(&strip.labels) {
            // Components outside of a mask have no label, and so no sum.
            let Some(sum) = sums.get_mut(usize::from(label)) else { continue };
            sum.area += own.count;
            (0..2).for_each(|i| sum.position[i] += position[i]);
            (0..3).for_each(|i| sum.color[i] += own.color[i]);
        }
    }
    Ok(())
}

impl backend::Connectivity<Cpu> for Connectivity {
    fn enforce(&mut self, buffers: &mut FrameBuffers, labels: &mut Labels<'_>) -> Result<()> {
        let features = &buffers.features;
        self.adds_up = self.is_before_hierarchy && !buffers.wants_samples;
        if buffers.clusters.is_empty() {
            let clusters = &*labels;
            self.find_components(|y| clusters.row(y), &buffers.prior, features)?;
        } else {
            let (clusters, width) = (&buffers.clusters, self.geometry.width as usize);
            self.find_components(|y| &clusters[y * width..][..width], &buffers.prior, features)?;
        }
        let mut state = buffers.temporal.as_deref_mut().filter(|_| buffers.clusters.is_empty());
        if let Some(state) = &state {
            self.find_largest(state)?;
        }
        let (count, doubled) = self.absorb_all()?;
        if let Some(state) = &mut state {
            self.name_largest(&mut state.largest)?;
            self.find_part_clusters(&mut state.part_clusters, count, doubled)?;
        }
        self.write_labels(labels)?;
        buffers.count = count as u32;
        buffers.areas.clear();
        if !buffers.prior.is_empty() {
            if self.cuts {
                areas::list(&self.strips, &mut buffers.areas, count)?;
            } else {
                self.vote.count(labels, &buffers.prior, &mut buffers.areas, count)?;
                // What regions are of is all that counts from here on.
                buffers.prior.clear();
            }
        }
        if self.adds_up { add_components(&self.strips, &mut buffers.sums, count) } else { Ok(()) }
    }
}
