// SPDX-License-Identifier: MPL-2.0
//! Boundary refinement: equality with the specification, what no move may break, exact answers, what the next frame starts from.

use crate::oracle;
use std::sync::LazyLock;

use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{merge, refine};
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

static CPU: LazyLock<[Cpu; 3]> = LazyLock::new(|| [1, 2, 8].map(|n| Cpu::new(n).unwrap()));

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

fn segment_with(engine: &mut Engine<Cpu>, buffer: &Buffer, padding: usize) -> (Vec<u16>, Regions) {
    let (g, stride) = (buffer.info.geometry, buffer.info.geometry.width() as usize + padding);
    let mut map = vec![0xfffe; stride * g.height() as usize];
    let mut labels = Labels::new(g, &mut map, stride).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap().clone();
    (map.chunks(stride).flat_map(|row| row[..stride - padding].to_vec()).collect(), regions)
}

fn engine(cpu: &Cpu, params: &Params, info: FrameInfo) -> Engine<Cpu> {
    Engine::new(cpu.clone(), Plan::new(params, info).unwrap()).unwrap()
}

fn segment(params: &Params, buffer: &Buffer) -> (Vec<u16>, Regions) {
    segment_with(&mut engine(&CPU[1], params, buffer.info), buffer, 0)
}

fn without(params: &Params) -> Params {
    Params { refine: refine::Params::default(), ..params.clone() }
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
    let snic = (1.0f32..40.0)
        .prop_map(|compactness| AlgorithmParams::Snic(snic::Params { compactness, ..Default::default() }));
    let algorithm = prop_oneof![3 => slic, 1 => lsc, 1 => quickshift, 1 => snic];
    let smoothness = prop_oneof![1 => Just(0.0f32), 3 => 0.1f32..12.0, 1 => 12.0f32..100.0];
    let refine = (1u32..4, smoothness).prop_map(|(sweeps, smoothness)| refine::Params { sweeps, smoothness });
    let ratio = prop_oneof![3 => Just(0.0f32), 1 => 1.0f32..3.0];
    let bools = (prop::bool::weighted(0.8), any::<bool>());
    (4u32..24, algorithm, bools, 0.0f32..1.0, ratio, refine).prop_map(
        |(superpixel_size, algorithm, (connectivity, masked), min_region, ratio, refine)| Params {
            superpixel_size,
            connectivity,
            masked,
            min_region,
            merge: merge::Params { ratio, ..Default::default() },
            refine,
            algorithm,
            ..Params::default()
        },
    )
}

/// Size, format, seed, which picture, and which mask.
fn any_frame() -> impl Strategy<Value = (FrameInfo, u32, Picture, usize)> {
    let sizes =
        prop_oneof![6 => (1u32..120, 1u32..90), 1 => (1u32..300, Just(1u32)), 1 => (Just(1u32), 1u32..300)];
    (sizes, 0usize..14, any::<u32>(), 0usize..6, 0usize..9).prop_map(
        |((w, h), format, seed, picture, mask)| {
            let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::ALL[format]);
            (info, seed, PICTURES[picture], mask)
        },
    )
}

