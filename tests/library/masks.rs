// SPDX-License-Identifier: MPL-2.0
//! Frames with masks on the CPU: equality with the specification, and what users rely on.

use crate::oracle;
use std::collections::BTreeMap;

use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, Shape};
use gstsuperpixel::algo::{AlgorithmParams, AlgorithmPlan, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// Segments frames on one engine.
fn segment(threads: u32, params: &Params, frames: &[&Buffer]) -> Vec<(Vec<u16>, Regions)> {
    let g = frames[0].info.geometry;
    let plan = Plan::new(params, frames[0].info).unwrap();
    let mut engine = Engine::new(Cpu::new(threads).unwrap(), plan).unwrap();
    let one = |buffer: &&Buffer| {
        let mut map = vec![0xfffe; g.pixels()];
        let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let regions = engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap().clone();
        (map, regions)
    };
    frames.iter().map(one).collect()
}

/// Checks the invariants of any mask, from the map and the mask alone.
fn check(map: &[u16], regions: &Regions, params: &Params, buffer: &Buffer) {
    let g = buffer.info.geometry;
    let (w, n) = (g.width() as usize, g.pixels());
    let mut area = vec![0u32; regions.count as usize];
    let mut bounds = vec![[u16::MAX, u16::MAX, 0, 0]; area.len()];
    let mut pairs = BTreeMap::new();
    for (i, &label) in map.iter().enumerate() {
        assert_eq!(label != NO_LABEL, buffer.is_inside(i), "pixel {i} has label {label}");
        if label == NO_LABEL {
            continue;
        }
        let (x, y, b) = ((i % w) as u16, (i / w) as u16, &mut bounds[usize::from(label)]);
        *b = [b[0].min(x), b[1].min(y), b[2].max(x + 1), b[3].max(y + 1)];
        area[usize::from(label)] += 1;
        for j in oracle::neighbors(i, w, n).filter(|&j| j > i && map[j] != label && map[j] != NO_LABEL) {
            *pairs.entry((u32::from(label.min(map[j])), u32::from(label.max(map[j])))).or_insert(0) += 1;
        }
    }
    assert!(area.iter().all(|&a| a > 0), "an unused label");
    assert_eq!(regions.table.iter().map(|r| (r.area, r.bounds)).collect::<Vec<_>>(), {
        area.iter().copied().zip(bounds).collect::<Vec<_>>()
    });
    assert_eq!(regions.neighbors.iter().map(|p| ((p.a, p.b), p.length)).collect::<Vec<_>>(), {
        pairs.iter().map(|(&pair, &length)| (pair, length)).collect::<Vec<_>>()
    });
    if params.connectivity {
        let roots = oracle::components(g, map);
        let first: Vec<usize> = (0..n).filter(|&i| roots[i] == i && map[i] != NO_LABEL).collect();
        assert_eq!(first.len(), area.len(), "labels are not one region each");
        assert!(first.windows(2).all(|p| map[p[0]] < map[p[1]]), "labels do not follow raster order");
        let least = Plan::new(params, buffer.info).unwrap().min_region();
        let has_neighbor = |label: u32| pairs.keys().any(|&(a, b)| a == label || b == label);
        for (label, &a) in area.iter().enumerate().filter(|(_, a)| **a < least) {
            assert!(!has_neighbor(label as u32), "region {label} of {a} px is below the minimum");
        }
    }
}

/// The map by the specification.
fn specified(params: &Params, buffer: &Buffer) -> Vec<u16> {
    let plan = Plan::new(params, buffer.info).unwrap();
    let features = buffer.features(plan.color_space());
    let g = plan.frame().geometry;
    let finish = |clusters: &[u32]| match params.connectivity {
        true => oracle::connect(g, clusters, &features, plan.min_region()),
        false => oracle::numbered(clusters, &features),
    };
    let wide = |clusters: Vec<u16>| clusters.into_iter().map(u32::from).collect::<Vec<_>>();
    let labels = finish(&match plan.algorithm() {
        AlgorithmPlan::Slic(own) => wide(oracle::slic(plan.grid(), own, &features)),
        AlgorithmPlan::Lsc(own) => wide(oracle::lsc(plan.grid(), own, &features)),
        AlgorithmPlan::Snic(own) => wide(oracle::snic(plan.grid(), own, &features)),
        AlgorithmPlan::QuickShift(own) => oracle::quickshift(g, own, &features),
    });
    let quanta = if plan.color_space() == ColorSpace::Rgb { 4.0 } else { 8.0 };
    match params.merge.ratio {
        0.0 => labels,
        _ => oracle::merge(g, &labels, &features, &params.merge, quanta),
    }
}

fn any_params() -> impl Strategy<Value = Params> {
    let slic =
        (0usize..4, any::<bool>(), 1.0f32..60.0).prop_map(|(space, adaptive_compactness, compactness)| {
            let color_space = ColorSpace::ALL[space];
            AlgorithmParams::Slic(slic::Params {
                adaptive_compactness,
                compactness,
                color_space,
                ..Default::default()
            })
        });
    let lsc = (0.02f32..0.5).prop_map(|ratio| AlgorithmParams::Lsc(lsc::Params { iterations: 3, ratio }));
    let snic = (0usize..4, 1.0f32..60.0).prop_map(|(space, compactness)| {
        AlgorithmParams::Snic(snic::Params { compactness, color_space: ColorSpace::ALL[space] })
    });
    let quickshift = (0.5f32..3.0, 1.0f32..9.0).prop_map(|(sigma, tau)| {
        AlgorithmParams::QuickShift(quickshift::Params { sigma, tau, ..Default::default() })
    });
    let algorithm = prop_oneof![3 => slic, 2 => lsc, 2 => snic, 1 => quickshift];
    let count = prop_oneof![4 => Just(0u32), 1 => 1u32..60, 1 => Just(u32::MAX)];
    let merge = prop_oneof![2 => Just(0.0f32), 1 => 1.0f32..3.0];
    (4u32..24, count, algorithm, prop::bool::weighted(0.7), 0.0f32..2.0, merge).prop_map(
        |(superpixel_size, superpixels, algorithm, connectivity, min_region, ratio)| Params {
            superpixel_size,
            superpixels,
            connectivity,
            min_region,
            merge: merge::Params { ratio, ..Default::default() },
            algorithm,
            masked: true,
            stretch_gray16: false,
            ..Params::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_masked_frame_equals_the_specification(
        params in any_params(), (w, h) in (1u32..70, 1u32..60), format in 0usize..14, seed in any::<u64>(),
        picture in 0usize..6, shape in 0usize..SHAPES.len(), motion in (-20i32..20, -20i32..20)
    ) {
        let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::ALL[format]);
        let plain = Buffer::new(info, PICTURES[picture], seed, 5);
        let other = Buffer::new(info, Picture::Natural, 3, 0).with_mask(Shape::Disk, 0, [0, 0]);
        let buffer =
            Buffer::new(info, PICTURES[picture], seed, 5).with_mask(SHAPES[shape], seed, [motion.0, motion.1]);
        let runs = segment(2, &params, &[&buffer, &plain, &other, &buffer]);
        prop_assert!(runs[0].0 == specified(&params, &buffer), "differs from the specification");
        prop_assert!(runs[0] == runs[3], "a frame depends on the frames before");
        let alone = segment(1, &Params { masked: false, ..params.clone() }, &[&plain]);
        prop_assert!(runs[1] == alone[0], "a frame without a mask is not as in a plan without");
        for (run, buffer) in runs.iter().zip([&buffer, &plain, &other]) {
            check(&run.0, &run.1, &params, buffer);
        }
        prop_assert!(runs[..1] == segment(1, &params, &[&buffer]), "threads change the result");
    }
}

fn natural(w: u32, h: u32, format: PixelFormat) -> Buffer {
    Buffer::new(FrameInfo::new(Geometry::new(w, h).unwrap(), format), Picture::Natural, 4, 0)
}

#[test]
fn a_full_mask_changes_nothing() {
    let plain = natural(160, 120, PixelFormat::Rgb);
    let full = natural(160, 120, PixelFormat::Rgb).with_mask(Shape::Full, 0, [0, 0]);
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    for algorithm in [
        AlgorithmParams::Slic(slic::Params::default()),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::Snic(snic::Params::default()),
        AlgorithmParams::QuickShift(small),
    ] {
        for temporal in [false, true] {
            let params = Params { algorithm: algorithm.clone(), temporal, ..Params::default() };
            let masked = Params { masked: true, ..params.clone() };
            assert!(
                segment(2, &params, &[&plain, &plain]) == segment(2, &masked, &[&full, &full]),
                "{params:?}"
            );
        }
    }
}

#[test]
fn an_empty_mask_gives_no_region() {
    let empty = natural(60, 50, PixelFormat::Rgb).with_mask(Shape::Empty, 0, [0, 0]);
    let params = Params { masked: true, ..Params::default() };
    let (map, regions) = segment(2, &params, &[&empty]).remove(0);
    assert!(map.iter().all(|&label| label == NO_LABEL));
    assert_eq!((regions.count, regions.table.len(), regions.neighbors.len()), (0, 0, 0));
}

#[test]
fn islands_beyond_the_last_label_have_none() {
    let buffer = natural(400, 400, PixelFormat::Rgb).with_mask(Shape::Checker, 0, [0, 0]);
    for superpixel_size in [4, 16] {
        for temporal in [false, true] {
            let params = Params { masked: true, superpixel_size, temporal, ..Params::default() };
            for (map, regions) in segment(2, &params, &[&buffer, &buffer]) {
                assert_eq!(regions.count, 65_535);
                let inside = (0..map.len()).filter(|&i| buffer.is_inside(i));
                assert!(inside.enumerate().all(|(n, i)| map[i] == n.min(65_535) as u16));
                assert!(regions.table.iter().all(|region| region.area == 1));
            }
        }
    }
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let buffer = natural(60, 50, PixelFormat::Rgb);
    let mask = vec![1; 60 * 50];
    assert!(buffer.frame().with_mask(&mask, 60).is_ok());
    assert!(matches!(buffer.frame().with_mask(&mask[1..], 60), Err(Error::Plane { what: "mask", .. })));
    assert!(matches!(buffer.frame().with_mask(&mask, 59), Err(Error::Stride { what: "mask", .. })));
    let plan = Plan::new(&Params::default(), buffer.info).unwrap();
    let mut engine = Engine::new(Cpu::new(1).unwrap(), plan).unwrap();
    let mut map = vec![0; 60 * 50];
    let mut labels = Labels::new(buffer.info.geometry, &mut map, 60).unwrap();
    let frame = buffer.frame().with_mask(&mask, 60).unwrap();
    assert_eq!(engine.segment(&frame, &mut labels, EVERYTHING).unwrap_err(), Error::Mask);
}

/// A fill leaves what is outside, a line separates it from what is inside.
#[test]
fn drawing_leaves_what_is_outside() {
    for format in
        [PixelFormat::Rgb, PixelFormat::Bgra, PixelFormat::Gray8, PixelFormat::Nv12, PixelFormat::I420]
    {
        let buffer = natural(61, 47, format).with_mask(Shape::Disk, 0, [0, 0]);
        let g = buffer.info.geometry;
        let plan = Plan::new(&Params { masked: true, ..Params::default() }, buffer.info).unwrap();
        let mut engine = Engine::new(Cpu::new(2).unwrap(), plan).unwrap();
        let mut map = vec![0; g.pixels()];
        let mut labels = Labels::new(g, &mut map, 61).unwrap();
        engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap();
        for fill in [Fill::None, Fill::MeanColor, Fill::Labels] {
            for boundaries in [None, Some(Boundaries { color: 0xff00_ff00, width: 1 })] {
                let mut planes = buffer.planes.clone();
                let all = planes.iter_mut().map(Vec::as_mut_slice);
                let mut frame = FrameMut::new(buffer.info, all, &buffer.strides).unwrap();
                engine.draw(&mut frame, &labels, &Drawing { fill, boundaries }).unwrap();
                let drawn = Buffer {
                    planes,
                    strides: buffer.strides.clone(),
                    mask: None,
                    prior: None,
                    ..natural(61, 47, format)
                };
                let (was, is) = (buffer.samples(), drawn.samples());
                let label = |x: usize, y: usize| labels.row(y)[x];
                let marked = |x: usize, y: usize| {
                    let near = [(x + 1, y), (x, y + 1)].into_iter().filter(|&(x, y)| x < 61 && y < 47);
                    boundaries.is_some() && near.into_iter().any(|(u, v)| label(u, v) != label(x, y))
                };
                let changes =
                    |x: usize, y: usize| marked(x, y) || (label(x, y) != NO_LABEL && fill != Fill::None);
                for i in 0..g.pixels() {
                    let (x, y) = (i % 61, i / 61);
                    // Chroma is shared by four.
                    let pixels =
                        [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(u, v)| (x / 2 * 2 + u, y / 2 * 2 + v));
                    let shared = format.planes(g).count() > 1
                        && pixels.into_iter().filter(|&(x, y)| x < 61 && y < 47).any(|(x, y)| changes(x, y));
                    let (before, after) = (was(x, y).0, is(x, y).0);
                    if !changes(x, y) {
                        assert_eq!(before[0], after[0], "{format:?} {fill:?} {boundaries:?} at {x}, {y}");
                    }
                    if !changes(x, y) && !shared {
                        assert_eq!(before, after, "{format:?} {fill:?} {boundaries:?} at {x}, {y}");
                    }
                }
                let count = (0..g.pixels()).filter(|i| was(i % 61, i / 61) != is(i % 61, i / 61));
                assert_eq!(count.count() > 0, fill != Fill::None || boundaries.is_some());
            }
        }
    }
}

/// Views of one frame in memory.
#[test]
fn any_byte_but_zero_is_inside() {
    let buffer = natural(40, 30, PixelFormat::Rgb);
    let params = Params { masked: true, ..Params::default() };
    let plan = Plan::new(&params, buffer.info).unwrap();
    let maps = [1u8, 255].map(|inside| {
        let mask: Vec<u8> = (0..40 * 30).map(|i| if i % 40 < 17 { inside } else { 0 }).collect();
        let mut engine = Engine::new(Cpu::new(1).unwrap(), plan.clone()).unwrap();
        let mut map = vec![0; 40 * 30];
        let mut labels = Labels::new(buffer.info.geometry, &mut map, 40).unwrap();
        let frame: Frame<'_> = buffer.frame().with_mask(&mask, 40).unwrap();
        engine.segment(&frame, &mut labels, EVERYTHING).unwrap();
        map
    });
    assert_eq!(maps[0], maps[1]);
}
