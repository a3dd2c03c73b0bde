// SPDX-License-Identifier: MPL-2.0
//! The specification written down once more, as plainly as possible and independently of the library's own code paths:
//! one pixel, one cluster, one component at a time, in wide integers and ordered maps.
#![allow(dead_code, clippy::needless_range_loop)]

pub mod temporal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gstsuperpixel::algo::grid::Grid;
use gstsuperpixel::algo::quickshift::{self, EXP2};
use gstsuperpixel::algo::{lsc, slic, snic};
use gstsuperpixel::color::unpack;
use gstsuperpixel::image::Geometry;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::MergeStep;

/// Color of pixels outside of a mask: L 0, a +47, b -78.
pub const OUTSIDE: u32 = 1400 << 10 | 400 << 21;
/// Its label.
pub const NO_LABEL: u16 = 65_535;

/// The pixel where the cluster of a cell starts: its center or, if that is outside, the nearest pixel inside, the first
/// of several.
pub fn seed(grid: &Grid, features: &[u32], k: usize) -> (usize, usize) {
    let (gx, gy, w) = (k % grid.nx() as usize, k / grid.nx() as usize, grid.geometry().width() as usize);
    let center = grid.seed(gx, gy);
    let mut best = (usize::MAX, center);
    for y in grid.rows(gy) {
        for x in grid.columns(gx) {
            let far = x.abs_diff(center.0).pow(2) + y.abs_diff(center.1).pow(2);
            if features[y * w + x] != OUTSIDE && far < best.0 {
                best = (far, (x, y));
            }
        }
    }
    best.1
}

pub struct Cluster {
    pub mean: [i64; 5],
    pub spread: i64,
}

/// SLIC by its definition: every distance in full, every sum in i64.
pub fn slic(grid: &Grid, plan: &slic::Plan, features: &[u32]) -> Vec<u16> {
    let (w, h) = (grid.geometry().width() as usize, grid.geometry().height() as usize);
    let point = |x: usize, y: usize| -> [i64; 5] {
        let [l, a, b] = unpack(features[y * w + x]).map(|v| i64::from(v >> plan.color_shift));
        [l, a, b, i64::from(plan.px[x]), i64::from(plan.py[y])]
    };
    let home = |x: usize, y: usize| {
        let s = grid.step() as usize;
        ((x / s).min(grid.nx() as usize - 1), (y / s).min(grid.ny() as usize - 1))
    };
    if grid.step() == 1 {
        return own_labels(features);
    }
    let mut clusters: Vec<Cluster> = (0..grid.cells())
        .map(|k| {
            let (x, y) = seed(grid, features, k);
            Cluster { mean: point(x, y), spread: plan.adaptive.map_or(1, |a| i64::from(a.initial)) }
        })
        .collect();
    let color = |p: &[i64; 5], c: &Cluster| (0..3).map(|j| (p[j] - c.mean[j]).pow(2)).sum::<i64>();
    let nearest = |clusters: &[Cluster], x: usize, y: usize| -> usize {
        let (gx, gy) = home(x, y);
        let p = point(x, y);
        let mut best = (i128::MAX, 0);
        for dy in -1i64..=1 {
            for dx in -1i64..=1 {
                let (cx, cy) = (gx as i64 + dx, gy as i64 + dy);
                if cx < 0 || cy < 0 || cx >= i64::from(grid.nx()) || cy >= i64::from(grid.ny()) {
                    continue;
                }
                let k = cy as usize * grid.nx() as usize + cx as usize;
                let c = &clusters[k];
                let place: i64 = (3..5).map(|j| (p[j] - c.mean[j]).pow(2)).sum();
                let d = match plan.adaptive {
                    None => {
                        let color: i64 = (0..3).map(|j| (p[j] - c.mean[j]).abs()).sum();
                        i128::from(color.pow(2) + place)
                    }
                    Some(a) => {
                        let weight = i64::from(slic::ADAPTIVE_ONE) / c.spread;
                        i128::from(color(&p, c)) * i128::from(weight)
                            + i128::from(place) * i128::from(a.position)
                    }
                };
                best = best.min((d, k));
            }
        }
        best.1
    };
    for _ in 0..plan.iterations {
        let mut sums = vec![([0i64; 5], 0i64, 0i64); clusters.len()];
        for y in (0..h).step_by(grid.sample_step() as usize) {
            for x in (0..w).step_by(grid.sample_step() as usize) {
                if features[y * w + x] == OUTSIDE {
                    continue;
                }
                let (k, p) = (nearest(&clusters, x, y), point(x, y));
                for j in 0..5 {
                    sums[k].0[j] += p[j];
                }
                sums[k].1 += 1;
                sums[k].2 = sums[k].2.max(color(&p, &clusters[k]));
            }
        }
        for (c, (sum, n, spread)) in clusters.iter_mut().zip(sums) {
            if n > 0 {
                c.mean = sum.map(|s| (2 * s + n).div_euclid(2 * n));
                c.spread = c.spread.max(spread);
            }
        }
    }
    inside_only(features, |i| nearest(&clusters, i % w, i / w) as u16)
}