/// How many pieces each label has.
fn pieces(geometry: Geometry, map: &[u16], count: usize) -> Vec<usize> {
    let mut pieces = vec![0; count];
    for (i, root) in oracle::components(geometry, map).into_iter().enumerate() {
        if root == i && map[i] != NO_LABEL {
            pieces[usize::from(map[i])] += 1;
        }
    }
    pieces
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_refinement_equals_the_specification((info, seed, picture, mask) in any_frame(), params in any_params()) {
        let geometry = info.geometry;
        let mut buffer = Buffer::new(info, picture, seed.into(), 3);
        if params.masked {
            buffer = buffer.with_mask(SHAPES[mask], seed.into(), [0; 2]);
        }
        let (before, whole) = segment(&without(&params), &buffer);
        let (map, regions) = segment(&params, &buffer);
        let space = params.algorithm.color_space();
        let quanta = if space == ColorSpace::Rgb { 4.0 } else { 8.0 };
        let mut features = buffer.features(space);
        for (i, feature) in features.iter_mut().enumerate().filter(|(i, _)| !buffer.is_inside(*i)) {
            prop_assert!(map[i] == NO_LABEL, "a pixel outside has moved");
            *feature = oracle::OUTSIDE;
        }
        let want = oracle::refine(geometry, &before, &features, &params.refine, quanta);
        prop_assert!(map == want, "refinement differs from the specification");

        // No label is lost or torn, and the table is of the refined map.
        prop_assert_eq!(regions.count, whole.count);
        let count = regions.count as usize;
        let (was, is) = (pieces(geometry, &before, count), pieces(geometry, &map, count));
        prop_assert!(was.iter().zip(&is).all(|(was, is)| 0 < *is && is <= was), "{was:?} {is:?}");
        let mut area = vec![0u32; count];
        map.iter().filter(|label| **label != NO_LABEL).for_each(|&label| area[usize::from(label)] += 1);
        prop_assert_eq!(regions.table.iter().map(|region| region.area).collect::<Vec<_>>(), area);
    }

    #[test]
    fn threads_strides_and_runs_do_not_show((info, seed, picture, _) in any_frame(), params in any_params()) {
        let buffer = Buffer::new(info, picture, seed.into(), 0);
        let first = segment(&params, &buffer);
        for (cpu, padding) in CPU.iter().zip([0, 1, 13]) {
            let mut engine = engine(cpu, &params, buffer.info);
            for _ in 0..2 {
                prop_assert!(segment_with(&mut engine, &buffer, padding) == first);
            }
        }
    }
}

fn info(w: u32, h: u32) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb)
}

/// Sides of pixels between two regions.
fn length(w: usize, map: &[u16]) -> usize {
    let differ = |i: usize, j: usize| map[i] != map[j];
    (0..map.len())
        .flat_map(|i| oracle::neighbors(i, w, map.len()).filter(move |&j| j > i && differ(i, j)))
        .count()
}

#[test]
fn smooth_regions_have_short_boundaries() {
    let buffer = Buffer::new(info(320, 240), Picture::Natural, 7, 0);
    let of = |sweeps, smoothness| {
        let params = Params { refine: refine::Params { sweeps, smoothness }, ..Params::default() };
        length(320, &segment(&params, &buffer).0)
    };
    let [none, rough, usual, smooth] = [of(0, 5.0), of(2, 0.0), of(2, 5.0), of(2, 50.0)];
    println!("{none} sides of pixels between regions; refined {rough}, {usual}, {smooth}");
    assert!(smooth < usual && usual < rough && usual < none);
}

/// Two superpixels side by side: the boundary between them goes where their colors meet, a column further left.
#[test]
fn a_boundary_goes_where_colors_meet() {
    // So compact that colors do not count.
    let slic = slic::Params { compactness: 1000.0, ..slic::Params::default() };
    let params = Params { algorithm: AlgorithmParams::Slic(slic), ..Params::default() };
    let mut buffer = Buffer::new(info(32, 16), Picture::Flat, 0, 0);
    let (flat, _) = segment(&params, &buffer);
    let column = (0..32).position(|x| flat[x] == 1).unwrap();
    let halves = |column: usize| -> Vec<u16> { (0..512).map(|i| u16::from(i % 32 >= column)).collect() };
    assert_eq!(flat, halves(column));
    let stride = buffer.strides[0];
    for row in buffer.planes[0].chunks_mut(stride) {
        row[..3 * (column - 1)].fill(60);
        row[3 * (column - 1)..3 * 32].fill(180);
    }
    let refined = |sweeps, smoothness| {
        segment(&Params { refine: refine::Params { sweeps, smoothness }, ..params.clone() }, &buffer).0
    };
    assert_eq!(refined(0, 5.0), halves(column));
    // The first pixel of the column has two sides of boundary more, for 47 Delta E.
    assert_eq!(refined(1, 5.0), halves(column - 1));
    assert_eq!(refined(8, 5.0), halves(column - 1));
    assert_eq!(refined(8, 100.0), halves(column));
}

