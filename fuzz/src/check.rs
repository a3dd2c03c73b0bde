// SPDX-License-Identifier: MPL-2.0
//! Invariants of any frame's results, checked in the plainest way.

use std::collections::{BTreeMap, HashSet};

use gstsuperpixel::algo::AlgorithmParams;
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::regions::Regions;

use crate::pictures::Buffer;

/// The pixels beside and below a pixel, by index.
fn neighbors(i: usize, width: usize, pixels: usize) -> impl Iterator<Item = usize> {
    let right = (i % width + 1 < width).then_some(i + 1);
    let below = (i + width < pixels).then_some(i + width);
    right.into_iter().chain(below)
}

/// The number of 4-connected pieces of one label.
fn pieces(map: &[u16], width: usize) -> usize {
    let mut seen = vec![false; map.len()];
    let (mut count, mut stack) = (0, Vec::new());
    for start in 0..map.len() {
        if seen[start] {
            continue;
        }
        count += 1;
        seen[start] = true;
        stack.push(start);
        while let Some(i) = stack.pop() {
            let left = (i % width > 0).then(|| i - 1);
            let above = i.checked_sub(width);
            for j in neighbors(i, width, map.len()).chain(left).chain(above) {
                if map[j] == map[start] && !seen[j] {
                    seen[j] = true;
                    stack.push(j);
                }
            }
        }
    }
    count
}

/// Checks that no region has pixels of two areas.
fn within_areas(map: &[u16], areas: &[u32]) {
    let mut of = BTreeMap::new();
    for (label, area) in map.iter().zip(areas) {
        assert!(of.entry(label).or_insert(area) == &area, "region {label} has pixels of two areas");
    }
}

/// Checks that labels follow raster order and, where no prior keeps small ones apart, no region is below the smallest.
fn order_and_size(map: &[u16], area: &[u32], params: &Params, has_prior: bool) {
    let mut next = 0;
    for &label in map {
        assert!(label <= next, "labels do not follow raster order");
        next = next.max(label + 1);
    }
    let side = match &params.algorithm {
        AlgorithmParams::QuickShift(quickshift) => f64::from(quickshift.tau),
        // The grid step follows from a wanted number.
        _ if params.superpixels > 0 || params.hierarchy.regions > 0 => 0.0,
        _ => f64::from(params.superpixel_size),
    };
    let least = (f64::from(params.min_region) * side * side) as u32;
    assert!(
        has_prior || area.len() == 1 || area.iter().all(|&area| area >= least),
        "a region below {least} px"
    );
}

/// Checks the label map, without padding, and what was measured. `areas` has the number of each pixel in the frame's prior.
pub fn regions(
    map: &[u16],
    regions: &Regions,
    params: &Params,
    outputs: Outputs,
    buffer: &Buffer,
    areas: Option<&[u32]>,
) {
    let width = buffer.info.geometry.width() as usize;
    let count = regions.count as usize;
    let mut area = vec![0u32; count];
    for &label in map {
        assert!(usize::from(label) < count, "label {label} of {count}");
        area[usize::from(label)] += 1;
    }
    assert!(area.iter().all(|&area| area > 0), "a label is not used");
    // An exact number may need regions of several areas, and a price lets merging cross.
    let may_cross = params.hierarchy.regions > 0 || params.merge.ratio > 0.0 && params.prior_price > 0.0;
    if let Some(areas) = areas.filter(|_| params.prior_cuts && !may_cross) {
        within_areas(map, areas);
    }
    if params.connectivity {
        assert_eq!(pieces(map, width), count, "labels are not one region each");
        // Refining moves first pixels, and pixels of the smallest regions.
        if params.refine.sweeps == 0 {
            order_and_size(map, &area, params, areas.is_some());
        }
    }
    assert_eq!(regions.table.len(), if outputs.table { count } else { 0 }, "records");
    if outputs.table {
        table(map, regions, params, outputs, buffer, &area);
    }
    let named = params.temporal && outputs.table;
    assert!(regions.motion.len() == if named { count } else { 0 }, "{} motions", regions.motion.len());
    let finite = |motion: &gstsuperpixel::regions::Motion| motion.velocity.iter().all(|v| v.is_finite());
    assert!(regions.motion.iter().all(finite), "a velocity is not a number");
    let mut pairs = BTreeMap::new();
    for i in 0..if outputs.neighbors { map.len() } else { 0 } {
        for j in neighbors(i, width, map.len()).filter(|&j| map[j] != map[i]) {
            let pair = (u32::from(map[i].min(map[j])), u32::from(map[i].max(map[j])));
            *pairs.entry(pair).or_insert(0u32) += 1;
        }
    }
    let listed: Vec<_> = regions.neighbors.iter().map(|pair| ((pair.a, pair.b), pair.length)).collect();
    assert!(listed == pairs.into_iter().collect::<Vec<_>>(), "neighbors");
}

