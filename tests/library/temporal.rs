// SPDX-License-Identifier: MPL-2.0
//! Invariants from frame to frame: identities, threads, resets, cuts, and the first frame of all.

use crate::oracle;
use std::collections::{BTreeSet, HashMap};

use crate::pictures::{Buffer, Picture, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

const TABLE: Outputs = Outputs { table: true, neighbors: false, mean_color: false, linear_light: false };

fn temporal(size: u32) -> Params {
    Params { superpixel_size: size, temporal: true, ..Params::default() }
}

fn segment(engine: &mut Engine<Cpu>, buffer: &Buffer) -> (Vec<u16>, Regions) {
    let g = buffer.info.geometry;
    let mut map = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, TABLE).unwrap().clone();
    (map, regions)
}

fn engine(threads: u32, params: &Params, info: FrameInfo) -> Engine<Cpu> {
    Engine::new(Cpu::new(threads).unwrap(), Plan::new(params, info).unwrap()).unwrap()
}

fn ids(regions: &Regions) -> Vec<u32> {
    regions.table.iter().map(|region| region.track_id).collect()
}

/// The identity of each pixel.
fn names(frame: &(Vec<u16>, Regions)) -> Vec<u32> {
    frame.0.iter().map(|&label| frame.1.table[usize::from(label)].track_id).collect()
}

/// Identities are given in order, 1 comes after the last, and engines that keep none hand on what was set.
#[test]
fn identities_begin_again_after_the_last() {
    let g = Geometry::new(97, 71).unwrap();
    let clip = clip(g, PixelFormat::Rgb, 5, 12, [3, 2], Some(7));
    let lsc = AlgorithmParams::Lsc(lsc::Params::default());
    let quickshift = AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..Default::default() });
    for algorithm in [AlgorithmParams::Slic(slic::Params::default()), lsc, quickshift] {
        for ratio in [0.0, 2.0] {
            let merge = merge::Params { ratio, ..Default::default() };
            let params = Params { algorithm: algorithm.clone(), merge, ..temporal(12) };
            let mut engine = engine(2, &params, clip[0].info);
            let mut next = u32::MAX - 5;
            engine.set_next_id(next).unwrap();
            let (mut before, mut given) = (BTreeSet::new(), BTreeSet::new());
            for (i, buffer) in clip.iter().enumerate() {
                if i % 3 == 2 {
                    engine.reset();
                }
                let ids = ids(&segment(&mut engine, buffer).1);
                let all: BTreeSet<u32> = ids.iter().copied().collect();
                assert!(all.len() == ids.len() && !all.contains(&0), "frame {i} of {params:?}: {ids:?}");
                for id in ids.into_iter().filter(|id| !before.contains(id)) {
                    assert_eq!(id, next, "frame {i} of {params:?}");
                    given.insert(id);
                    next = next.wrapping_add(1).max(1);
                }
                assert_eq!(engine.next_id().unwrap(), next, "frame {i} of {params:?}");
                before = all;
            }
            assert!(given.contains(&u32::MAX) && given.contains(&1) && given.len() > 12, "{given:?}");
        }
    }
    let mut without = engine(1, &Params::default(), clip[0].info);
    assert_eq!(without.next_id().unwrap(), 1);
    for (set, next) in [(77, 77), (u32::MAX, u32::MAX), (0, 1)] {
        without.set_next_id(set).unwrap();
        segment(&mut without, &clip[0]);
        assert_eq!(without.next_id().unwrap(), next);
    }
}

