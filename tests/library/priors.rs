// SPDX-License-Identifier: MPL-2.0
//! Frames with priors on the CPU: equality with the specification, and what users rely on.

use std::collections::BTreeMap;

use crate::oracle;
use crate::pictures::areas::Areas;
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, Shape, hash};
use gstsuperpixel::algo::{AlgorithmParams, AlgorithmPlan, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::Regions;
use gstsuperpixel::wide;
use proptest::prelude::*;

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// Segments frames, each with or without a prior, on one engine.
fn segment(threads: u32, params: &Params, frames: &[(&Buffer, Option<&Areas>)]) -> Vec<(Vec<u16>, Regions)> {
    let info = frames[0].0.info;
    let g = info.geometry;
    let plan = Plan::new(params, info).unwrap();
    let mut engine = Engine::new(Cpu::new(threads).unwrap(), plan).unwrap();
    let one = |(buffer, areas): &(&Buffer, Option<&Areas>)| {
        let mut map = vec![0xfffe; g.pixels()];
        let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let frame = buffer.frame();
        let frame = areas.map_or(frame, |areas| frame.with_prior(areas.prior()));
        let regions = engine.segment(&frame, &mut labels, EVERYTHING).unwrap().clone();
        (map, regions)
    };
    frames.iter().map(one).collect()
}

fn quanta(plan: &Plan) -> f64 {
    if plan.color_space() == ColorSpace::Rgb { 4.0 } else { 8.0 }
}

/// The map, and the list of merges, by the specification.
fn specified(
    params: &Params,
    buffer: &Buffer,
    areas: &Areas,
) -> (Vec<u16>, Vec<gstsuperpixel::regions::MergeStep>) {
    let plan = Plan::new(params, buffer.info).unwrap();
    let (g, features) = (buffer.info.geometry, buffer.features(plan.color_space()));
    let mut areas = areas.of_pixels(g);
    let wide = |clusters: Vec<u16>| clusters.into_iter().map(u32::from).collect::<Vec<_>>();
    let clusters = match plan.algorithm() {
        AlgorithmPlan::Slic(own) => wide(oracle::slic(plan.grid(), own, &features)),
        AlgorithmPlan::Lsc(own) => wide(oracle::lsc(plan.grid(), own, &features)),
        AlgorithmPlan::Snic(own) => wide(oracle::snic(plan.grid(), own, &features)),
        AlgorithmPlan::QuickShift(own) => oracle::quickshift(g, own, &features),
    };
    let mut map = if params.prior_cuts {
        oracle::connect_in(g, &clusters, &features, plan.min_region(), &areas)
    } else {
        let map = oracle::connect(g, &clusters, &features, plan.min_region());
        areas = of_most(&map, &areas);
        map
    };
    if params.merge.ratio > 0.0 {
        map = oracle::merge_in(g, &map, &features, &params.merge, quanta(&plan), &areas, params.prior_price);
    }
    let all = |map: &[u16], own: &hierarchy::Params, areas: &[u32]| {
        oracle::hierarchy_in(
            g,
            map,
            &features,
            own,
            quanta(&plan),
            &BTreeMap::new(),
            areas,
            params.prior_price,
        )
    };
    let mut list = Vec::new();
    if params.hierarchy.regions > 0 {
        let before = map.clone();
        (map, list) = all(&before, &params.hierarchy, &areas);
        let count =
            before.iter().filter(|label| **label != NO_LABEL).max().map_or(0, |most| *most as usize + 1);
        let kept = count.saturating_sub(params.hierarchy.regions as usize).min(list.len());
        list.drain(..kept);
        // By the labels of the regions that are left.
        let of: BTreeMap<u16, u16> = before.iter().copied().zip(map.iter().copied()).collect();
        for step in &mut list {
            (step.a, step.b) = (of[&(step.a as u16)].into(), of[&(step.b as u16)].into());
        }
    } else if params.hierarchy.levels {
        list = all(&map, &hierarchy::Params { regions: u32::MAX, ..params.hierarchy.clone() }, &areas).1;
    }
    if params.refine.sweeps > 0 {
        // A region's area is that of its first pixel before refining.
        let of: BTreeMap<u16, u32> = map.iter().copied().zip(areas.iter().copied()).rev().collect();
        map = if params.prior_cuts {
            oracle::refine_in(g, &map, &features, &params.refine, quanta(&plan), &areas)
        } else {
            oracle::refine(g, &map, &features, &params.refine, quanta(&plan))
        };
        areas = map.iter().map(|label| of[label]).collect();
        if params.hierarchy.levels {
            list = all(&map, &hierarchy::Params { regions: u32::MAX, ..params.hierarchy.clone() }, &areas).1;
        }
    }
    (map, if params.hierarchy.levels { list } else { Vec::new() })
}

/// For each pixel the area that most pixels of its region have, of equally many the lowest.
fn of_most(map: &[u16], areas: &[u32]) -> Vec<u32> {
    let mut counts: BTreeMap<u16, BTreeMap<u32, usize>> = BTreeMap::new();
    for (&label, &area) in map.iter().zip(areas) {
        *counts.entry(label).or_default().entry(area).or_default() += 1;
    }
    let most = |own: &BTreeMap<u32, usize>| *own.iter().rev().max_by_key(|(_, count)| **count).unwrap().0;
    let of: BTreeMap<u16, u32> = counts.iter().map(|(&label, own)| (label, most(own))).collect();
    map.iter().map(|label| of[label]).collect()
}

/// Pixels in another area than their region's first.
fn crossings(map: &[u16], areas: &[u32]) -> usize {
    let mut of: BTreeMap<u16, u32> = BTreeMap::new();
    let inside = map.iter().zip(areas).filter(|(label, _)| **label != NO_LABEL);
    inside.filter(|(label, area)| of.entry(**label).or_insert(**area) != *area).count()
}

/// Connected areas.
fn count_areas(areas: &[u32], g: Geometry) -> usize {
    let roots = oracle::components(g, areas);
    (0..areas.len()).filter(|&i| roots[i] == i).count()
}

fn any_params() -> impl Strategy<Value = Params> {
    let slic = (0usize..4, 1.0f32..60.0).prop_map(|(space, compactness)| {
        AlgorithmParams::Slic(slic::Params {
            compactness,
            color_space: ColorSpace::ALL[space],
            ..Default::default()
        })
    });
    let lsc = (0.02f32..0.5).prop_map(|ratio| AlgorithmParams::Lsc(lsc::Params { iterations: 3, ratio }));
    let snic = (1.0f32..60.0)
        .prop_map(|compactness| AlgorithmParams::Snic(snic::Params { compactness, ..Default::default() }));
    let quickshift = (0.5f32..2.0, 1.0f32..7.0).prop_map(|(sigma, tau)| {
        AlgorithmParams::QuickShift(quickshift::Params { sigma, tau, ..Default::default() })
    });
    let algorithm = prop_oneof![3 => slic, 2 => lsc, 1 => snic, 1 => quickshift];
    let merging = prop_oneof![2 => Just((0, 0.0f32)), 3 => (1u32..60).prop_map(|k| (k, 0.0)), 1 => (1.0f32..3.0).prop_map(|r| (0, r))];
    let price = prop_oneof![2 => Just(0.0f32), 1 => 0.1f32..30.0, 1 => Just(300.0)];
    (4u32..14, algorithm, 0.0f32..2.0, merging, any::<[bool; 2]>(), 0u32..3, price, 1u32..4).prop_map(
        |(
            superpixel_size,
            algorithm,
            min_region,
            (regions, ratio),
            [levels, prior_cuts],
            sweeps,
            prior_price,
            passes,
        )| Params {
            superpixel_size,
            min_region,
            merge: merge::Params { ratio, passes, ..Default::default() },
            hierarchy: hierarchy::Params { regions, levels, ..Default::default() },
            refine: refine::Params { sweeps, ..Default::default() },
            algorithm,
            prior: true,
            prior_cuts,
            prior_price,
            ..Params::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frame_with_a_prior_equals_the_specification(
        params in any_params(), (w, h) in (1u32..60, 1u32..50), (pw, ph) in (1u32..70, 1u32..60), same in any::<bool>(),
        seed in any::<u64>(), picture in 0usize..6, points in 1u64..12
    ) {
        let g = Geometry::new(w, h).unwrap();
        let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), PICTURES[picture], seed, 5);
        let size = if same { g } else { Geometry::new(pw, ph).unwrap() };
        let areas = Areas::drawn(size, points, seed);
        let runs = segment(2, &params, &[(&buffer, Some(&areas)), (&buffer, None), (&buffer, Some(&areas))]);
        let (map, merges) = specified(&params, &buffer, &areas);
        prop_assert!(runs[0].0 == map, "differs from the specification");
        prop_assert_eq!(&runs[0].1.merges, &merges);
        prop_assert!(runs[0] == runs[2], "a frame depends on the frames before");
        let alone = segment(1, &Params { prior: false, ..params.clone() }, &[(&buffer, None)]);
        prop_assert!(runs[1] == alone[0], "a frame without a prior is not as in a plan without");
        prop_assert!(runs[..1] == segment(1, &params, &[(&buffer, Some(&areas))]), "threads change the result");
        let pixels = areas.of_pixels(g);
        let (areas, wanted) = (count_areas(&pixels, g), params.hierarchy.regions as usize);
        let merges = wanted > 0 || params.merge.ratio > 0.0;
        if params.prior_cuts && (wanted == 0 || wanted >= areas) && !(merges && params.prior_price > 0.0) {
            prop_assert_eq!(crossings(&map, &pixels), 0);
        }
    }
}

/// Masks, times and windows go with priors.
#[test]
fn no_region_has_pixels_of_two_areas() {
    for seed in 0..40u64 {
        let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(59).wrapping_add(salt)) % n;
        let g = Geometry::new(40 + pick(1, 90) as u32, 30 + pick(2, 70) as u32).unwrap();
        let info = FrameInfo::new(g, PixelFormat::Nv12);
        let temporal = pick(3, 2) == 0;
        let superpixels = [0, 40, 150][pick(6, 3) as usize];
        let params = Params {
            superpixel_size: 4 + pick(4, 12) as u32,
            superpixels,
            holds_count: superpixels > 0,
            temporal,
            masked: true,
            prior: true,
            refine: refine::Params { sweeps: pick(5, 3) as u32, ..Default::default() },
            ..Params::default()
        };
        let buffers: Vec<_> = (0..4)
            .map(|i| {
                Buffer::new(info, Picture::Natural, seed, 0).with_mask(
                    SHAPES[pick(7, 9) as usize],
                    seed,
                    [i, 2 * i],
                )
            })
            .collect();
        let areas: Vec<_> = (0..4).map(|i| Areas::drawn(g, 2 + pick(8, 7), seed + i / 2)).collect();
        let frames: Vec<_> = buffers.iter().zip(areas.iter().map(Some)).collect();
        let runs = segment(2, &params, &frames);
        assert!(runs == segment(1, &params, &frames), "threads change the result");
        for (((map, _), areas), buffer) in runs.iter().zip(&areas).zip(&buffers) {
            assert!(map.iter().enumerate().all(|(i, label)| (*label != NO_LABEL) == buffer.is_inside(i)));
            assert_eq!(crossings(map, &areas.of_pixels(g)), 0, "{params:?}");
        }
    }
}