/// A label for every pixel inside.
fn inside_only(features: &[u32], label: impl Fn(usize) -> u16) -> Vec<u16> {
    (0..features.len()).map(|i| if features[i] == OUTSIDE { NO_LABEL } else { label(i) }).collect()
}

fn own_labels(features: &[u32]) -> Vec<u16> {
    inside_only(features, |i| i as u16)
}

/// LSC by the definition of its arithmetic: sums in i64, then single roundings in the order that is written down.
pub fn lsc(grid: &Grid, plan: &lsc::Plan, features: &[u32]) -> Vec<u16> {
    let (w, h) = (grid.geometry().width() as usize, grid.geometry().height() as usize);
    if grid.step() == 1 {
        return own_labels(features);
    }
    let signed = |pair: u32| [i64::from(pair as u16 as i16), i64::from((pair >> 16) as u16 as i16)];
    let point = |x: usize, y: usize| -> Vec<i64> {
        let [l, a, b] = unpack(features[y * w + x]).map(|v| v as usize);
        let pairs = [plan.color.l[l], plan.color.ab[a], plan.color.ab[b], plan.px[x], plan.py[y]];
        pairs.into_iter().flat_map(signed).collect()
    };
    let lattice: Vec<(usize, usize)> = (0..h)
        .step_by(grid.sample_step() as usize)
        .flat_map(|y| (0..w).step_by(grid.sample_step() as usize).map(move |x| (x, y)))
        .collect();
    let lattice: Vec<_> = lattice.into_iter().filter(|&(x, y)| features[y * w + x] != OUTSIDE).collect();
    let n = lattice.len() as i64;
    let mean: Vec<i64> = (0..6)
        .map(|j| lattice.iter().map(|&(x, y)| point(x, y)[j]).sum::<i64>())
        .map(|sum| (2 * sum + n).div_euclid(2 * n.max(1)))
        .collect();
    // Without samples that of what is outside.
    let nothing = || {
        let [l, a, b] = unpack(OUTSIDE).map(|v| v as usize);
        [plan.color.l[l], plan.color.ab[a], plan.color.ab[b]].into_iter().flat_map(signed).collect()
    };
    let mean: Vec<i64> = if n == 0 { nothing() } else { mean };
    let norm: i64 = mean.iter().map(|m| m * m).sum();
    let inverse = 1.0f32 / norm as f32;
    let weights: Vec<f32> = mean.iter().map(|&m| m as f32 * inverse).collect();
    let seeds: Vec<Vec<i64>> =
        (0..grid.cells()).map(|k| seed(grid, features, k)).map(|(x, y)| point(x, y)).collect();
    let mut state = seeds;
    let nearest = |state: &[Vec<i64>], x: usize, y: usize| -> usize {
        let p: Vec<f32> = point(x, y).iter().map(|&v| v as f32).collect();
        let mut weight = p[0] * weights[0];
        for j in 1..6 {
            weight = p[j].mul_add(weights[j], weight);
        }
        let (gx, gy) = (
            (x / grid.step() as usize).min(grid.nx() as usize - 1),
            (y / grid.step() as usize).min(grid.ny() as usize - 1),
        );
        let mut best = (f32::INFINITY, usize::MAX);
        let near = |g: usize, cells: u32| g.saturating_sub(1)..(g + 2).min(cells as usize);
        let candidates = near(gy, grid.ny()).flat_map(|y| near(gx, grid.nx()).map(move |x| (x, y)));
        for k in candidates.map(|(x, y)| y * grid.nx() as usize + x) {
            let dot: i64 = (0..6).map(|j| state[k][j] * mean[j]).sum();
            let scale = 1.0f32 / dot as f32;
            let exact = |j: usize| norm * state[k][j] - if j < 6 { dot * mean[j] } else { 0 };
            let t: [f32; 10] = std::array::from_fn(|j| exact(j) as f32 * scale);
            let weighted: [f32; 10] =
                std::array::from_fn(|j| if j < 6 { t[j] } else { t[j] * plan.position_weight });
            let square = (0..10).fold(0.0f32, |sum, j| weighted[j].mul_add(t[j], sum));
            let mut score = p[6] * (-2.0 * weighted[6]);
            for j in [7, 8, 9] {
                score = p[j].mul_add(-2.0 * weighted[j], score);
            }
            score = weight.mul_add(square, score);
            for j in 0..6 {
                score = p[j].mul_add(-2.0 * weighted[j], score);
            }
            if score < best.0 {
                best = (score, k);
            }
        }
        best.1
    };
    for _ in 0..plan.iterations {
        let mut sums = vec![vec![0i64; 10]; state.len()];
        let mut members = vec![0; state.len()];
        for &(x, y) in &lattice {
            let k = nearest(&state, x, y);
            members[k] += 1;
            for (sum, v) in sums[k].iter_mut().zip(point(x, y)) {
                *sum += v;
            }
        }
        for k in 0..state.len() {
            if members[k] > 0 {
                state[k] = sums[k].clone();
            }
        }
    }
    inside_only(features, |i| nearest(&state, i % w, i / w) as u16)
}