fn any_params() -> impl Strategy<Value = Params> {
    (4u32..24, 0usize..4, prop::bool::weighted(0.8), 0.0f32..0.9, 1.0f32..40.0, 0usize..3).prop_map(
        |(superpixel_size, algorithm, connectivity, temporal_inertia, compactness, min)| Params {
            superpixel_size,
            connectivity,
            temporal: true,
            temporal_inertia,
            min_region: [0.25, 0.0, 1.0][min],
            algorithm: match algorithm {
                0 => AlgorithmParams::Lsc(lsc::Params { ratio: compactness / 40.0, ..Default::default() }),
                1 => AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..Default::default() }),
                kind => AlgorithmParams::Slic(slic::Params {
                    compactness,
                    adaptive_compactness: kind == 2,
                    ..Default::default()
                }),
            },
            ..Params::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_clip_keeps_every_promise(
        params in any_params(), w in 1u32..150, h in 1u32..110, seed in any::<u64>(), dx in -9i32..10, dy in -9i32..10
    ) {
        let geometry = Geometry::new(w, h).unwrap();
        let clip = clip(geometry, PixelFormat::Rgb, seed, 6, [dx, dy], Some(4));
        let info = clip[0].info;
        let mut engines = [1, 2, 8].map(|threads| engine(threads, &params, info));
        let (mut seen, mut last): (BTreeSet<u32>, BTreeSet<u32>) = Default::default();
        for buffer in &clip {
            let [frame, others @ ..] = engines.each_mut().map(|engine| segment(engine, buffer));
            for other in others {
                prop_assert!(frame.0 == other.0, "threads change the map");
                prop_assert_eq!(&frame.1.table, &other.1.table);
            }
            let (map, regions) = &frame;
            let own: BTreeSet<u32> = ids(regions).into_iter().collect();
            prop_assert_eq!(own.len(), regions.count as usize, "two regions share an identity");
            prop_assert!(!own.contains(&0));
            prop_assert!(own.iter().all(|id| last.contains(id) || !seen.contains(id)), "an identity came back");
            prop_assert!(map.iter().all(|&label| u32::from(label) < regions.count));
            if params.connectivity {
                let roots = oracle::components(geometry, map);
                let parts = roots.iter().enumerate().filter(|&(i, &r)| i == r).count();
                prop_assert_eq!(parts, regions.count as usize);
                let least = engines[0].plan().least_region();
                prop_assert!(regions.count == 1 || regions.table.iter().all(|region| region.area >= least));
            }
            seen.extend(&own);
            last = own;
        }
    }

    #[test]
    fn the_first_frame_and_that_after_a_reset_are_segmented_alone(params in any_params(), seed in any::<u64>()) {
        let geometry = Geometry::new(90, 60).unwrap();
        let clip = clip(geometry, PixelFormat::Rgb, seed, 3, [2, 1], None);
        let alone = Params { temporal: false, ..params.clone() };
        let mut engine = engine(2, &params, clip[0].info);
        let mut seen = BTreeSet::new();
        for buffer in &clip {
            engine.reset();
            let (map, regions) = segment(&mut engine, buffer);
            let (want, want_regions) = segment(&mut self::engine(1, &alone, buffer.info), buffer);
            prop_assert!(map == want);
            prop_assert_eq!(regions.count, want_regions.count);
            // As many identities as regions, none of an earlier frame.
            prop_assert!(ids(&regions).into_iter().all(|id| seen.insert(id)));
        }
        prop_assert_eq!(engine.next_id().unwrap(), seen.len() as u32 + 1);
    }
}

/// Quanta are halved from some compactness on: from the same for both.
#[test]
fn a_first_frame_of_any_compactness_is_segmented_alone() {
    let geometry = Geometry::new(90, 60).unwrap();
    let buffer = &clip(geometry, PixelFormat::Rgb, 1, 1, [0, 0], None)[0];
    for compactness in [10.0, 21.9, 22.1, 23.0, 24.0, 45.0, 60.0, 90.0] {
        let params = Params {
            superpixel_size: 8,
            temporal: true,
            algorithm: AlgorithmParams::Slic(slic::Params { compactness, ..Default::default() }),
            ..Default::default()
        };
        let alone = Params { temporal: false, ..params.clone() };
        let [first, map] =
            [params, alone].map(|params| segment(&mut engine(1, &params, buffer.info), buffer).0);
        assert!(first == map, "compactness {compactness}");
    }
}

#[test]
fn a_still_clip_settles_and_keeps_every_identity() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 3, 12, [0, 0], None);
    let mut engine = engine(2, &temporal(12), clip[0].info);
    let frames: Vec<Vec<u32>> = clip.iter().map(|buffer| names(&segment(&mut engine, buffer))).collect();
    let changed = |a: &[u32], b: &[u32]| a.iter().zip(b).filter(|(a, b)| a != b).count();
    assert_eq!(changed(&frames[10], &frames[11]), 0, "a settled still picture flickers");
    assert!(changed(&frames[1], &frames[11]) < geometry.pixels() / 20);
}

#[test]
fn identities_go_with_a_pan() {
    let geometry = Geometry::new(200, 140).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 8, 10, [4, -3], None);
    let mut engine = engine(2, &temporal(14), clip[0].info);
    let frames: Vec<Vec<u32>> = clip.iter().map(|buffer| names(&segment(&mut engine, buffer))).collect();
    let (w, h) = (geometry.width() as i32, geometry.height() as i32);
    let (mut kept, mut all) = (0, 0);
    for pair in frames[3..].windows(2) {
        for y in 0..h {
            for x in 0..w {
                let (to_x, to_y) = (x + 4, y - 3);
                if to_x < w && to_y >= 0 {
                    all += 1;
                    kept += u32::from(pair[0][(y * w + x) as usize] == pair[1][(to_y * w + to_x) as usize]);
                }
            }
        }
    }
    assert!(f64::from(kept) > 0.8 * f64::from(all), "{kept} of {all} pixels keep their identity");
}

