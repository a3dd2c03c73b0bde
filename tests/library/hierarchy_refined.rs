// SPDX-License-Identifier: MPL-2.0
//! The list of merges where boundaries are refined: it is one of the map that is handed out. Every cut is connected, areas are those
//! of a count, and the list equals the specification's for that map.

use crate::oracle;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::{MergeStep, Regions, cut};
use proptest::prelude::*;

static CPU: LazyLock<[Cpu; 3]> = LazyLock::new(|| [1, 2, 8].map(|n| Cpu::new(n).unwrap()));

/// No region has a predecessor.
static FIRST: BTreeMap<u16, u16> = BTreeMap::new();

const TABLES: Outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };

fn engine(cpu: &Cpu, params: &Params, info: FrameInfo) -> Engine<Cpu> {
    Engine::new(cpu.clone(), Plan::new(params, info).unwrap()).unwrap()
}

fn segment_with(engine: &mut Engine<Cpu>, buffer: &Buffer, outputs: Outputs) -> (Vec<u16>, Regions) {
    let g = buffer.info.geometry;
    let mut map = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, outputs).unwrap().clone();
    (map, regions)
}

fn segment(cpu: &Cpu, params: &Params, buffer: &Buffer) -> (Vec<u16>, Regions) {
    segment_with(&mut engine(cpu, params, buffer.info), buffer, TABLES)
}

fn listed(params: &Params, levels: bool) -> Params {
    Params { hierarchy: hierarchy::Params { levels, ..params.hierarchy.clone() }, ..params.clone() }
}

/// The list that the specification gives for a map.
fn list_of(map: &[u16], buffer: &Buffer, params: &Params) -> Vec<MergeStep> {
    let space = params.algorithm.color_space();
    let mut features = buffer.features(space);
    let outside = features.iter_mut().enumerate().filter(|(i, _)| !buffer.is_inside(*i));
    outside.for_each(|(_, feature)| *feature = oracle::OUTSIDE);
    let quanta = if space == ColorSpace::Rgb { 4.0 } else { 8.0 };
    let own = hierarchy::Params { regions: 0, ..params.hierarchy.clone() };
    oracle::hierarchy(buffer.info.geometry, map, &features, &own, quanta, &FIRST).1
}

/// Pieces of equal label, and labels.
fn pieces(geometry: Geometry, map: &[u16]) -> [usize; 2] {
    let roots = oracle::components(geometry, map);
    let pieces = (0..map.len()).filter(|&i| roots[i] == i && map[i] != NO_LABEL).count();
    let labels: BTreeSet<u16> = map.iter().copied().filter(|&label| label != NO_LABEL).collect();
    [pieces, labels.len()]
}

/// The first step whose cut has a region in several pieces.
fn torn_by(geometry: Geometry, map: &[u16], merges: &[MergeStep], count: u32) -> Option<usize> {
    (1..=merges.len()).find(|&steps| {
        let mut level = map.to_vec();
        let left = cut(&mut level, merges, count - steps as u32);
        let [pieces, labels] = pieces(geometry, &level);
        left != Some(labels as u32) || labels != count as usize - steps || pieces != labels
    })
}

/// How many steps say another area than the sum of the two regions that become one.
fn wrong_areas(map: &[u16], merges: &[MergeStep], count: u32) -> usize {
    let mut area = vec![0u32; count as usize];
    map.iter().filter(|label| **label != NO_LABEL).for_each(|&label| area[usize::from(label)] += 1);
    let mut of: Vec<usize> = (0..area.len()).collect();
    let mut wrong = 0;
    for step in merges {
        let (a, b) = (of[step.a as usize], of[step.b as usize]);
        area[a] += area[b];
        of.iter_mut().filter(|region| **region == b).for_each(|region| *region = a);
        wrong += usize::from(area[a] != step.area);
    }
    wrong
}

/// Noise, whose regions are ragged, with every number of sweeps.
#[test]
fn every_cut_of_refined_noise_is_connected_and_areas_are_counted() {
    for seed in 0..400 {
        let pick = |salt: u64, n: u64| hash(seed * 31 + salt) % n;
        let geometry = Geometry::new(2 + pick(1, 38) as u32, 2 + pick(2, 18) as u32).unwrap();
        let buffer = Buffer::new(FrameInfo::new(geometry, PixelFormat::Rgb), Picture::Noise, seed, 0);
        let slic = slic::Params { compactness: [0.1, 10.0][pick(3, 2) as usize], ..Default::default() };
        let params = Params {
            superpixel_size: [4, 5, 8][pick(4, 3) as usize],
            hierarchy: hierarchy::Params { regions: [0, 0, 12][pick(5, 3) as usize], ..Default::default() },
            refine: refine::Params {
                sweeps: [1, 2, 8][pick(6, 3) as usize],
                smoothness: [0.0, 5.0][pick(7, 2) as usize],
            },
            algorithm: AlgorithmParams::Slic(slic),
            ..Params::default()
        };
        let (map, regions) = segment(&CPU[0], &listed(&params, true), &buffer);
        assert_eq!(regions.merges.len(), regions.count as usize - 1, "seed {seed}");
        let torn = torn_by(geometry, &map, &regions.merges, regions.count);
        assert_eq!(torn, None, "seed {seed}: {geometry:?} {params:?}");
        assert_eq!(wrong_areas(&map, &regions.merges, regions.count), 0, "seed {seed}: {params:?}");
    }
}