/// LSC as GLSC prints it (Eq. 1, 2, 4, 5), in f64: features divided by their weights, weighted means, distances in full.
/// Grid, candidates, samples and empty clusters as ours, place in grid steps.
pub fn lsc_as_printed(grid: &Grid, rounds: u32, ratio: f64, features: &[u32]) -> Vec<u16> {
    let (w, h) = (grid.geometry().width() as usize, grid.geometry().height() as usize);
    let (color, place) = (20.0, 20.0 * ratio);
    let phi = |x: usize, y: usize| -> [f64; 10] {
        let [l, a, b] = unpack(features[y * w + x]).map(|v| f64::from(v) / 8.0);
        let s = f64::from(grid.step());
        let turns = [l / 100.0, a / 255.0, b / 255.0, x as f64 / s, y as f64 / s];
        let lengths = [color, 2.55 * color, 2.55 * color, place, place];
        std::array::from_fn(|j| {
            let angle = turns[j / 2] * std::f64::consts::FRAC_PI_2;
            lengths[j / 2] * if j % 2 == 0 { angle.cos() } else { angle.sin() }
        })
    };
    let lattice: Vec<(usize, usize)> = (0..h)
        .step_by(grid.sample_step() as usize)
        .flat_map(|y| (0..w).step_by(grid.sample_step() as usize).map(move |x| (x, y)))
        .collect();
    let mut mean = [0.0; 10];
    for y in 0..h {
        for x in 0..w {
            for (mean, v) in mean.iter_mut().zip(phi(x, y)) {
                *mean += v / (w * h) as f64;
            }
        }
    }
    let weighted = |x: usize, y: usize| -> (f64, [f64; 10]) {
        let p = phi(x, y);
        let weight: f64 = p.iter().zip(mean).map(|(a, b)| a * b).sum();
        (weight, p.map(|v| v / weight))
    };
    let mut means: Vec<[f64; 10]> = (0..grid.cells())
        .map(|k| grid.seed(k % grid.nx() as usize, k / grid.nx() as usize))
        .map(|(x, y)| weighted(x, y).1)
        .collect();
    let nearest = |means: &[[f64; 10]], x: usize, y: usize| -> usize {
        let (gx, gy) = (
            (x / grid.step() as usize).min(grid.nx() as usize - 1),
            (y / grid.step() as usize).min(grid.ny() as usize - 1),
        );
        let p = weighted(x, y).1;
        let mut best = (f64::INFINITY, 0);
        for k in grid.candidates(gx, gy) {
            let d: f64 = p.iter().zip(means[k]).map(|(a, b)| (a - b).powi(2)).sum();
            if d < best.0 {
                best = (d, k);
            }
        }
        best.1
    };
    for _ in 0..rounds {
        let mut sums = vec![(0.0, [0.0; 10]); means.len()];
        for &(x, y) in &lattice {
            let (weight, p) = weighted(x, y);
            let sum = &mut sums[nearest(&means, x, y)];
            sum.0 += weight;
            for (sum, v) in sum.1.iter_mut().zip(p) {
                *sum += weight * v;
            }
        }
        for (mean, (weight, sum)) in means.iter_mut().zip(sums) {
            if weight > 0.0 {
                *mean = sum.map(|v| v / weight);
            }
        }
    }
    (0..w * h).map(|i| nearest(&means, i % w, i / w) as u16).collect()
}

/// 4-connected components of equal label: the first pixel of each pixel's component.
pub fn components<T: PartialEq>(geometry: Geometry, labels: &[T]) -> Vec<usize> {
    let (w, n) = (geometry.width() as usize, geometry.pixels());
    let mut root = vec![usize::MAX; n];
    for start in 0..n {
        if root[start] != usize::MAX {
            continue;
        }
        root[start] = start;
        let mut queue = VecDeque::from([start]);
        while let Some(i) = queue.pop_front() {
            for j in neighbors(i, w, n) {
                if labels[j] == labels[i] && root[j] == usize::MAX {
                    root[j] = start;
                    queue.push_back(j);
                }
            }
        }
    }
    root
}

pub fn neighbors(i: usize, w: usize, n: usize) -> impl Iterator<Item = usize> {
    let x = i % w;
    [
        (x > 0).then(|| i - 1),
        (x + 1 < w).then_some(i + 1),
        (i >= w).then(|| i - w),
        (i + w < n).then_some(i + w),
    ]
    .into_iter()
    .flatten()
}

/// Connectivity by its definition, with ordered maps.
pub fn connect<T: PartialEq>(
    geometry: Geometry,
    labels: &[T],
    features: &[u32],
    min_region: u32,
) -> Vec<u16> {
    connect_but(geometry, labels, features, min_region, BTreeSet::new())
}

/// The same where some components, by their first pixel, are never small.
pub fn connect_but<T: PartialEq>(
    geometry: Geometry,
    labels: &[T],
    features: &[u32],
    min_region: u32,
    kept: BTreeSet<usize>,
) -> Vec<u16> {
    connect_any(geometry, labels, features, min_region, kept, &[])
}