/// A scene with its motion, also with each px enlarged to four by four.
#[test]
fn a_fast_pan_of_many_pixels_is_no_cut() {
    for scale in [1, 4] {
        let geometry = Geometry::new(864 * scale, 60 * scale).unwrap();
        let info = FrameInfo::new(geometry, PixelFormat::Rgb);
        let mut engine = engine(2, &temporal(16), info);
        let mut last = BTreeSet::new();
        for i in 0..3 {
            let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
            let stride = buffer.strides[0];
            for (y, row) in buffer.planes[0].chunks_mut(stride).take(geometry.height() as usize).enumerate() {
                for (x, pixel) in row.chunks_mut(3).take(geometry.width() as usize).enumerate() {
                    let [u, v] = [
                        (x as f64 / f64::from(scale) - 26.0 * f64::from(i)) / 23.0,
                        y as f64 / f64::from(scale) / 17.0,
                    ];
                    let value = 128.0 + 30.0 * u.sin() + 25.0 * (0.37 * u + v).cos() + 20.0 * (2.9 * u).sin();
                    pixel.copy_from_slice(&[value as u8, (0.8 * value) as u8, (255.0 - value) as u8]);
                }
            }
            let own: BTreeSet<u32> = ids(&segment(&mut engine, &buffer).1).into_iter().collect();
            let kept = own.intersection(&last).count();
            assert!(
                i == 0 || 2 * kept > last.len(),
                "{scale}: frame {i} keeps {kept} of {} identities",
                last.len()
            );
            last = own;
        }
    }
}

#[test]
fn a_cut_ends_every_identity_and_a_pan_none_but_those_that_leave() {
    let geometry = Geometry::new(160, 120).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let mut engine = engine(2, &temporal(12), info);
    let clip = clip(geometry, PixelFormat::Rgb, 5, 6, [2, 0], None);
    let mut last: BTreeSet<u32> = BTreeSet::new();
    for (i, buffer) in clip.iter().enumerate() {
        let own: BTreeSet<u32> = ids(&segment(&mut engine, buffer).1).into_iter().collect();
        assert!(
            i == 0 || 4 * own.intersection(&last).count() > 3 * last.len(),
            "frame {i} was taken for a cut"
        );
        last = own;
    }
    let other = Buffer::new(info, Picture::Halves, 1, 0);
    let own: BTreeSet<u32> = ids(&segment(&mut engine, &other).1).into_iter().collect();
    assert_eq!(own.intersection(&last).count(), 0, "an identity survived the cut");
}

#[test]
fn identities_are_given_one_after_the_other() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 8, [1, 1], None);
    let mut engine = engine(2, &temporal(12), clip[0].info);
    engine.set_next_id(1000).unwrap();
    let mut next = 1000;
    let mut first = 0;
    for buffer in &clip {
        // New ones in label order.
        for id in ids(&segment(&mut engine, buffer).1) {
            assert!(id <= next, "{id} was given before {next}");
            next = next.max(id + 1);
        }
        first = if first == 0 { next } else { first };
    }
    assert_eq!(engine.next_id().unwrap(), next);
    assert!(next - first < first - 1000, "{} births after the first frame", next - first);
}

fn temporal_with(algorithm: AlgorithmParams) -> Params {
    Params { algorithm, ..temporal(12) }
}

/// Parameters that leave grid and memory alone, one after the other.
fn gentle_changes() -> Vec<Params> {
    let slic = |compactness, adaptive_compactness, iterations| {
        AlgorithmParams::Slic(slic::Params {
            compactness,
            adaptive_compactness,
            iterations,
            ..Default::default()
        })
    };
    let with = |algorithm, temporal_inertia| Params { algorithm, temporal_inertia, ..temporal(12) };
    vec![
        with(slic(10.0, false, 5), 0.2),
        with(slic(10.0, false, 9), 0.2),
        with(slic(14.0, false, 9), 0.2),
        with(slic(14.0, false, 9), 0.5),
        // Distances are measured in other quanta from here on.
        with(slic(30.0, false, 9), 0.5),
        with(slic(30.0, true, 9), 0.5),
        with(slic(12.0, false, 5), 0.2),
    ]
}

