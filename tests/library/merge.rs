// SPDX-License-Identifier: MPL-2.0
//! Region merging: equality with the specification, exact answers, what follows from the rule, identities over time.

use crate::oracle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::pictures::{Buffer, PICTURES, Picture, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge::{self, Rule};
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

static CPU: LazyLock<[Cpu; 3]> = LazyLock::new(|| [1, 2, 8].map(|n| Cpu::new(n).unwrap()));

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

fn segment_with(engine: &mut Engine<Cpu>, buffer: &Buffer) -> (Vec<u16>, Regions) {
    let g = buffer.info.geometry;
    let mut map = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap().clone();
    (map, regions)
}

fn segment(cpu: &Cpu, params: &Params, buffer: &Buffer) -> (Vec<u16>, Regions) {
    let mut engine = Engine::new(cpu.clone(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let first = segment_with(&mut engine, buffer);
    let again = segment_with(&mut engine, buffer);
    assert!(first.0 == again.0, "two runs differ");
    first
}

fn merging(ratio: f32, rule: Rule) -> merge::Params {
    merge::Params { ratio, rule, ..Default::default() }
}

/// Returns true if every region of `fine` lies in one of `coarse`.
fn refines(fine: &[u16], coarse: &[u16]) -> bool {
    let mut of: BTreeMap<u16, u16> = BTreeMap::new();
    fine.iter().zip(coarse).all(|(f, c)| of.entry(*f).or_insert(*c) == c)
}

fn any_merge() -> impl Strategy<Value = merge::Params> {
    let ratio = prop_oneof![4 => 1.0f32..3.0, 1 => 0.01f32..1.0, 1 => 3.0f32..100.0];
    let distance = prop_oneof![2 => Just(0.0f32), 1 => 0.01f32..400.0, 2 => 1.0f32..30.0];
    (ratio, any::<bool>(), distance, 1u32..9).prop_map(|(ratio, mutual, max_distance, passes)| {
        merge::Params { ratio, rule: if mutual { Rule::Mutual } else { Rule::Either }, max_distance, passes }
    })
}

fn any_params() -> impl Strategy<Value = Params> {
    let slic = (1.0f32..40.0, 0usize..4).prop_map(|(compactness, space)| {
        let color_space = ColorSpace::ALL[space];
        AlgorithmParams::Slic(slic::Params { compactness, color_space, ..Default::default() })
    });
    let lsc =
        (0.02f32..0.3).prop_map(|ratio| AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() }));
    let quickshift = (0.5f32..2.0, 1.0f32..10.0).prop_map(|(sigma, tau)| {
        AlgorithmParams::QuickShift(quickshift::Params { sigma, tau, ..Default::default() })
    });
    let algorithm = prop_oneof![3 => slic, 2 => lsc, 1 => quickshift];
    let min_region = prop_oneof![Just(0.25f32), 0.0f32..1.0];
    (4u32..24, algorithm, prop::bool::weighted(0.8), min_region, any_merge()).prop_map(
        |(superpixel_size, algorithm, connectivity, min_region, merge)| Params {
            superpixel_size,
            connectivity,
            min_region,
            merge,
            algorithm,
            ..Params::default()
        },
    )
}

/// Size, format, seed, and which picture.
fn any_frame() -> impl Strategy<Value = (FrameInfo, u32, Picture)> {
    (1u32..120, 1u32..90, 0usize..14, any::<u32>(), 0usize..6).prop_map(|(w, h, format, seed, picture)| {
        (FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::ALL[format]), seed, PICTURES[picture])
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_merge_equals_the_specification(
        (info, seed, picture) in any_frame(), params in any_params()
    ) {
        let (geometry, w) = (info.geometry, info.geometry.width());
        let buffer = Buffer::new(info, picture, seed.into(), 3);
        let (map, regions) = segment(&CPU[1], &params, &buffer);
        let alone = Params { merge: merge::Params::default(), ..params.clone() };
        let (before, _) = segment(&CPU[1], &alone, &buffer);
        let space = params.algorithm.color_space();
        let quanta = if space == ColorSpace::Rgb { 4.0 } else { 8.0 };
        let want = oracle::merge(geometry, &before, &buffer.features(space), &params.merge, quanta);
        prop_assert!(map == want, "merging differs from the specification");

        // Every label is used, the table's areas are those of the map, the listed neighbors are those of the map.
        let mut area = vec![0u32; regions.count as usize];
        map.iter().for_each(|&label| area[usize::from(label)] += 1);
        prop_assert!(area.iter().all(|&a| a > 0));
        prop_assert_eq!(regions.table.iter().map(|region| region.area).collect::<Vec<_>>(), area);
        let mut pairs = BTreeSet::new();
        for i in 0..geometry.pixels() {
            for j in oracle::neighbors(i, w as usize, geometry.pixels()).filter(|&j| map[j] > map[i]) {
                pairs.insert((u32::from(map[i]), u32::from(map[j])));
            }
        }
        let listed: BTreeSet<_> = regions.neighbors.iter().map(|pair| (pair.a, pair.b)).collect();
        prop_assert_eq!(listed, pairs);
        if params.connectivity {
            let roots = oracle::components(geometry, &map);
            let first: Vec<usize> = (0..map.len()).filter(|&i| roots[i] == i).collect();
            prop_assert_eq!(first.len(), regions.count as usize, "labels are not one region each");
            prop_assert!(first.windows(2).all(|p| map[p[0]] < map[p[1]]), "labels do not follow raster order");
        }
        for cpu in [&CPU[0], &CPU[2]] {
            let (other, other_regions) = segment(cpu, &params, &buffer);
            prop_assert!(map == other, "threads change the map");
            prop_assert_eq!(&regions.table, &other_regions.table);
        }
    }

    #[test]
    fn what_merges_more_holds_what_merges_less(
        (info, seed, picture) in any_frame(), params in any_params(), more in 1.0f32..4.0
    ) {
        let buffer = Buffer::new(info, picture, seed.into(), 0);
        let with = |merge: merge::Params| segment(&CPU[1], &Params { merge, ..params.clone() }, &buffer).0;
        let count = |map: &[u16]| usize::from(map.iter().copied().max().unwrap()) + 1;
        let once = merge::Params { passes: 1, ..params.merge.clone() };
        let (before, map) = (with(merge::Params::default()), with(once.clone()));
        prop_assert!(refines(&before, &map), "a superpixel was cut");
        let mutual = with(merge::Params { rule: Rule::Mutual, ..once.clone() });
        let either = with(merge::Params { rule: Rule::Either, ..once.clone() });
        prop_assert!(refines(&mutual, &either), "both sides merge what one does not");
        let ratio = (once.ratio * more).min(100.0);
        prop_assert!(refines(&map, &with(merge::Params { ratio, ..once.clone() })), "a larger C merges less");
        let unlimited = with(merge::Params { max_distance: 0.0, ..once.clone() });
        prop_assert!(refines(&map, &unlimited), "a limit merges more");
        prop_assert!(refines(&map, &with(params.merge.clone())), "more passes merge less");
        if once.ratio >= 1.0 && once.max_distance == 0.0 && count(&before) > 1 {
            // The nearest two of all agree; and where one side is enough nobody stays alone.
            prop_assert!(count(&mutual) < count(&before));
            prop_assert!(2 * count(&either) <= count(&before));
        }
        if once.ratio < 1.0 {
            // Only equal means merge, and a union has the mean of its parts.
            prop_assert!(map == with(merge::Params { passes: 8, ..once }), "merging equals again changes the map");
        }
    }
}

fn info(w: u32, h: u32) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb)
}