fn table(map: &[u16], regions: &Regions, params: &Params, outputs: Outputs, buffer: &Buffer, area: &[u32]) {
    let width = buffer.info.geometry.width() as usize;
    let colors = !outputs.linear_light && buffer.info.format.is_rgb();
    let mut place = vec![[0u64; 2]; area.len()];
    let mut bounds = vec![[u16::MAX, u16::MAX, 0, 0]; area.len()];
    let mut samples = vec![[0u64; 3]; area.len()];
    let sample = buffer.samples();
    for (i, &label) in map.iter().enumerate() {
        let (x, y, label) = (i % width, i / width, usize::from(label));
        place[label][0] += x as u64;
        place[label][1] += y as u64;
        let (px, py, b) = (x as u16, y as u16, &mut bounds[label]);
        *b = [b[0].min(px), b[1].min(py), b[2].max(px + 1), b[3].max(py + 1)];
        if colors {
            let native = sample(x, y).0;
            (0..3).for_each(|channel| samples[label][channel] += u64::from(native[channel]));
        }
    }
    let mut names = HashSet::new();
    for (label, record) in regions.table.iter().enumerate() {
        let n = f64::from(area[label]);
        assert_eq!((record.area, record.bounds), (area[label], bounds[label]), "region {label}");
        assert_eq!(record.centroid, place[label].map(|sum| (sum as f64 / n) as f32), "region {label}");
        assert!(record.mean_rgb[3] == 255 && record.mean_lab.iter().all(|value| value.is_finite()));
        if colors {
            // White is 255; both divisions round half up.
            let scale = f64::from((1u32 << buffer.info.format.bits()) - 1) / 255.0;
            let mean = samples[label].map(|sum| ((sum as f64 / n + 0.5).floor() / scale + 0.5).floor() as u8);
            assert_eq!(record.mean_rgb[..3], mean, "mean color of region {label}");
        }
        if params.temporal {
            assert!(record.track_id > 0 && names.insert(record.track_id), "identity {}", record.track_id);
        } else {
            assert_eq!(record.track_id, label as u32);
        }
    }
}

/// Checks that drawing has changed pixels only: not the padding of rows, nor the fourth byte of packed pixels.
pub fn drawn(before: &Buffer, after: &[Vec<u8>]) {
    let info = &before.info;
    let fourth = info.format.packed_rgb().filter(|packed| packed.bytes == 4).map(|packed| {
        // The offsets of the three colors are 0 to 3 without one.
        6 - packed.offsets.iter().sum::<usize>()
    });
    for (plane, (row, _)) in info.format.planes(info.geometry).enumerate() {
        let stride = before.strides[plane];
        for (i, (old, new)) in before.planes[plane].iter().zip(&after[plane]).enumerate() {
            let fixed = i % stride >= row || fourth.is_some_and(|fourth| i % stride % 4 == fourth);
            assert!(!fixed || old == new, "byte {i} of plane {plane} was drawn on");
            // Bits of words of two bytes that do not count are zero once drawn on; nothing is promised of what stays.
            let sample = info.format.sample();
            let rest = !(((1u32 << sample.bits) - 1) << sample.shift);
            let own = if (i % stride % 2 == 0) != sample.big_endian { rest } else { rest >> 8 };
            let low = sample.bytes == 2 && old != new && u32::from(*new) & own & 0xff != 0;
            assert!(!low, "byte {i} of plane {plane} has bits that do not count");
        }
    }
}