#[test]
fn identities_last_through_changes_that_leave_the_grid_alone() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 24, [2, 1], None);
    let lsc = |ratio| AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() });
    let quickshift = |color_scale| {
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, color_scale, ..Default::default() })
    };
    let with = |algorithm| Params { algorithm, ..temporal(12) };
    let merged = |ratio| Params { merge: merge::Params { ratio, ..Default::default() }, ..temporal(12) };
    for changes in [
        gentle_changes(),
        vec![with(lsc(0.1)), with(lsc(0.15)), with(lsc(0.075))],
        vec![with(quickshift(0.5)), with(quickshift(0.55))],
        vec![merged(1.5), merged(1.6)],
    ] {
        let mut engine = engine(2, &changes[0], clip[0].info);
        let mut last: BTreeSet<u32> = BTreeSet::new();
        for (i, buffer) in clip.iter().take(3 * changes.len()).enumerate() {
            let params = &changes[i / 3];
            assert!(engine.change(&Plan::new(params, clip[0].info).unwrap()).unwrap());
            let own: BTreeSet<u32> = ids(&segment(&mut engine, buffer).1).into_iter().collect();
            let kept = own.intersection(&last).count();
            assert!(
                i == 0 || 3 * kept > 2 * last.len(),
                "frame {i}: {kept} of {} with {params:?}",
                last.len()
            );
            last = own;
        }
    }
}

/// A property that is controlled changes with every frame: what it is compared with is last frame's all the same.
#[test]
fn cuts_are_found_while_parameters_change() {
    const CUT: usize = 9;
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 16, [2, 1], Some(CUT));
    let slic = |frame: usize, growth: f32| {
        let compactness = 10.0 * growth.powi(frame as i32);
        AlgorithmParams::Slic(slic::Params { compactness, ..Default::default() })
    };
    let rounds = |frame: usize| {
        AlgorithmParams::Slic(slic::Params { iterations: 3 + frame as u32 % 4, ..Default::default() })
    };
    let slico = |frame: usize| {
        let compactness = 10.0 * 1.1f32.powi(frame as i32);
        AlgorithmParams::Slic(slic::Params { compactness, adaptive_compactness: true, ..Default::default() })
    };
    let lsc = |frame: usize, growth: f32| {
        AlgorithmParams::Lsc(lsc::Params { ratio: 0.1 * growth.powi(frame as i32), ..Default::default() })
    };
    type Ramp = Box<dyn Fn(usize) -> AlgorithmParams>;
    let ramps: [(&str, Ramp); 6] = [
        ("iterations", Box::new(rounds)),
        // From twelve frames on in coarser quanta.
        ("compactness up", Box::new(move |frame| slic(frame, 1.1))),
        ("compactness down", Box::new(move |frame| slic(frame, 0.9))),
        ("compactness of SLICO", Box::new(slico)),
        ("lsc-ratio up", Box::new(move |frame| lsc(frame, 1.1))),
        ("lsc-ratio down", Box::new(move |frame| lsc(frame, 0.9))),
    ];
    for (what, ramp) in ramps {
        let mut engine = engine(2, &temporal_with(ramp(0)), clip[0].info);
        let mut last: BTreeSet<u32> = BTreeSet::new();
        for (i, buffer) in clip.iter().enumerate() {
            let plan = Plan::new(&temporal_with(ramp(i)), clip[0].info).unwrap();
            assert!(engine.change(&plan).unwrap());
            let own: BTreeSet<u32> = ids(&segment(&mut engine, buffer).1).into_iter().collect();
            let kept = own.intersection(&last).count();
            if i == CUT {
                assert_eq!(kept, 0, "{what}: {kept} of {} survive the cut", last.len());
            } else {
                assert!(i == 0 || 3 * kept > 2 * last.len(), "{what}, frame {i}: {kept} of {}", last.len());
            }
            last = own;
        }
    }
}

/// A reset discards the former parameters: later frames are those that the new ones give from the start.
#[test]
fn a_changed_engine_is_one_of_the_new_plan() {
    let geometry = Geometry::new(160, 120).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 5, 4, [2, 1], None);
    let changes = gentle_changes();
    for pair in changes.windows(2) {
        let plan = Plan::new(&pair[1], clip[0].info).unwrap();
        let mut changed = engine(1, &pair[0], clip[0].info);
        segment(&mut changed, &clip[3]);
        assert!(changed.change(&plan).unwrap() && *changed.plan() == plan);
        segment(&mut changed, &clip[2]);
        changed.reset();
        let mut fresh = engine(1, &pair[1], clip[0].info);
        for buffer in &clip {
            assert_eq!(segment(&mut changed, buffer).0, segment(&mut fresh, buffer).0, "{:?}", pair[1]);
        }
    }
}