#[test]
fn a_flat_image_keeps_straight_boundaries() {
    for algorithm in [
        AlgorithmParams::Slic(slic::Params::default()),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::Snic(snic::Params::default()),
    ] {
        let refine = refine::Params { sweeps: 8, smoothness: 5.0 };
        let params = Params { refine, algorithm, ..Params::default() };
        let buffer = Buffer::new(info(128, 64), Picture::Flat, 90, 0);
        let (before, _) = segment(&without(&params), &buffer);
        let (map, regions) = segment(&params, &buffer);
        assert_eq!(regions.count, 32);
        assert!(length(128, &map) <= length(128, &before));
    }
}

/// The next frame starts from the map before refinement: track ids, motion and labels are those of a run without it.
#[test]
fn the_next_frame_starts_from_the_map_before() {
    let clip = clip(Geometry::new(160, 120).unwrap(), PixelFormat::Rgb, 5, 4, [3, -2], None);
    for algorithm in [
        AlgorithmParams::Slic(slic::Params::default()),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..Default::default() }),
    ] {
        for ratio in [0.0, 2.0] {
            let refine = refine::Params { sweeps: 2, smoothness: 5.0 };
            let merge = merge::Params { ratio, ..Default::default() };
            let params =
                Params { temporal: true, merge, refine, algorithm: algorithm.clone(), ..Params::default() };
            let mut plain = engine(&CPU[1], &without(&params), clip[0].info);
            let mut refined = engine(&CPU[1], &params, clip[0].info);
            for buffer in &clip {
                let (before, want) = segment_with(&mut plain, buffer, 0);
                let (map, got) = segment_with(&mut refined, buffer, 0);
                let quanta = 8.0;
                let features = buffer.features(ColorSpace::Lab);
                assert!(
                    map == oracle::refine(buffer.info.geometry, &before, &features, &params.refine, quanta)
                );
                assert!(map != before);
                let names = |regions: &Regions| -> Vec<u32> {
                    regions.table.iter().map(|region| region.track_id).collect()
                };
                assert_eq!(names(&got), names(&want));
                assert_eq!(got.motion, want.motion);
            }
        }
    }
}

#[test]
fn refinement_changes_without_loss_of_identities() {
    let clip = clip(Geometry::new(160, 120).unwrap(), PixelFormat::Rgb, 5, 3, [1, 0], None);
    let params = |sweeps, smoothness| Params {
        temporal: true,
        refine: refine::Params { sweeps, smoothness },
        ..Params::default()
    };
    let plan = |sweeps, smoothness| Plan::new(&params(sweeps, smoothness), clip[0].info).unwrap();
    let mut engine = engine(&CPU[0], &params(1, 5.0), clip[0].info);
    segment_with(&mut engine, &clip[0], 0);
    assert!(engine.change(&plan(2, 9.0)).unwrap());
    let (_, regions) = segment_with(&mut engine, &clip[1], 0);
    assert!(regions.motion.iter().filter(|motion| motion.age == 1).count() > regions.motion.len() / 2);
    assert!(!engine.change(&plan(0, 9.0)).unwrap(), "memory is for a plan");
}

#[test]
fn parameters_out_of_range_are_errors() {
    let default = refine::Params::default;
    for (bad, message) in [
        (refine::Params { sweeps: 9, ..default() }, "refine must be 0 to 8"),
        (refine::Params { smoothness: -1.0, ..default() }, "smoothness must be 0 to 100"),
        (refine::Params { smoothness: f32::NAN, ..default() }, "smoothness must be 0 to 100"),
    ] {
        let error =
            Plan::new(&Params { refine: bad, ..Params::default() }, info(20, 10)).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    assert_eq!(Plan::new(&Params::default(), info(20, 10)).unwrap().refine(), None);
}