/// Connectivity within areas: each pixel has the number of its own.
pub fn connect_in<T: PartialEq>(
    geometry: Geometry,
    labels: &[T],
    features: &[u32],
    min_region: u32,
    areas: &[u32],
) -> Vec<u16> {
    let labels: Vec<_> = labels.iter().zip(areas).collect();
    connect_any(geometry, &labels, features, min_region, BTreeSet::new(), areas)
}

/// True if two pixels are in one area, as all are where there are none.
fn share(areas: &[u32], i: usize, j: usize) -> bool {
    areas.is_empty() || areas[i] == areas[j]
}

fn connect_any<T: PartialEq>(
    geometry: Geometry,
    labels: &[T],
    features: &[u32],
    min_region: u32,
    mut kept: BTreeSet<usize>,
    areas: &[u32],
) -> Vec<u16> {
    let (w, n) = (geometry.width() as usize, geometry.pixels());
    let mut root = components(geometry, labels);
    for round in 0.. {
        // Area and colors of a component, at its first pixel.
        let mut sums = vec![(0u64, [0u64; 3]); n];
        for i in (0..n).filter(|&i| features[i] != OUTSIDE) {
            let own = &mut sums[root[i]];
            own.0 += 1;
            for (sum, v) in own.1.iter_mut().zip(unpack(features[i])) {
                *sum += u64::from(v);
            }
        }
        let small: Vec<bool> =
            (0..n).map(|r| (1..u64::from(min_region)).contains(&sums[r].0) && !kept.contains(&r)).collect();
        let mean = |r: usize| sums[r].1.map(|s| (32 * s + sums[r].0) / (2 * sums[r].0));
        let mut pick: BTreeMap<usize, (bool, u64, usize)> = BTreeMap::new();
        for i in 0..n {
            for j in neighbors(i, w, n).filter(|&j| root[j] != root[i] && small[root[i]]) {
                if features[j] == OUTSIDE || !share(areas, i, j) {
                    continue;
                }
                let (a, b) = (mean(root[i]), mean(root[j]));
                let distance: u64 = a.iter().zip(b).map(|(&a, b)| a.abs_diff(b).pow(2)).sum();
                let small = small[root[j]];
                let key = match (small, round < 2 || round == 2 && min_region > 64) {
                    (false, true) => (false, distance, root[j]),
                    (true, true) => (false, distance / 4, root[j]),
                    (false, false) => (false, distance / 2, root[j]),
                    (true, false) => (true, distance / 4, root[j]),
                };
                let entry = pick.entry(root[i]).or_insert(key);
                *entry = (*entry).min(key);
            }
        }
        if pick.is_empty() {
            let number: BTreeMap<usize, u16> = (0..n).filter(|&r| sums[r].0 > 0).zip(0..).collect();
            return inside_only(features, |i| number[&root[i]]);
        }
        // Each component points to a lower one that it has joined, or to itself.
        let mut joined: Vec<usize> = (0..n).collect();
        let lowest = |joined: &[usize], mut r: usize| {
            while joined[r] != r {
                r = joined[r];
            }
            r
        };
        for (&a, &(_, _, b)) in &pick {
            let (a, b) = (lowest(&joined, a), lowest(&joined, b));
            joined[a.max(b)] = a.min(b);
        }
        root.iter_mut().for_each(|r| *r = lowest(&joined, *r));
        kept = kept.iter().map(|&r| lowest(&joined, r)).collect();
    }
    unreachable!("rounds end when nothing is small")
}

/// Labels without connectivity: clusters numbered in their order.
pub fn numbered<T: Ord + Copy>(clusters: &[T], features: &[u32]) -> Vec<u16> {
    let inside = clusters.iter().zip(features).filter(|(_, feature)| **feature != OUTSIDE);
    let used: BTreeSet<T> = inside.map(|(&cluster, _)| cluster).collect();
    let number: BTreeMap<T, u16> = used.into_iter().enumerate().map(|(i, k)| (k, i as u16)).collect();
    inside_only(features, |i| number[&clusters[i]])
}