#[test]
fn label_maps_of_32_bits_have_priors() {
    let g = Geometry::new(90, 70).unwrap();
    let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Natural, 4, 0);
    let areas = Areas::drawn(Geometry::new(31, 17).unwrap(), 9, 5);
    let params = Params { superpixel_size: 6, prior: true, ..Params::default() };
    let wanted = segment(1, &params, &[(&buffer, Some(&areas))]).remove(0).0;
    let plan = wide::Plan::new(&params, buffer.info).unwrap();
    let cpu = Cpu::new(2).unwrap();
    let mut engine = wide::Engine::new(cpu.clone(), cpu, plan).unwrap();
    let mut map = vec![0; g.pixels()];
    let frame = buffer.frame().with_prior(areas.prior());
    engine.segment(&frame, &mut map, g.width() as usize, || Ok::<_, Error>(())).unwrap();
    assert!(map.iter().zip(&wanted).all(|(wide, label)| *wide == u32::from(*label)));
}

/// An area in each pixel: there are more than labels.
#[test]
fn areas_beyond_the_last_label_have_none() {
    let g = Geometry::new(300, 300).unwrap();
    let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Natural, 4, 0);
    let areas = Areas::new((0..90_000).collect(), g, 300);
    for temporal in [false, true] {
        let params = Params { prior: true, temporal, ..Params::default() };
        for (map, regions) in segment(2, &params, &[(&buffer, Some(&areas)), (&buffer, Some(&areas))]) {
            assert_eq!(regions.count, 65_535);
            assert!(map.iter().enumerate().all(|(i, label)| usize::from(*label) == i.min(65_535)));
        }
    }
}