fn every_algorithm() -> [AlgorithmParams; 3] {
    [
        AlgorithmParams::Slic(slic::Params::default()),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..Default::default() }),
    ]
}

#[test]
fn a_flat_image_is_one_region_and_two_halves_are_two() {
    for algorithm in every_algorithm() {
        for rule in [Rule::Mutual, Rule::Either] {
            // Far below 1, too: regions of one color have no distance.
            for ratio in [0.01, 0.99, 2.0, 100.0] {
                let params =
                    Params { merge: merging(ratio, rule), algorithm: algorithm.clone(), ..Params::default() };
                let flat = Buffer::new(info(129, 67), Picture::Flat, 90, 0);
                let (map, regions) = segment(&CPU[1], &params, &flat);
                assert_eq!((regions.count, map.iter().max()), (1, Some(&0)), "{rule:?} {ratio}");
                let halves = Buffer::new(info(128, 64), Picture::Halves, 0, 0);
                let (map, regions) = segment(&CPU[1], &params, &halves);
                if matches!(algorithm, AlgorithmParams::QuickShift(_)) && ratio >= 1.0 {
                    // Its halves are whole before, and two regions alone are each other's nearest.
                    assert_eq!(regions.count, 1);
                    continue;
                }
                assert_eq!(regions.count, 2, "{rule:?} {ratio}");
                assert!(map.iter().enumerate().all(|(i, &l)| usize::from(l) == i % 128 / 64));
                let pair = regions.neighbors[0];
                assert_eq!((pair.a, pair.b, pair.length), (0, 1, 64));
            }
        }
    }
}