/// SNIC by its definition: the queue is an ordered set of (distance, pixel, cluster).
pub fn snic(grid: &Grid, plan: &snic::Plan, features: &[u32]) -> Vec<u16> {
    let (w, h) = (grid.geometry().width() as usize, grid.geometry().height() as usize);
    let point = |i: usize| -> [i128; 5] {
        let [l, a, b] = unpack(features[i]);
        [l, a, b, plan.px[i % w], plan.py[i / w]].map(i128::from)
    };
    let mut queue: BTreeSet<(i128, usize, usize)> = (0..grid.cells())
        .map(|k| {
            let (x, y) = seed(grid, features, k);
            (0, y * w + x, k)
        })
        .filter(|&(_, i, _)| features[i] != OUTSIDE)
        .collect();
    let mut labels = vec![None; w * h];
    let mut members = vec![Vec::new(); grid.cells()];
    let mut totals = vec![[0i128; 5]; grid.cells()];
    while let Some((_, i, k)) = queue.pop_first() {
        if labels[i].is_some() {
            continue;
        }
        labels[i] = Some(k as u16);
        members[k].push(i);
        let n = members[k].len() as i128;
        let p = point(i);
        let mean: Vec<i128> = (0..5)
            .map(|j| {
                totals[k][j] += p[j];
                // 16 times the mean, rounded half up.
                (2 * 16 * totals[k][j] + n).div_euclid(2 * n)
            })
            .collect();
        for (dx, dy) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
            let (x, y) = ((i % w) as i64 + dx, (i / w) as i64 + dy);
            if x < 0 || y < 0 || x >= w as i64 || y >= h as i64 {
                continue;
            }
            let neighbor = y as usize * w + x as usize;
            if labels[neighbor].is_none() && features[neighbor] != OUTSIDE {
                let p = point(neighbor);
                queue.insert(((0..5).map(|j| (16 * p[j] - mean[j]).pow(2)).sum(), neighbor, k));
            }
        }
    }
    let home = |i: usize| {
        let s = grid.step() as usize;
        let (gx, gy) = ((i % w / s).min(grid.nx() as usize - 1), (i / w / s).min(grid.ny() as usize - 1));
        (gy * grid.nx() as usize + gx) as u16
    };
    // A pixel that no seed has reached belongs to its cell.
    inside_only(features, |i| labels[i].unwrap_or_else(|| home(i)))
}

/// Quick shift by its definition, with the weights' chain of operations: every pair in full, one after the other. The root
/// of each pixel.
pub fn quickshift(geometry: Geometry, plan: &quickshift::Plan, features: &[u32]) -> Vec<u32> {
    let (w, h) = (i64::from(geometry.width()), i64::from(geometry.height()));
    let color = |p: i64, q: i64| -> f32 {
        let (p, q) = (unpack(features[p as usize]), unpack(features[q as usize]));
        (0..3).map(|j| p[j].abs_diff(q[j]).pow(2)).sum::<u32>() as f32
    };
    let around = |p: i64, reach: i64| {
        let (x, y) = (p % w, p / w);
        ((y - reach).max(0)..(y + reach + 1).min(h))
            .flat_map(move |v| ((x - reach).max(0)..(x + reach + 1).min(w)).map(move |u| v * w + u))
            .filter(|&q| features[q as usize] != OUTSIDE)
    };
    let weight = |p: i64, q: i64| -> u64 {
        let g = &plan.weight;
        let (dx, dy) = ((p % w).abs_diff(q % w), (p / w).abs_diff(q / w));
        let base = g.column[dx as usize] - g.row[dy as usize];
        let u = (-g.color).mul_add(color(p, q), base).max(0.0);
        let exponent = u.mul_add(g.span, g.bias);
        let f = u.mul_add(g.span, -(exponent - g.bias));
        let power = EXP2.iter().rev().chain(&[1.0]).copied().reduce(|sum, factor| sum.mul_add(f, factor));
        let scale = 2f32.powi((exponent.to_bits() & 255) as i32 - 127);
        let units = f64::from(power.unwrap()) * f64::from(scale) * f64::from(8_388_608.0 / g.unit);
        // The chain rounds half to even.
        units.round_ties_even() as u64
    };
    let density: Vec<u64> =
        (0..w * h).map(|p| around(p, i64::from(plan.radius)).map(|q| weight(p, q)).sum()).collect();
    // No color makes up for a place beyond tau.
    let reach = 64.min(plan.tau_sq.sqrt() as i64 + 1);
    let parent = |p: i64| -> i64 {
        let mut best: Option<(f32, i64)> = None;
        for q in around(p, reach) {
            let place = ((p % w - q % w).pow(2) + (p / w - q / w).pow(2)) as f32;
            let d = plan.color_sq.mul_add(color(p, q), place);
            let (e, other) = (density[p as usize], density[q as usize]);
            let higher = other > e || (other == e && q < p);
            if higher && d <= plan.tau_sq && best.is_none_or(|(least, _)| d < least) {
                best = Some((d, q));
            }
        }
        best.map_or(p, |(_, q)| q)
    };
    let parents: Vec<i64> = (0..w * h).map(parent).collect();
    let root = |mut p: i64| {
        while parents[p as usize] != p {
            p = parents[p as usize];
        }
        p as u32
    };
    (0..w * h).map(|p| if features[p as usize] == OUTSIDE { u32::MAX } else { root(p) }).collect()
}

/// Region merging by its definition: one pass after the other, every pair of pixels that touch, in wide integers.
pub fn merge(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &merge::Params,
    quanta: f64,
) -> Vec<u16> {
    merge_in(geometry, labels, features, params, quanta, &[], 0.0)
}