/// What a user sees: objects come out whole where so few regions are wanted.
#[test]
fn regions_of_objects_are_merged_first() {
    let g = Geometry::new(160, 120).unwrap();
    let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Natural, 4, 0);
    let areas = Areas::drawn(g, 30, 3);
    let pixels = areas.of_pixels(g);
    let objects = count_areas(&pixels, g) as u32;
    assert!(objects > 4);
    for (regions, crosses) in [(objects, false), (objects + 30, false), (objects - 1, true)] {
        let params = Params {
            prior: true,
            hierarchy: hierarchy::Params { regions, ..Default::default() },
            ..Params::default()
        };
        let (map, found) = segment(2, &params, &[(&buffer, Some(&areas))]).remove(0);
        assert_eq!(found.count, regions);
        assert_eq!(crossings(&map, &pixels) > 0, crosses);
        if regions == objects {
            assert_eq!(oracle::components(g, &map), oracle::components(g, &pixels));
        }
    }
}

/// A low price leaves merges nearly where colors want them, a high one is as good as never.
#[test]
fn a_price_makes_borders_harder_to_cross() {
    let g = Geometry::new(160, 120).unwrap();
    let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Natural, 4, 0);
    let areas = Areas::drawn(g, 30, 3);
    let pixels = areas.of_pixels(g);
    let regions = count_areas(&pixels, g) as u32 + 60;
    let of = |prior_price: f32, ratio: f32| {
        let regions = if ratio > 0.0 { 0 } else { regions };
        let params = Params {
            prior: true,
            prior_price,
            hierarchy: hierarchy::Params { regions, ..Default::default() },
            merge: merge::Params { ratio, passes: 3, ..Default::default() },
            ..Params::default()
        };
        segment(2, &params, &[(&buffer, Some(&areas))]).remove(0)
    };
    for ratio in [0.0, 2.0] {
        let crossed = [1.0, 300.0].map(|price| {
            let map = of(price, ratio).0;
            let most = of_most(&map, &pixels);
            most.iter().zip(&pixels).filter(|(most, own)| most != own).count()
        });
        assert!(crossed[0] > 2 * crossed[1], "{crossed:?}");
        assert_eq!(crossings(&of(0.0, ratio).0, &pixels), 0);
    }
    assert_eq!(of(4.0, 0.0).1.count, regions);
    let refused = Params { prior_price: 301.0, ..Params::default() }.validate();
    assert!(matches!(refused, Err(Error::Param { name: "prior-price", .. })));
}