/// Stripes of 16 px, each one superpixel of its own: grays of these codes.
fn stripes(codes: &[u8]) -> Buffer {
    let mut buffer = Buffer::new(info(16 * codes.len() as u32, 16), Picture::Flat, 0, 0);
    for y in 0..16 {
        for (i, pixel) in
            buffer.planes[0][y * buffer.strides[0]..][..48 * codes.len()].chunks_exact_mut(3).enumerate()
        {
            pixel.fill(codes[i / 16]);
        }
    }
    buffer
}

/// The final label of each stripe.
fn merged_stripes(codes: &[u8], params: Params) -> Vec<u16> {
    let (map, _) = segment(&CPU[1], &params, &stripes(codes));
    let row: Vec<u16> = map[..16 * codes.len()].to_vec();
    assert!(map.chunks(row.len()).all(|r| r == row) && row.chunks(16).all(|s| s.iter().all(|l| *l == s[0])));
    row.chunks(16).map(|s| s[0]).collect()
}

#[test]
fn stripes_merge_as_worked_out_by_hand() {
    let with = |merge| Params { merge, ..Params::default() };
    let plain = merged_stripes(&[60, 70, 90, 190], with(merge::Params::default()));
    assert_eq!(plain, [0, 1, 2, 3]);
    // In code values 60 and 70 are 10 apart and each other's nearest; 90 is 20 from 70, its nearest; 190 is 100 from 90.
    let rgb = AlgorithmParams::Slic(slic::Params { color_space: ColorSpace::Rgb, ..Default::default() });
    let with = |merge| Params { merge, algorithm: rgb.clone(), ..Params::default() };
    let stripes = |merge| merged_stripes(&[60, 70, 90, 190], with(merge));
    // One side is enough: 90 goes to 70, and 190 to 90, for want of anything nearer.
    assert_eq!(stripes(merging(1.5, Rule::Either)), [0, 0, 0, 0]);
    // Both sides: for 70 the 20 to 90 are twice its 10.
    assert_eq!(stripes(merging(1.5, Rule::Mutual)), [0, 0, 1, 2]);
    assert_eq!(stripes(merging(1.99, Rule::Mutual)), [0, 0, 1, 2]);
    assert_eq!(stripes(merging(2.0, Rule::Mutual)), [0, 0, 0, 1]);
    assert_eq!(stripes(merging(4.9, Rule::Mutual)), [0, 0, 0, 1]);
    assert_eq!(stripes(merging(5.0, Rule::Mutual)), [0, 0, 0, 0]);
    // The union of the first two is at 65; 90 is 25 from there, its nearest, and the union's.
    let twice = merge::Params { passes: 2, ..merging(1.5, Rule::Mutual) };
    assert_eq!(stripes(twice.clone()), [0, 0, 0, 1]);
    assert_eq!(stripes(merge::Params { passes: 3, ..twice.clone() }), [0, 0, 0, 0]);
    // A gray step of 10 is 10 times the root of 3 in R, G, B together.
    let within = |max_distance| merge::Params { max_distance, passes: 8, ..merging(100.0, Rule::Either) };
    assert_eq!(stripes(within(17.3)), [0, 1, 2, 3]);
    assert_eq!(stripes(within(17.4)), [0, 0, 1, 2]);
    assert_eq!(stripes(within(44.0)), [0, 0, 0, 1]);
}

#[test]
fn without_connectivity_labels_merge_that_touch_anywhere() {
    // White, black, white, black: two labels of far places have one color, but do not touch.
    let params = |merge| Params { connectivity: false, merge, ..Params::default() };
    let apart = merged_stripes(&[255, 0, 255, 0], params(merging(0.5, Rule::Either)));
    assert_eq!(apart, [0, 1, 2, 3]);
    assert_eq!(merged_stripes(&[255, 255, 0, 0], params(merging(0.5, Rule::Mutual))), [0, 0, 1, 1]);
}

