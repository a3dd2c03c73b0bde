// SPDX-License-Identifier: MPL-2.0
//! A number of regions that comes and goes in a clip: what is wanted of each frame, and what has to hold of each result.

use std::collections::{BTreeMap, BTreeSet};

use gstsuperpixel::image::{Geometry, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge};
use gstsuperpixel::regions::Regions;

use crate::oracle;
use crate::pictures::{Buffer, clip};

/// The numbers of three frames each.
const NUMBERS: [u32; 5] = [0, 50, 0, 20, 35];
const FRAMES: usize = 3 * NUMBERS.len();

/// Outputs besides labels: none, tables, and tables in every second frame.
pub const MODES: [fn(usize) -> Outputs; 3] =
    [|_| Outputs::default(), |_| TABLES, |frame| if frame % 2 == 1 { TABLES } else { Outputs::default() }];
const TABLES: Outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };

/// Parameters and outputs for each frame of a clip.
pub struct Case {
    pub params: Vec<Params>,
    pub what: String,
}

/// With and without a list of merges, `merge` where there is no number of regions, and a grid that follows from the number.
pub fn cases() -> Vec<Case> {
    type IsListed = fn(usize) -> bool;
    let lists: [(&str, IsListed); 3] = [
        ("no list", |_| false),
        ("a list", |_| true),
        // It comes and goes with a number and in between.
        ("a list at times", |frame| frame % 4 > 1),
    ];
    let mut cases = Vec::new();
    for (list, levels) in lists {
        for ratio in [0.0, 2.0] {
            for superpixels in [0, 300] {
                let params = |frame: usize| {
                    let regions = NUMBERS[frame / 3];
                    let ratio = if regions == 0 { ratio } else { 0.0 };
                    Params {
                        superpixels,
                        merge: merge::Params { ratio, ..Default::default() },
                        hierarchy: hierarchy::Params { regions, levels: levels(frame), ..Default::default() },
                        temporal: true,
                        ..Params::default()
                    }
                };
                cases.push(Case {
                    params: (0..FRAMES).map(params).collect(),
                    what: format!("{list}, merge {ratio}, superpixels {superpixels}"),
                });
            }
        }
    }
    cases
}

/// As many frames as a case has, of a picture that moves.
pub fn frames() -> Vec<Buffer> {
    clip(Geometry::new(120, 90).unwrap(), PixelFormat::Rgb, 5, FRAMES, [2, 1], None)
}

/// Identities of a clip so far.
#[derive(Default)]
pub struct Identities {
    seen: BTreeSet<u32>,
    /// Identities of the last frame with a table, since all had to be new.
    last: BTreeSet<u32>,
    first: u32,
}

impl Identities {
    /// Checks those of a frame, if it has a table. `anew` is the first identity that was free before it, where all have to be new.
    pub fn check(&mut self, regions: &Regions, anew: Option<u32>, what: &str) {
        if let Some(first) = anew {
            assert!(self.seen.last().is_none_or(|&last| last < first), "{what}: {first} is free again");
            self.first = first;
            self.last.clear();
        }
        if regions.table.is_empty() {
            return;
        }
        let own: BTreeSet<u32> = regions.table.iter().map(|region| region.track_id).collect();
        assert_eq!(own.len(), regions.count as usize, "{what}: two regions share an identity");
        assert!(!own.contains(&0), "{what}: a region without an identity");
        assert!(own.first() >= Some(&self.first), "{what}: {:?} is of before {}", own.first(), self.first);
        let back: Vec<_> = own.difference(&self.last).filter(|id| self.seen.contains(id)).collect();
        assert!(back.is_empty(), "{what}: identities {back:?} came back");
        let kept = own.intersection(&self.last).count();
        assert!(self.last.is_empty() || 2 * kept > own.len(), "{what}: {kept} of {} are kept", own.len());
        self.seen.extend(&own);
        self.last = own;
    }
}

/// Checks a frame: dense and connected labels, as many as wanted, and what the lists say by a count over the map.
pub fn check(
    map: &[u16],
    regions: &Regions,
    plan: &Plan,
    params: &Params,
    buffer: &Buffer,
    outputs: Outputs,
    what: &str,
) {
    let g = buffer.info.geometry;
    let (w, n, count) = (g.width() as usize, g.pixels(), regions.count as usize);
    let names: BTreeSet<u16> = map.iter().copied().collect();
    assert!(names.iter().copied().eq(0..count as u16), "{what}: {count} regions, labels {names:?}");
    let roots = oracle::components(g, map);
    let parts = roots.iter().enumerate().filter(|&(i, &root)| i == root).count();
    assert_eq!(parts, count, "{what}: labels are not one region each");
    if params.hierarchy.regions > 0 {
        assert_eq!(regions.count, params.hierarchy.regions, "{what}");
    }
    assert_eq!(regions.merges.len(), if params.hierarchy.levels { count - 1 } else { 0 }, "{what}");
    assert_eq!(regions.table.len(), if outputs.table { count } else { 0 }, "{what}");
    if !outputs.table {
        return;
    }
    #[derive(Clone)]
    struct Sums {
        area: u32,
        at: [u64; 2],
        rgb: [u64; 3],
        bounds: [u16; 4],
    }
    let none = Sums { area: 0, at: [0; 2], rgb: [0; 3], bounds: [u16::MAX, u16::MAX, 0, 0] };
    let mut sums = vec![none; count];
    let mut pairs: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let samples = buffer.samples();
    for (i, &label) in map.iter().enumerate() {
        let own = &mut sums[usize::from(label)];
        let (x, y) = (i % w, i / w);
        own.area += 1;
        own.at = [own.at[0] + x as u64, own.at[1] + y as u64];
        let rgb = samples(x, y).1;
        own.rgb.iter_mut().zip(rgb).for_each(|(sum, code)| *sum += u64::from(code));
        let [x0, y0, x1, y1] = own.bounds;
        let (x, y) = (x as u16, y as u16);
        own.bounds = [x0.min(x), y0.min(y), x1.max(x + 1), y1.max(y + 1)];
        for j in oracle::neighbors(i, w, n).filter(|&j| j > i && map[j] != label) {
            *pairs.entry((label.min(map[j]).into(), label.max(map[j]).into())).or_default() += 1;
        }
    }
    for (label, (record, own)) in regions.table.iter().zip(&sums).enumerate() {
        let area = u64::from(own.area);
        let [r, g, b] = own.rgb.map(|sum| ((2 * sum + area) / (2 * area)) as u8);
        assert_eq!(
            (record.area, record.bounds, record.mean_rgb),
            (own.area, own.bounds, [r, g, b, 255]),
            "{what}: label {label}"
        );
        let centroid = own.at.map(|sum| (sum as f64 / area as f64) as f32);
        assert_eq!(record.centroid, centroid, "{what}: label {label}");
        assert!(
            params.merge.ratio > 0.0 || own.area >= plan.least_region(),
            "{what}: label {label} is small"
        );
    }
    let listed: Vec<_> = regions.neighbors.iter().map(|pair| ((pair.a, pair.b), pair.length)).collect();
    assert_eq!(listed, pairs.into_iter().collect::<Vec<_>>(), "{what}");
}

/// Returns true if a frame's regions do not continue earlier ones: it is the first, or merging was switched on or off.
pub fn is_anew(params: &[Params], frame: usize) -> bool {
    let kind = |frame: usize| [params[frame].hierarchy.regions > 0, params[frame].merge.ratio > 0.0];
    frame == 0 || kind(frame) != kind(frame - 1)
}