/// The same within areas or, if their borders have a price in units of color, across them.
pub fn merge_in(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &merge::Params,
    quanta: f64,
    areas: &[u32],
    price: f32,
) -> Vec<u16> {
    let (w, n) = (geometry.width() as usize, geometry.pixels());
    let price = match price > 0.0 {
        true => Some((((f64::from(price) * quanta * 16.0).powi(2)) as u128).max(1)),
        false => None,
    };
    let ratio = (f64::from(params.ratio).powi(2) * 256.0).round() as u128;
    let limit = (f64::from(params.max_distance) * quanta * 16.0).powi(2);
    let mut labels = labels.to_vec();
    for _ in 0..params.passes {
        let mut sums: BTreeMap<u16, (u64, [u64; 3])> = BTreeMap::new();
        for i in (0..n).filter(|&i| labels[i] != NO_LABEL) {
            let entry = sums.entry(labels[i]).or_default();
            entry.0 += 1;
            for (sum, v) in entry.1.iter_mut().zip(unpack(features[i])) {
                *sum += u64::from(v);
            }
        }
        let mean = |l: u16| sums[&l].1.map(|s| (32 * s + sums[&l].0) / (2 * sums[&l].0));
        let mut apart: BTreeMap<(u16, u16), u128> = BTreeMap::new();
        for i in 0..n {
            for j in neighbors(i, w, n).filter(|&j| labels[j] != labels[i]) {
                if labels[i] == NO_LABEL || labels[j] == NO_LABEL {
                    continue;
                }
                let Some(price) = (if share(areas, i, j) { Some(0) } else { price }) else { continue };
                let (a, b) = (mean(labels[i]), mean(labels[j]));
                let d: u128 = (0..3).map(|k| u128::from(a[k].abs_diff(b[k])).pow(2)).sum();
                let d = (d + price).min(u128::from(u32::MAX));
                let least = apart.entry((labels[i], labels[j])).or_insert(d);
                *least = (*least).min(d);
            }
        }
        let mut nearest: BTreeMap<u16, u128> = BTreeMap::new();
        for (&(a, _), &d) in &apart {
            let least = nearest.entry(a).or_insert(d);
            *least = (*least).min(d);
        }
        let mut name: BTreeMap<u16, u16> = sums.keys().map(|&l| (l, l)).collect();
        for (&(a, b), &d) in &apart {
            let (near_a, near_b) = (256 * d <= ratio * nearest[&a], 256 * d <= ratio * nearest[&b]);
            let alike = match params.rule {
                merge::Rule::Mutual => near_a && near_b,
                merge::Rule::Either => near_a || near_b,
            };
            if alike && (params.max_distance == 0.0 || d as f64 <= limit) {
                let (a, b) = (name[&a], name[&b]);
                let low = a.min(b);
                name.values_mut().filter(|v| **v == a || **v == b).for_each(|v| *v = low);
            }
        }
        labels.iter_mut().filter(|l| **l != NO_LABEL).for_each(|l| *l = name[l]);
    }
    let used: BTreeSet<u16> = labels.iter().copied().filter(|&l| l != NO_LABEL).collect();
    let number: BTreeMap<u16, u16> = used.into_iter().enumerate().map(|(i, l)| (l, i as u16)).collect();
    labels.iter().map(|l| number.get(l).copied().unwrap_or(NO_LABEL)).collect()
}

/// The hierarchy by its definition: ordered maps, one pair of pixels at a time, and every stage to the last region. `earlier` has the
/// region of the last frame that a superpixel's predecessor was in. Returns the label map of `regions`, and all merges in their order
/// by the labels that were given.
pub fn hierarchy(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &hierarchy::Params,
    quanta: f64,
    earlier: &BTreeMap<u16, u16>,
) -> (Vec<u16>, Vec<MergeStep>) {
    hierarchy_in(geometry, labels, features, params, quanta, earlier, &[], 0.0)
}