#[test]
fn priors_that_do_not_fit_are_refused() {
    let g = Geometry::new(60, 50).unwrap();
    let buffer = Buffer::new(FrameInfo::new(g, PixelFormat::Rgb), Picture::Natural, 4, 0).with_mask(
        Shape::Full,
        0,
        [0, 0],
    );
    let areas = Areas::drawn(g, 4, 1);
    let masked = Params { masked: true, ..Params::default() };
    let mut engine = Engine::new(Cpu::new(1).unwrap(), Plan::new(&masked, buffer.info).unwrap()).unwrap();
    let mut map = vec![0; 60 * 50];
    let mut labels = Labels::new(g, &mut map, 60).unwrap();
    let frame = buffer.frame().with_prior(areas.prior());
    assert_eq!(engine.segment(&frame, &mut labels, EVERYTHING).unwrap_err(), Error::Prior);
    let loose = Params { prior: true, connectivity: false, ..Params::default() };
    assert!(matches!(loose.validate(), Err(Error::Param { name: "connectivity", .. })));
    assert!(Params { prior: true, ..Params::default() }.runs_on_cuda());
}

/// In a stream as well, with areas that come, go and change their numbers.
#[test]
fn exact_numbers_hold_from_frame_to_frame() {
    let g = Geometry::new(120, 90).unwrap();
    let info = FrameInfo::new(g, PixelFormat::Rgb);
    let buffer = Buffer::new(info, Picture::Natural, 4, 0);
    let areas: Vec<_> = (0..5).map(|i| Areas::drawn(g, 9, 3 + i / 2)).collect();
    for (sweeps, levels, prior_price) in [(0, false, 0.0), (1, true, 0.0), (1, true, 6.0)] {
        let params = Params {
            prior: true,
            prior_price,
            temporal: true,
            hierarchy: hierarchy::Params { regions: 60, levels, ..Default::default() },
            refine: refine::Params { sweeps, ..Default::default() },
            ..Params::default()
        };
        let frames: Vec<_> = areas.iter().map(|areas| (&buffer, Some(areas))).collect();
        let runs = segment(2, &params, &frames);
        assert!(runs == segment(1, &params, &frames), "threads change the result");
        for ((map, regions), areas) in runs.iter().zip(&areas) {
            let pixels = areas.of_pixels(g);
            assert!(count_areas(&pixels, g) < 60);
            assert_eq!((regions.count, crossings(map, &pixels) > 0), (60, prior_price > 0.0));
        }
        // A picture that stays, with areas that stay, keeps its regions.
        let ids =
            |i: usize| runs[i].1.table.iter().map(|r| r.track_id).collect::<std::collections::BTreeSet<_>>();
        assert!(ids(0).intersection(&ids(1)).count() >= 54);
    }
}