fn any_params() -> impl Strategy<Value = Params> {
    let algorithm = prop_oneof![
        3 => (1.0f32..40.0, 0usize..4).prop_map(|(compactness, space)| {
            let color_space = ColorSpace::ALL[space];
            AlgorithmParams::Slic(slic::Params { compactness, color_space, ..Default::default() })
        }),
        1 => (0.02f32..0.3).prop_map(|ratio| AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() })),
        1 => (0.5f32..2.0, 1.0f32..10.0).prop_map(|(sigma, tau)| {
            AlgorithmParams::QuickShift(quickshift::Params { sigma, tau, ..Default::default() })
        }),
        1 => (1.0f32..40.0)
            .prop_map(|compactness| AlgorithmParams::Snic(snic::Params { compactness, ..Default::default() })),
    ];
    // With a number of regions, behind `merge`, and of superpixels.
    let fewer = prop_oneof![
        3 => Just((0u32, 0.0f32)),
        2 => (1u32..60).prop_map(|regions| (regions, 0.0)),
        1 => (1.0f32..3.0).prop_map(|ratio| (0, ratio)),
    ];
    let refine = (1u32..4, prop_oneof![Just(0.0f32), 0.1f32..30.0])
        .prop_map(|(sweeps, smoothness)| refine::Params { sweeps, smoothness });
    let bools = (prop::bool::weighted(0.8), any::<bool>());
    (4u32..16, algorithm, bools, 0.0f32..1.0, fewer, refine, 0.0f32..20.0).prop_map(
        |(
            superpixel_size,
            algorithm,
            (connectivity, masked),
            min_region,
            (regions, ratio),
            refine,
            compactness,
        )| {
            Params {
                superpixel_size,
                connectivity,
                masked,
                min_region,
                merge: merge::Params { ratio, ..Default::default() },
                hierarchy: hierarchy::Params { regions, compactness, levels: true },
                refine,
                algorithm,
                ..Params::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_is_of_the_refined_map(
        (w, h) in (1u32..90, 1u32..70), format in 0usize..14, seed in any::<u32>(),
        picture in 0usize..6, shape in 0..SHAPES.len(), params in any_params()
    ) {
        let geometry = Geometry::new(w, h).unwrap();
        let mut buffer =
            Buffer::new(FrameInfo::new(geometry, PixelFormat::ALL[format]), PICTURES[picture], seed.into(), 3);
        if params.masked {
            buffer = buffer.with_mask(SHAPES[shape], seed.into(), [0; 2]);
        }
        let (map, regions) = segment(&CPU[1], &params, &buffer);
        let (alone, of_map) = segment(&CPU[1], &listed(&params, false), &buffer);
        prop_assert!(map == alone, "the list changes the map");
        prop_assert_eq!(&regions.table, &of_map.table);
        prop_assert_eq!(&regions.neighbors, &of_map.neighbors);
        prop_assert!(of_map.merges.is_empty());
        prop_assert_eq!(&regions.merges, &list_of(&map, &buffer, &params));
        prop_assert!(regions.merges.windows(2).all(|p| p[0].height <= p[1].height), "heights fall");
        if params.connectivity {
            prop_assert_eq!(torn_by(geometry, &map, &regions.merges, regions.count), None);
        }
        for cpu in [&CPU[0], &CPU[2]] {
            prop_assert_eq!(&segment(cpu, &params, &buffer), &(map.clone(), regions.clone()));
        }
        let mut labels_alone = engine(&CPU[1], &params, buffer.info);
        let (_, without_tables) = segment_with(&mut labels_alone, &buffer, Outputs::default());
        prop_assert_eq!(&without_tables.merges, &regions.merges);
    }
}

/// Lists come and go in a clip whose regions are refined, with and without a number of them.
#[test]
fn lists_of_a_clip_are_of_each_refined_map() {
    let geometry = Geometry::new(150, 110).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 9, 8, [3, 2], Some(4));
    for (regions, ratio) in [(0, 0.0), (0, 2.0), (30, 0.0)] {
        let params = Params {
            temporal: true,
            superpixels: 300,
            merge: merge::Params { ratio, ..Default::default() },
            hierarchy: hierarchy::Params { regions, ..Default::default() },
            refine: refine::Params { sweeps: 2, ..Default::default() },
            ..Params::default()
        };
        let wants = |i: usize| i % 3 != 1;
        let mut listing = engine(&CPU[1], &listed(&params, wants(0)), clip[0].info);
        let mut alone = engine(&CPU[1], &params, clip[0].info);
        for (i, buffer) in clip.iter().enumerate() {
            let what = format!("{regions} regions, merge {ratio}, frame {i}");
            assert!(listing.change(&Plan::new(&listed(&params, wants(i)), buffer.info).unwrap()).unwrap());
            let outputs = if i % 2 == 0 { TABLES } else { Outputs::default() };
            let (map, found) = segment_with(&mut listing, buffer, outputs);
            let (same, known) = segment_with(&mut alone, buffer, outputs);
            assert!(map == same, "{what}: the list changes the map");
            assert!(found.table == known.table && found.motion == known.motion, "{what}");
            let want = if wants(i) { list_of(&map, buffer, &params) } else { Vec::new() };
            assert!(found.merges == want, "{what}: the list is not of this map");
            assert_eq!(torn_by(geometry, &map, &found.merges, found.count), None, "{what}");
        }
    }
}