#[test]
fn parameters_out_of_range_are_errors() {
    let default = merge::Params::default;
    for (bad, message) in [
        (merge::Params { ratio: -1.0, ..default() }, "merge must be 0 to 100"),
        (merge::Params { ratio: f32::NAN, ..default() }, "merge must be 0 to 100"),
        (merge::Params { max_distance: 401.0, ..default() }, "merge-max-distance must be 0 to 400"),
        (merge::Params { passes: 0, ..default() }, "merge-passes must be 1 to 8"),
        (merge::Params { passes: 9, ..default() }, "merge-passes must be 1 to 8"),
    ] {
        let error =
            Plan::new(&Params { merge: bad, ..Params::default() }, info(20, 10)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(Plan::new(&Params::default(), info(20, 10)).unwrap().merge(), None);
}

/// The identity of each pixel.
fn names(frame: &(Vec<u16>, Regions)) -> Vec<u32> {
    frame.0.iter().map(|&label| frame.1.table[usize::from(label)].track_id).collect()
}

#[test]
fn identities_of_merged_regions_last() {
    let geometry = Geometry::new(160, 120).unwrap();
    for (merge, motion) in [
        (merging(1.5, Rule::Mutual), [0, 0]),
        (merge::Params { max_distance: 6.0, passes: 2, ..merging(2.0, Rule::Mutual) }, [0, 0]),
        (merging(1.5, Rule::Mutual), [2, 1]),
    ] {
        let clip = clip(geometry, PixelFormat::Rgb, 3, 14, motion, None);
        let params = Params { superpixel_size: 12, temporal: true, merge, ..Params::default() };
        let mut engine = Engine::new(CPU[1].clone(), Plan::new(&params, clip[0].info).unwrap()).unwrap();
        let frames: Vec<_> = clip.iter().map(|buffer| segment_with(&mut engine, buffer)).collect();
        // Superpixels go on as if nothing merged.
        let alone = Params { merge: merge::Params::default(), ..params.clone() };
        let mut engine = Engine::new(CPU[0].clone(), Plan::new(&alone, clip[0].info).unwrap()).unwrap();
        for (buffer, frame) in clip.iter().zip(&frames) {
            assert!(refines(&segment_with(&mut engine, buffer).0, &frame.0));
        }
        let mut seen = 0;
        for frame in &frames {
            // New ones are given in label order.
            for region in &frame.1.table {
                assert!(region.track_id <= seen + 1);
                seen = seen.max(region.track_id);
            }
            let ids: BTreeSet<u32> = frame.1.table.iter().map(|region| region.track_id).collect();
            assert_eq!(ids.len(), frame.1.count as usize, "two regions share an identity");
            assert!(!ids.contains(&0));
        }
        let (w, h) = (geometry.width() as i32, geometry.height() as i32);
        let (before, after) = (names(&frames[12]), names(&frames[13]));
        let (mut kept, mut all) = (0, 0);
        for y in 0..h - motion[1] {
            for x in 0..w - motion[0] {
                all += 1;
                let to = (y + motion[1]) * w + x + motion[0];
                kept += i32::from(before[(y * w + x) as usize] == after[to as usize]);
            }
        }
        if motion == [0, 0] {
            assert_eq!(kept, all, "a settled still picture flickers");
            assert!(frames[13].1.count < 110, "{} regions are hardly merged", frames[13].1.count);
        } else {
            assert!(10 * kept > 7 * all, "{kept} of {all} pixels keep their identity");
        }
    }
}

#[test]
fn a_cut_ends_the_identities_of_merged_regions() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 8, [1, 0], Some(5));
    let params = Params {
        superpixel_size: 12,
        temporal: true,
        merge: merging(1.5, Rule::Mutual),
        ..Params::default()
    };
    let mut engine = Engine::new(CPU[1].clone(), Plan::new(&params, clip[0].info).unwrap()).unwrap();
    let ids: Vec<BTreeSet<u32>> = clip
        .iter()
        .map(|buffer| {
            segment_with(&mut engine, buffer).1.table.iter().map(|region| region.track_id).collect()
        })
        .collect();
    for i in 1..ids.len() {
        let kept = ids[i].intersection(&ids[i - 1]).count();
        assert!(
            if i == 5 { kept == 0 } else { 2 * kept > ids[i].len() },
            "frame {i}: {kept} of {}",
            ids[i].len()
        );
    }
    assert_eq!(engine.next_id().unwrap(), ids.iter().flatten().max().unwrap() + 1);
    engine.reset();
    let first = engine.next_id().unwrap();
    let (_, regions) = segment_with(&mut engine, &clip[7]);
    assert!(regions.table.iter().all(|region| region.track_id >= first));
    assert!(regions.motion.iter().all(|motion| motion.age == 0));
}