/// The same where pairs within areas, which are of a region's first pixel, come first or, if borders have a price in units of color, are
/// nearer than others.
#[allow(clippy::too_many_arguments)]
pub fn hierarchy_in(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &hierarchy::Params,
    quanta: f64,
    earlier: &BTreeMap<u16, u16>,
    areas: &[u32],
    price: f32,
) -> (Vec<u16>, Vec<MergeStep>) {
    let (w, pixels) = (geometry.width() as usize, geometry.pixels());
    let side = pixels as f64 / 256.0;
    let place = (f64::from(params.compactness) * quanta).powi(2) / side;
    let mut shift = 63u32;
    while shift > 0 && place * 2f64.powi(shift as i32) + 0.5 >= 2f64.powi(30) {
        shift -= 1;
    }
    let place = (place * 2f64.powi(shift as i32) + 0.5).floor() as u128;

    let mut sums: BTreeMap<u16, (u128, [u128; 5])> = BTreeMap::new();
    let mut edges: BTreeMap<(u16, u16), [u128; 3]> = BTreeMap::new();
    for i in (0..pixels).filter(|&i| labels[i] != NO_LABEL) {
        let [l, a, b] = unpack(features[i]).map(u128::from);
        let sum = sums.entry(labels[i]).or_default();
        sum.0 += 1;
        sum.1.iter_mut().zip([l, a, b, (i % w) as u128, (i / w) as u128]).for_each(|(sum, v)| *sum += v);
        for j in neighbors(i, w, pixels).filter(|&j| labels[j] > labels[i] && labels[j] != NO_LABEL) {
            let (one, other) = (unpack(features[i]), unpack(features[j]));
            let edge = edges.entry((labels[i], labels[j])).or_default();
            edge[0] += 1;
            edge[1] += (0..3).map(|k| u128::from(one[k].abs_diff(other[k]))).sum::<u128>();
            let regions = [labels[i], labels[j]].map(|label| earlier.get(&label));
            edge[2] += u128::from(regions[0].is_some() && regions[0] == regions[1]);
        }
    }
    let mut area: BTreeMap<u16, u32> = BTreeMap::new();
    for (&label, &own) in labels.iter().zip(areas) {
        area.entry(label).or_insert(own);
    }
    let more = if price > 0.0 { ((f64::from(price) * quanta) as u128).max(1) } else { 0 };
    for (_, edge) in edges.iter_mut().filter(|((a, b), _)| area.get(a) != area.get(b)) {
        edge[1] += edge[0] * more;
    }
    let (mut edges, mut later): (BTreeMap<_, _>, BTreeMap<_, _>) =
        edges.into_iter().partition(|((a, b), _)| area.get(a) == area.get(b) || more > 0);
    let n = sums.len();
    // The name of the region that each superpixel is in, and the largest height in it.
    let mut of: BTreeMap<u16, u16> = sums.keys().map(|&label| (label, label)).collect();
    let mut highest: BTreeMap<u16, u128> = sums.keys().map(|&label| (label, 0)).collect();
    let mut merges: Vec<(u128, u32, u16, u16, u128)> = Vec::new();
    let (mut least, mut round, mut open, mut stage) = (0, 0, false, n);
    while stage > 0 {
        stage /= 8;
        while sums.len() > stage.max(1) {
            let mut selected: BTreeMap<u16, (u128, u16)> = BTreeMap::new();
            for (&(i, j), &[l, b, held]) in &edges {
                let (a, c) = (sums[&i], sums[&j]);
                let quarter = |sum: u128, n: u128| (8 * sum + n) / (2 * n);
                let apart: Vec<u128> =
                    (0..5).map(|k| quarter(a.1[k], a.0).abs_diff(quarter(c.1[k], c.0))).collect();
                let d = apart[..3].iter().sum::<u128>().pow(2)
                    + (20.0 * (4.0 * quanta).powi(2)) as u128
                    + quarter(b, l).pow(2) / 2
                    + place * (apart[3].pow(2) + apart[4].pow(2)) / (1 << shift);
                let weight = 16 * a.0 * c.0 / (a.0 + c.0);
                let mut root = 16u128;
                while (root + 1).pow(5) <= l << 20 {
                    root += 1;
                }
                let together = 256 * held / l * 224 / 256;
                let d = d.min(u128::from(u32::MAX)) * (256 - together) / 256;
                let mut cost = weight * d / root;
                let mut unit = 1;
                while cost / unit >= 1 << 24 {
                    unit *= 2;
                }
                cost -= cost % unit;
                for (from, to) in [(i, j), (j, i)] {
                    let best = selected.entry(from).or_insert((cost, to));
                    *best = (*best).min((cost, to));
                }
            }
            let mut joins = Vec::new();
            for (&i, &(cost, to)) in &selected {
                let mutual = selected[&to].1 == i;
                if mutual && to < i || !mutual && open {
                    joins.push((cost.max(highest[&i]).max(highest[&to]).max(least), round, i, to));
                }
            }
            if joins.is_empty() && later.is_empty() {
                stage = 0;
                break;
            }
            let done = joins.is_empty();
            open = 16 * joins.len() < sums.len();
            // A region goes where what it has joined goes.
            let into: BTreeMap<u16, u16> = joins.iter().map(|&(_, _, i, to)| (i, to)).collect();
            let root = |mut name: u16| {
                while let Some(&to) = into.get(&name) {
                    name = to;
                }
                name
            };
            for &(height, _, i, _) in &joins {
                let (sum, top) = (sums.remove(&i).unwrap(), highest.get_mut(&root(i)).unwrap());
                *top = (*top).max(height);
                let whole = sums.get_mut(&root(i)).unwrap();
                whole.0 += sum.0;
                (0..5).for_each(|k| whole.1[k] += sum.1[k]);
            }
            let mut fewer: BTreeMap<(u16, u16), [u128; 3]> = BTreeMap::new();
            for (&(i, j), more) in edges.iter().filter(|((i, j), _)| root(*i) != root(*j)) {
                let (i, j) = (root(i).min(root(j)), root(i).max(root(j)));
                let edge = fewer.entry((i, j)).or_default();
                (0..3).for_each(|k| edge[k] += more[k]);
            }
            edges = fewer;
            if done {
                for ((i, j), more) in std::mem::take(&mut later) {
                    let (i, j) = (of[&i].min(of[&j]), of[&i].max(of[&j]));
                    let edge: &mut [u128; 3] = edges.entry((i, j)).or_default();
                    (0..3).for_each(|k| edge[k] += more[k]);
                }
                least = merges.iter().map(|merge| merge.0).max().unwrap_or(0).max(least);
            }
            of.values_mut().for_each(|name| *name = root(*name));
            let area = |name| sums[&root(name)].0;
            merges.extend(joins.iter().map(|&(height, round, i, to)| (height, round, i, to, area(i))));
            round += 1;
        }
        if stage > 0 {
            merges.sort();
            least = merges[n - 2 * stage - 1].0.max(least);
        }
    }
    merges.sort();
    let keep = n.saturating_sub(params.regions as usize).min(merges.len());
    let into: BTreeMap<u16, u16> = merges[..keep].iter().map(|&(_, _, i, to, _)| (i, to)).collect();
    let mut numbers: BTreeMap<u16, u16> = BTreeMap::new();
    let mut name = BTreeMap::new();
    for &label in of.keys() {
        let mut root = label;
        while let Some(&to) = into.get(&root) {
            root = to;
        }
        let next = numbers.len() as u16;
        name.insert(label, *numbers.entry(root).or_insert(next));
    }
    let map = labels.iter().map(|label| name.get(label).copied().unwrap_or(NO_LABEL)).collect();
    let step = |(height, _, i, to, area): (u128, u32, u16, u16, u128)| MergeStep {
        a: to.into(),
        b: i.into(),
        height: height as f32,
        area: area as u32,
    };
    (map, merges.into_iter().map(step).collect())
}