#[test]
fn changes_of_grid_or_memory_are_left_to_a_new_engine() {
    let geometry = Geometry::new(160, 120).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let mut engine = engine(1, &temporal(12), info);
    let before = engine.plan().clone();
    let rgb = slic::Params { color_space: ColorSpace::Rgb, ..Default::default() };
    for params in [
        temporal(13),
        Params { temporal: false, ..temporal(12) },
        Params { connectivity: false, ..temporal(12) },
        Params { min_region: 0.5, ..temporal(12) },
        Params { merge: merge::Params { ratio: 2.0, ..Default::default() }, ..temporal(12) },
        Params { algorithm: AlgorithmParams::Lsc(lsc::Params::default()), ..temporal(12) },
        Params { algorithm: AlgorithmParams::Slic(rgb), ..temporal(12) },
    ] {
        assert!(!engine.change(&Plan::new(&params, info).unwrap()).unwrap(), "{params:?}");
        assert_eq!(*engine.plan(), before);
    }
    // Parameters without effect make an equal plan.
    let unused = Params { merge: merge::Params { max_distance: 5.0, ..Default::default() }, ..temporal(12) };
    assert!(engine.change(&Plan::new(&unused, info).unwrap()).unwrap());
    assert_eq!(*engine.plan(), before);
}

/// A frame or a label plane that is refused leaves nothing behind.
#[test]
fn refused_frames_leave_no_trace() {
    let geometry = Geometry::new(97, 71).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 4, 6, [3, 2], None);
    let other = Geometry::new(98, 71).unwrap();
    let strange = Buffer::new(FrameInfo { geometry: other, ..clip[0].info }, Picture::Flat, 0, 0);
    let mut disturbed = engine(1, &temporal(12), clip[0].info);
    let mut calm = engine(1, &temporal(12), clip[0].info);
    for (i, buffer) in clip.iter().enumerate() {
        if [0, 1, 3].contains(&i) {
            let mut map = vec![0; other.pixels()];
            let mut labels = Labels::new(other, &mut map, 98).unwrap();
            assert!(disturbed.segment(&buffer.frame(), &mut labels, TABLE).is_err());
            let mut labels = Labels::new(geometry, &mut map, 97).unwrap();
            assert!(disturbed.segment(&strange.frame(), &mut labels, TABLE).is_err());
        }
        let (found, expected) = (segment(&mut disturbed, buffer), segment(&mut calm, buffer));
        assert!(found.0 == expected.0 && ids(&found.1) == ids(&expected.1), "frame {i}");
    }
}

/// LSC's places repeat every four steps: a cluster far from the cell that has it would take pixels on the cell's other side.
#[test]
fn identities_do_not_jump_over_cells() {
    const STEP: u32 = 8;
    let geometry = Geometry::new(320, 240).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let zoomed = |frame: i32| {
        let scale = 1.05f64.powi(frame);
        let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
        for (i, pixel) in buffer.planes[0].chunks_exact_mut(3).enumerate() {
            let (x, y) = (i as f64 % 320.0 - 160.0, (i / 320) as f64 - 120.0);
            let [u, v] = [x, y].map(|v| (v * scale + 5000.0) as usize);
            pixel.copy_from_slice(&Picture::Natural.pixel(u, v, geometry, 3));
        }
        buffer
    };
    for algorithm in
        [AlgorithmParams::Slic(slic::Params::default()), AlgorithmParams::Lsc(lsc::Params::default())]
    {
        let nick = algorithm.nick();
        let mut engine = engine(2, &Params { algorithm, ..temporal(STEP) }, info);
        let mut last = HashMap::<u32, ([f32; 2], u32)>::new();
        let (mut jumps, mut kept) = (0, 0);
        for frame in 0..16 {
            let (_, regions) = segment(&mut engine, &zoomed(frame));
            let small = |area: u32| area < 3 * STEP * STEP;
            for region in &regions.table {
                if let Some(&(from, area)) = last.get(&region.track_id)
                    && small(region.area)
                    && small(area)
                {
                    let far = |i: usize| (region.centroid[i] - from[i]).abs() > 3.0 * STEP as f32;
                    kept += 1;
                    jumps += u32::from(far(0) || far(1));
                }
            }
            last = regions.table.iter().map(|r| (r.track_id, (r.centroid, r.area))).collect();
        }
        assert!(1500 * jumps < kept, "{nick}: {jumps} of {kept} identities jump");
    }
}