/// Boundary refinement by its definition: one pixel after the other, every piece of the ring told by a search, in wide integers.
pub fn refine(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &refine::Params,
    quanta: f64,
) -> Vec<u16> {
    refine_in(geometry, labels, features, params, quanta, &[])
}

/// The same where a pixel takes the region of a 4-neighbor in its own area only.
pub fn refine_in(
    geometry: Geometry,
    labels: &[u16],
    features: &[u32],
    params: &refine::Params,
    quanta: f64,
    areas: &[u32],
) -> Vec<u16> {
    let (w, h) = (geometry.width() as i32, geometry.height() as i32);
    let weight = (f64::from(params.smoothness) * quanta * 16.0).powi(2);
    let weights = [weight.round() as i64, (weight / 2f64.sqrt()).round() as i64];
    let mut labels = labels.to_vec();
    for _ in 0..params.sweeps {
        let mut sums: BTreeMap<u16, (i64, [i64; 3])> = BTreeMap::new();
        for (&label, &feature) in labels.iter().zip(features) {
            let (n, sum) = sums.entry(label).or_default();
            *n += 1;
            sum.iter_mut().zip(unpack(feature)).for_each(|(sum, v)| *sum += i64::from(v));
        }
        let means: BTreeMap<u16, [i64; 3]> =
            sums.iter().map(|(&label, &(n, sum))| (label, sum.map(|v| (32 * v + n) / (2 * n)))).collect();
        for (px, py) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            for (x, y) in (py..h).step_by(2).flat_map(|y| (px..w).step_by(2).map(move |x| (x, y))) {
                refine_pixel(&mut labels, [w, h], (x, y), features, &means, weights, areas);
            }
        }
    }
    labels
}

fn refine_pixel(
    labels: &mut [u16],
    [w, h]: [i32; 2],
    (x, y): (i32, i32),
    features: &[u32],
    means: &BTreeMap<u16, [i64; 3]>,
    weights: [i64; 2],
    areas: &[u32],
) {
    let at = |(dx, dy): (i32, i32)| match (x + dx, y + dy) {
        (x, y) if x >= 0 && y >= 0 && x < w && y < h => labels[(y * w + x) as usize],
        _ => NO_LABEL,
    };
    let own = at((0, 0));
    if own == NO_LABEL {
        return;
    }
    let straight = [(0, -1), (-1, 0), (1, 0), (0, 1)];
    let kept: Vec<_> = straight.into_iter().filter(|&d| at(d) == own).collect();
    let Some(&first) = kept.first() else { return };
    // Flood fill from the first of them around the pixel.
    let (mut seen, mut queue) = (BTreeSet::from([first]), vec![first]);
    while let Some((dx, dy)) = queue.pop() {
        for next in straight.map(|(ex, ey)| (dx + ex, dy + ey)) {
            let in_ring = next != (0, 0) && next.0.abs() <= 1 && next.1.abs() <= 1;
            if in_ring && at(next) == own && seen.insert(next) {
                queue.push(next);
            }
        }
    }
    if !kept.iter().all(|d| seen.contains(d)) {
        return;
    }
    let color = unpack(features[(y * w + x) as usize]).map(|v| 16 * i64::from(v));
    let energy = |label: u16| {
        let mut sum: i64 = (0..3).map(|i| (color[i] - means[&label][i]).pow(2)).sum();
        for (dx, dy) in (-1..2).flat_map(|dy| (-1..2).map(move |dx| (dx, dy))) {
            if (dx, dy) != (0, 0) && at((dx, dy)) != label {
                sum += weights[usize::from(dx != 0 && dy != 0)];
            }
        }
        sum
    };
    let pixel = |(dx, dy): (i32, i32)| ((y + dy) * w + x + dx) as usize;
    let others = straight.into_iter().filter(|&d| at(d) != NO_LABEL && share(areas, pixel(d), pixel((0, 0))));
    let others = others.map(at);
    let best =
        others.map(|label| (energy(label), label != own, label)).chain([(energy(own), false, own)]).min();
    labels[(y * w + x) as usize] = best.map_or(own, |(_, _, label)| label);
}
