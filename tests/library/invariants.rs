// SPDX-License-Identifier: MPL-2.0
//! Invariants of every frame: equality with the specification, and the properties that users rely on.

use crate::oracle;
use std::sync::LazyLock;

use crate::pictures::{Buffer, PICTURES, Picture};
use gstsuperpixel::algo::grid::Grid;
use gstsuperpixel::algo::method::ClusterLabels;
use gstsuperpixel::algo::{
    Algorithm, AlgorithmParams, AlgorithmPlan, AllParams, lsc, quickshift, slic, snic,
};
use gstsuperpixel::color::{ColorSpace, Yuv, unpack};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat, YuvMatrix};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::regions::Regions;
use proptest::prelude::*;

static CPU: LazyLock<[Cpu; 3]> = LazyLock::new(|| [1, 2, 8].map(|n| Cpu::new(n).unwrap()));

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

fn segment(cpu: &Cpu, params: &Params, buffer: &Buffer) -> (Vec<u16>, Regions, Plan) {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(cpu.clone(), Plan::new(params, buffer.info).unwrap()).unwrap();
    let mut map = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap();
    let regions = engine.regions().clone();
    // Once more on the same engine: nothing of a frame may show in the next.
    let mut again = vec![0xfffe; g.pixels()];
    let mut labels = Labels::new(g, &mut again, g.width() as usize).unwrap();
    engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap();
    assert!(map == again, "two runs differ");
    (map, regions, engine.plan().clone())
}

fn check_invariants(map: &[u16], regions: &Regions, plan: &Plan, buffer: &Buffer) {
    let g = plan.frame().geometry;
    let (w, n) = (g.width() as usize, g.pixels());
    let mut area = vec![0u32; regions.count as usize];
    for &label in map {
        assert!(u32::from(label) < regions.count, "label {label} of {}", regions.count);
        area[usize::from(label)] += 1;
    }
    assert!(area.iter().all(|&a| a > 0), "an unused label");
    if plan.connectivity() {
        let roots = oracle::components(g, map);
        let parts = roots.iter().enumerate().filter(|&(i, &r)| i == r).count();
        assert_eq!(parts, regions.count as usize, "labels are not one region each");
        let first: Vec<usize> = (0..n).filter(|&i| roots[i] == i).collect();
        assert!(first.windows(2).all(|p| map[p[0]] < map[p[1]]), "labels do not follow raster order");
        if regions.count > 1 {
            assert!(area.iter().all(|&a| a >= plan.min_region()), "a region below the minimum");
        }
    }
    assert_eq!(area.iter().sum::<u32>() as usize, n);
    let mut x = vec![0u64; area.len()];
    let mut y = x.clone();
    let mut bounds = vec![[u16::MAX, u16::MAX, 0, 0]; area.len()];
    let mut samples = vec![[0u64; 3]; area.len()];
    let mut lab = samples.clone();
    let mut pairs = std::collections::BTreeMap::new();
    let features = buffer.features(ColorSpace::Lab);
    let sample = buffer.samples();
    for i in 0..n {
        let k = usize::from(map[i]);
        let (px, py) = (i % w, i / w);
        x[k] += px as u64;
        y[k] += py as u64;
        let b = &mut bounds[k];
        *b = [b[0].min(px as u16), b[1].min(py as u16), b[2].max(px as u16 + 1), b[3].max(py as u16 + 1)];
        let (native, _) = sample(px, py);
        for j in 0..3 {
            samples[k][j] += u64::from(native[j]);
            lab[k][j] += u64::from(unpack(features[i])[j]);
        }
        for j in oracle::neighbors(i, w, n).filter(|&j| j > i && map[j] != map[i]) {
            *pairs.entry((map[i].min(map[j]), map[i].max(map[j]))).or_insert(0u32) += 1;
        }
    }
    assert_eq!(regions.table.len(), area.len());
    let yuv = Yuv::new(&plan.frame());
    for (k, record) in regions.table.iter().enumerate() {
        let n = u64::from(area[k]);
        let mean = samples[k].map(|s| ((s as f64 / n as f64) + 0.5).floor() as u16);
        let codes = if plan.frame().format.is_rgb() { mean } else { yuv.rgb_wide(mean) };
        let white = f64::from((1u32 << plan.frame().format.bits()) - 1);
        let rgb = codes.map(|c| (f64::from(c) * 255.0 / white + 0.5).floor() as u8);
        assert_eq!((record.track_id, record.area, record.bounds), (k as u32, area[k], bounds[k]));
        assert_eq!(record.centroid, [(x[k] as f64 / n as f64) as f32, (y[k] as f64 / n as f64) as f32]);
        assert_eq!(record.mean_rgb, [rgb[0], rgb[1], rgb[2], 255]);
        if plan.color_space() == ColorSpace::Lab {
            let offsets = [0.0, 1024.0, 1024.0];
            for j in 0..3 {
                let mean = (lab[k][j] as f64 / n as f64 - offsets[j]) / 8.0;
                assert!((f64::from(record.mean_lab[j]) - mean).abs() < 1e-4, "mean Lab of {k}");
            }
        }
    }
    let listed: Vec<_> = regions.neighbors.iter().map(|p| ((p.a as u16, p.b as u16), p.length)).collect();
    assert_eq!(listed, pairs.into_iter().collect::<Vec<_>>());
}

fn params(size: u32, count: u32, slic: slic::Params, connectivity: bool, min_region: f32) -> Params {
    Params {
        superpixel_size: size,
        superpixels: count,
        connectivity,
        min_region,
        algorithm: AlgorithmParams::Slic(slic),
        ..Params::default()
    }
}

/// Default parameters of every algorithm whose clusters are cells.
fn algorithms() -> Vec<AlgorithmParams> {
    let in_cells = |algorithm: &Algorithm| algorithm.capabilities().labels == ClusterLabels::Cells;
    Algorithm::ALL.iter().copied().filter(in_cells).map(|own| AllParams::default().of(own)).collect()
}

fn any_params() -> impl Strategy<Value = Params> {
    let slic = (1u32..8, 0usize..4, any::<bool>(), prop_oneof![0.1f32..64.0, 64.0f32..1000.0]).prop_map(
        |(iterations, space, adaptive_compactness, compactness)| {
            AlgorithmParams::Slic(slic::Params {
                iterations,
                compactness,
                color_space: ColorSpace::ALL[space],
                adaptive_compactness,
            })
        },
    );
    let lsc = (1u32..8, prop_oneof![0.01f32..0.2, 0.2f32..1.0])
        .prop_map(|(iterations, ratio)| AlgorithmParams::Lsc(lsc::Params { iterations, ratio }));
    let snic = (0usize..4, prop_oneof![0.1f32..64.0, 64.0f32..1000.0]).prop_map(|(space, compactness)| {
        AlgorithmParams::Snic(snic::Params { compactness, color_space: ColorSpace::ALL[space] })
    });
    let algorithm = prop_oneof![slic, lsc, snic];
    let count = prop_oneof![3 => Just(0u32), 1 => 1u32..60, 1 => Just(u32::MAX)];
    let min_region = prop_oneof![Just(0.25f32), 0.0f32..4.0, Just(0.0)];
    (4u32..40, count, algorithm, prop::bool::weighted(0.8), min_region).prop_map(
        |(superpixel_size, superpixels, algorithm, connectivity, min_region)| Params {
            superpixel_size,
            superpixels,
            connectivity,
            min_region,
            algorithm,
            ..Params::default()
        },
    )
}

fn any_frame() -> impl Strategy<Value = (Buffer2, Picture)> {
    (
        1u32..258,
        1u32..194,
        0..PixelFormat::ALL.len(),
        0usize..5,
        any::<bool>(),
        any::<u64>(),
        0usize..40,
        0usize..6,
    )
        .prop_map(|(w, h, format, matrix, full_range, seed, padding, picture)| {
            let matrices =
                [YuvMatrix::Bt601, YuvMatrix::Bt709, YuvMatrix::Bt2020, YuvMatrix::Fcc, YuvMatrix::Smpte240m];
            let info = FrameInfo {
                geometry: Geometry::new(w, h).unwrap(),
                format: PixelFormat::ALL[format],
                matrix: matrices[matrix],
                full_range,
            };
            (Buffer2 { info, seed, padding }, PICTURES[picture])
        })
}

/// How to make a [`Buffer`]; what a failing case prints.
#[derive(Debug, Clone)]
struct Buffer2 {
    info: FrameInfo,
    seed: u64,
    padding: usize,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 160, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frame_keeps_every_promise((frame, picture) in any_frame(), params in any_params()) {
        let buffer = Buffer::new(frame.info, picture, frame.seed, frame.padding);
        let (map, regions, plan) = segment(&CPU[0], &params, &buffer);
        check_invariants(&map, &regions, &plan, &buffer);
        let tight = Buffer::new(frame.info, picture, frame.seed, 0);
        for cpu in &CPU[1..] {
            let (other, other_regions, _) = segment(cpu, &params, &tight);
            prop_assert!(map == other, "{} threads or another stride change the map", cpu.threads());
            prop_assert_eq!(&regions.table, &other_regions.table);
            prop_assert_eq!(&regions.neighbors, &other_regions.neighbors);
        }
    }

    #[test]
    fn any_frame_equals_the_specification((frame, picture) in any_frame(), params in any_params()) {
        let buffer = Buffer::new(frame.info, picture, frame.seed, frame.padding);
        let (map, _, plan) = segment(&CPU[1], &params, &buffer);
        let features = buffer.features(plan.color_space());
        let clusters = match plan.algorithm() {
            AlgorithmPlan::Slic(slic) => oracle::slic(plan.grid(), slic, &features),
            AlgorithmPlan::Lsc(lsc) => oracle::lsc(plan.grid(), lsc, &features),
            AlgorithmPlan::Snic(snic) => oracle::snic(plan.grid(), snic, &features),
            AlgorithmPlan::QuickShift(_) => unreachable!("an algorithm on the grid was asked for"),
        };
        let (raw, _, _) = segment(&CPU[1], &Params { connectivity: false, ..params.clone() }, &buffer);
        prop_assert!(raw == oracle::numbered(&clusters, &features), "cluster labels differ from the specification");
        if matches!(plan.algorithm(), AlgorithmPlan::Snic(_)) {
            let pieces = oracle::connect(plan.frame().geometry, &clusters, &features, 1);
            prop_assert_eq!(pieces.iter().max(), raw.iter().max(), "a cluster is in pieces");
        }
        if params.connectivity {
            let want = oracle::connect(plan.frame().geometry, &clusters, &features, plan.min_region());
            prop_assert!(map == want, "connectivity differs from the specification");
        }
    }
}

fn any_quickshift() -> impl Strategy<Value = Params> {
    let sigma = prop_oneof![12 => 0.5f32..5.0, 1 => 5.0f32..20.0];
    let tau = prop_oneof![3 => 1.0f32..12.0, 1 => 12.0f32..64.0];
    let min_region = prop_oneof![Just(0.25f32), 0.0f32..4.0, Just(0.0)];
    (sigma, tau, 0.01f32..4.0, 0usize..4, prop::bool::weighted(0.8), min_region).prop_map(
        |(sigma, tau, color_scale, space, connectivity, min_region)| Params {
            connectivity,
            min_region,
            algorithm: AlgorithmParams::QuickShift(quickshift::Params {
                sigma,
                tau,
                color_scale,
                color_space: ColorSpace::ALL[space],
            }),
            ..Params::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_frame_keeps_every_promise_with_quickshift((frame, picture) in any_frame(), params in any_quickshift()) {
        let AlgorithmParams::QuickShift(own) = &params.algorithm else { unreachable!("quick shift was asked for") };
        // Windows grow with sigma: large ones look at as many pairs of pixels as those of 5.
        let side = |side: u32| (side as f32 * (5.0 / own.sigma).min(1.0)).ceil() as u32;
        let geometry = Geometry::new(side(frame.info.geometry.width()), side(frame.info.geometry.height())).unwrap();
        let buffer = Buffer::new(FrameInfo { geometry, ..frame.info }, picture, frame.seed, frame.padding);
        let (map, regions, plan) = segment(&CPU[0], &params, &buffer);
        check_invariants(&map, &regions, &plan, &buffer);
        let (other, other_regions, _) = segment(&CPU[2], &params, &buffer);
        prop_assert!(map == other, "threads change the map");
        prop_assert_eq!(&regions.table, &other_regions.table);
    }

    #[test]
    fn any_frame_equals_the_specification_with_quickshift(
        (frame, picture) in any_frame(),
        params in any_quickshift(),
        (w, h) in (1u32..50, 1u32..40),
    ) {
        let info = FrameInfo { geometry: Geometry::new(w, h).unwrap(), ..frame.info };
        let buffer = Buffer::new(info, picture, frame.seed, frame.padding);
        let (map, _, plan) = segment(&CPU[1], &params, &buffer);
        let features = buffer.features(plan.color_space());
        let AlgorithmPlan::QuickShift(own) = plan.algorithm() else { unreachable!("quick shift was asked for") };
        let clusters = oracle::quickshift(plan.frame().geometry, own, &features);
        let (raw, _, _) = segment(&CPU[1], &Params { connectivity: false, ..params.clone() }, &buffer);
        prop_assert!(raw == oracle::numbered(&clusters, &features), "trees differ from the specification");
        if params.connectivity {
            let want = oracle::connect(plan.frame().geometry, &clusters, &features, plan.min_region());
            prop_assert!(map == want, "connectivity differs from the specification");
        }
    }
}

fn quickshift_params(quickshift: quickshift::Params) -> Params {
    Params { algorithm: AlgorithmParams::QuickShift(quickshift), ..Params::default() }
}

#[test]
fn a_flat_image_is_one_tree() {
    for (w, h, sigma, tau) in
        [(1, 1, 3.0, 8.0), (1, 90, 3.0, 1.0), (90, 1, 0.5, 1.0), (131, 70, 3.0, 8.0), (64, 64, 20.0, 64.0)]
    {
        let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb);
        let buffer = Buffer::new(info, Picture::Flat, 90, 0);
        let own = quickshift::Params { sigma, tau, ..Default::default() };
        for connectivity in [true, false] {
            let params = Params { connectivity, ..quickshift_params(own.clone()) };
            let (map, regions, _) = segment(&CPU[1], &params, &buffer);
            assert_eq!((regions.count, map.iter().max()), (1, Some(&0)), "{w}x{h} {params:?}");
        }
    }
}

#[test]
fn more_trees_than_labels_share_the_last_one() {
    // Noise with links of a pixel at most: nearly every pixel is a root.
    let info = FrameInfo::new(Geometry::new(400, 300).unwrap(), PixelFormat::Rgb);
    let buffer = Buffer::new(info, Picture::Noise, 5, 0);
    let own = quickshift::Params { sigma: 0.5, tau: 1.0, color_scale: 10.0, ..Default::default() };
    let params = Params { connectivity: false, ..quickshift_params(own) };
    let (map, regions, plan) = segment(&CPU[2], &params, &buffer);
    check_invariants(&map, &regions, &plan, &buffer);
    assert_eq!(regions.count, 65_535);
    let last = map.iter().filter(|&&label| label == 65_534).count();
    assert!(last > 10_000 && regions.table[65_533].area < 10, "{last}");
    // With connectivity they are absorbed until they fit.
    let params = Params { connectivity: true, min_region: 0.0, ..params };
    let (map, regions, plan) = segment(&CPU[2], &params, &buffer);
    let roots = oracle::components(plan.frame().geometry, &map);
    let parts = roots.iter().enumerate().filter(|&(i, &r)| i == r).count();
    assert!(regions.count <= 65_535 && parts == regions.count as usize, "{}", regions.count);
}

#[test]
fn bad_quickshift_parameters_are_errors() {
    let info = FrameInfo::new(Geometry::new(20, 10).unwrap(), PixelFormat::Rgb);
    let default = quickshift::Params::default;
    for (bad, name) in [
        (quickshift::Params { sigma: f32::NAN, ..default() }, "sigma must be 0.5 to 20"),
        (quickshift::Params { sigma: 20.1, ..default() }, "sigma must be 0.5 to 20"),
        (quickshift::Params { tau: 0.9, ..default() }, "tau must be 1 to 64"),
        (quickshift::Params { color_scale: 0.0, ..default() }, "color-scale must be 0.01 to 10"),
    ] {
        let error = Plan::new(&quickshift_params(bad), info).unwrap_err().to_string();
        assert!(error.starts_with(name), "{error}");
    }
}

#[test]
fn a_flat_image_is_the_voronoi_map_of_its_seeds() {
    // 48 x 32 at S = 16: seeds at the centers of six cells, colors equal, so each pixel takes the nearest seed; the
    // cells are equal, so that is the cell itself, and a pixel on the line between two goes to the lower index.
    let buffer =
        Buffer::new(FrameInfo::new(Geometry::new(48, 32).unwrap(), PixelFormat::Rgb), Picture::Flat, 100, 0);
    let one_round = slic::Params { iterations: 1, ..Default::default() };
    let (map, regions, _) = segment(&CPU[0], &params(16, 0, one_round, true, 0.25), &buffer);
    assert_eq!(regions.count, 6);
    // After the round a center is the mean of the lattice points 0, 4, 8, 12 (and 16, which ties with the next seed):
    // the first column of clusters spans columns 0 to 16, the second to 32.
    let mut want = oracle_flat(48, 32);
    assert_eq!(map, want);
    want[0] = 1;
    assert_ne!(map, want);
}

/// The flat image's exact map, worked out with fractions instead of the library's fixed point.
fn oracle_flat(w: usize, h: usize) -> Vec<u16> {
    let axis = |side: usize| -> Vec<usize> {
        let cells = side / 16;
        let mut centers: Vec<f64> = (0..cells).map(|i| (16 * i + 8) as f64).collect();
        let nearest = |centers: &[f64], x: usize| {
            let home = (x / 16).min(cells - 1);
            let mut best = (f64::INFINITY, 0);
            for (i, c) in centers.iter().enumerate().take(home + 2).skip(home.saturating_sub(1)) {
                let d = (x as f64 - c).abs();
                if d < best.0 {
                    best = (d, i);
                }
            }
            best.1
        };
        let mut members = vec![Vec::new(); cells];
        (0..side).step_by(4).for_each(|x| members[nearest(&centers, x)].push(x as f64));
        for (c, m) in centers.iter_mut().zip(&members) {
            *c = m.iter().sum::<f64>() / m.len() as f64;
        }
        (0..side).map(|x| nearest(&centers, x)).collect()
    };
    let (columns, rows) = (axis(w), axis(h));
    let labels: Vec<u16> =
        rows.iter().flat_map(|r| columns.iter().map(move |c| (r * (w / 16) + c) as u16)).collect();
    labels
}

#[test]
fn a_checker_of_two_colors_has_its_known_answer() {
    // Tiles of 16 at S = 16, colors far apart: every tile is a superpixel, whatever the rounds.
    let (w, h) = (64u32, 48u32);
    let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb);
    let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
    for y in 0..h as usize {
        for x in 0..w as usize {
            let rgb = if (x / 16 + y / 16) % 2 == 0 { [255, 255, 255] } else { [0, 0, 0] };
            buffer.planes[0][y * buffer.strides[0] + 3 * x..][..3].copy_from_slice(&rgb);
        }
    }
    let want: Vec<u16> = (0..h).flat_map(|y| (0..w).map(move |x| (y / 16 * 4 + x / 16) as u16)).collect();
    for algorithm in algorithms() {
        let (map, regions, _) = segment(&CPU[1], &Params { algorithm, ..Params::default() }, &buffer);
        assert_eq!(regions.count, 12);
        assert_eq!(map, want);
    }
}

#[test]
fn lsc_is_what_the_paper_prints_but_for_near_ties() {
    // Rounding, and the place in the mean that we take as zero, move what is nearly a tie; more rounds spread that.
    for (w, h, size, ratio) in
        [(240u32, 160u32, 16u32, 0.1f32), (193, 127, 9, 0.075), (300, 200, 40, 0.3), (90, 70, 5, 0.1)]
    {
        let info = FrameInfo::new(Geometry::new(w, h).unwrap(), PixelFormat::Rgb);
        for picture in [Picture::Natural, Picture::Gradient, Picture::Noise] {
            let buffer = Buffer::new(info, picture, 3, 0);
            let lsc = lsc::Params { iterations: 2, ratio };
            let algorithm = AlgorithmParams::Lsc(lsc);
            let params =
                Params { superpixel_size: size, connectivity: false, algorithm, ..Params::default() };
            let (map, _, plan) = segment(&CPU[1], &params, &buffer);
            let features = buffer.features(ColorSpace::Lab);
            let printed = oracle::lsc_as_printed(plan.grid(), 2, f64::from(ratio), &features);
            let equal =
                map.iter().zip(oracle::numbered(&printed, &features)).filter(|(a, b)| **a == *b).count();
            let share = equal as f64 / map.len() as f64;
            assert!(share >= 0.985, "{w}x{h} S {size} {picture:?}: {share}");
        }
    }
}

#[test]
fn a_flat_image_leaves_lsc_its_grid() {
    // Colors are equal, so place decides alone, and the center of a cluster is the middle of its members, which are its
    // cell's. Black is where the features of OpenCV's version end in 0/0.
    for color in [0u8, 100, 255] {
        let info = FrameInfo::new(Geometry::new(64, 48).unwrap(), PixelFormat::Rgb);
        let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
        buffer.planes[0].fill(color);
        let params = Params { algorithm: AlgorithmParams::Lsc(lsc::Params::default()), ..Params::default() };
        let (map, regions, plan) = segment(&CPU[0], &params, &buffer);
        check_invariants(&map, &regions, &plan, &buffer);
        assert_eq!(regions.count, 12);
        for (k, region) in regions.table.iter().enumerate() {
            let [x0, y0, x1, y1] = region.bounds.map(usize::from);
            assert_eq!(region.area as usize, (x1 - x0) * (y1 - y0), "region {k} of {color} is no rectangle");
            assert!(x0.abs_diff(k % 4 * 16) <= 2 && y0.abs_diff(k / 4 * 16) <= 2, "region {k} of {color}");
        }
    }
}

#[test]
fn awkward_sizes_keep_every_promise() {
    for (w, h) in [(1, 1), (1, 300), (300, 1), (3, 2), (15, 15), (17, 33), (8191, 3), (2, 1024)] {
        for format in [PixelFormat::Rgb, PixelFormat::Nv12, PixelFormat::I420, PixelFormat::Gray8] {
            let info = FrameInfo::new(Geometry::new(w, h).unwrap(), format);
            let buffer = Buffer::new(info, Picture::Natural, 3, 5);
            for count in [0, 1, 7, u32::MAX] {
                for algorithm in algorithms() {
                    let params = Params { superpixels: count, algorithm, ..Params::default() };
                    let (map, regions, plan) = segment(&CPU[1], &params, &buffer);
                    check_invariants(&map, &regions, &plan, &buffer);
                }
            }
        }
    }
}

#[test]
fn frames_of_8k_work_and_stay_within_16_bits() {
    let info = FrameInfo::new(Geometry::new(7680, 4320).unwrap(), PixelFormat::Nv12);
    let buffer = Buffer::new(info, Picture::Natural, 11, 0);
    let [slic, lsc] = [Algorithm::Slic, Algorithm::Lsc]
        .map(|own| Params { algorithm: AllParams::default().of(own), ..Params::default() });
    let (map, regions, plan) = segment(&CPU[1], &slic, &buffer);
    assert_eq!(plan.raised_from(), Some(16));
    check_invariants(&map, &regions, &plan, &buffer);
    // Stages behind the clusters are the same for LSC: it is enough that no sum overflowed and regions have their size.
    let (map, regions, plan) = segment(&CPU[1], &lsc, &buffer);
    assert!(map.iter().all(|&label| u32::from(label) < regions.count));
    assert!(
        regions.table.iter().all(|r| r.area >= plan.min_region() && r.area < 9 * plan.grid().step().pow(2))
    );
    // Noise without a minimum leaves far more than 65535 components: they are absorbed until they fit.
    let info = FrameInfo::new(Geometry::new(1024, 1024).unwrap(), PixelFormat::Rgb);
    let buffer = Buffer::new(info, Picture::Noise, 5, 0);
    let slic = slic::Params { compactness: 0.1, ..Default::default() };
    let (map, regions, _) = segment(&CPU[1], &params(16, 0, slic, true, 0.0), &buffer);
    assert!(regions.count <= 65_535 && regions.count > 10_000, "{}", regions.count);
    let roots = oracle::components(buffer.info.geometry, &map);
    assert_eq!(roots.iter().enumerate().filter(|&(i, &r)| i == r).count(), regions.count as usize);
}

#[test]
fn enforcement_is_idempotent() {
    let geometry = Geometry::new(97, 61).unwrap();
    let buffer = Buffer::new(FrameInfo::new(geometry, PixelFormat::Rgb), Picture::Natural, 9, 0);
    let (map, _, plan) = segment(&CPU[0], &Params { superpixel_size: 8, ..Params::default() }, &buffer);
    let features = buffer.features(ColorSpace::Lab);
    assert_eq!(oracle::connect(geometry, &map, &features, plan.min_region()), map);
}

#[test]
fn a_wrong_frame_or_plane_is_an_error() {
    let geometry = Geometry::new(20, 10).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgba);
    let frame = |bytes: &[u8], stride| Frame::new(info, &[bytes], &[stride]).unwrap_err().to_string();
    assert!(frame(&[0; 799], 80).starts_with("plane 0 of the frame: needs 800 bytes or labels, got 799;"));
    assert!(
        frame(&[0; 800], 79)
            .starts_with("plane 0 of the frame: rows take 80 bytes or labels, got a stride of 79;")
    );
    assert!(Frame::new(info, &[], &[]).is_err());
    let plane = |labels: &mut [u16], stride| Labels::new(geometry, labels, stride).unwrap_err().to_string();
    assert!(plane(&mut [0; 199], 20).starts_with("label plane: needs 200 bytes or labels, got 199;"));
    assert!(
        plane(&mut [0; 400], 19)
            .starts_with("label plane: rows take 20 bytes or labels, got a stride of 19;")
    );
    assert!(Labels::new(geometry, &mut [0; 400], usize::MAX).is_err());
    assert!(Frame::new(info, &[&[0; 800]], &[usize::MAX]).is_err());
    assert!(Geometry::new(0, 5).is_err() && Geometry::new(5, 16385).is_err());
    for (width, height) in [(0, 4), (4, 0), (16385, 2), (65536, 2)] {
        let text = format!("frames of {width}x{height} are not supported; use 1x1 to 16384x16384");
        assert_eq!(Geometry::new(width, height).unwrap_err().to_string(), text);
    }
    for bad in [f32::NAN, f32::INFINITY, -1.0, 0.0] {
        let slic = slic::Params { compactness: bad, ..Default::default() };
        let error = Plan::new(&params(16, 0, slic, true, 0.25), info).unwrap_err().to_string();
        assert_eq!(error, format!("compactness must be 0.1 to 1000, got {bad}"));
    }
    let error = slic::COMPACTNESS.check(0.05).unwrap_err().to_string();
    assert_eq!(error, "compactness must be 0.1 to 1000, got 0.05");
    let mut engine = Engine::new(CPU[0].clone(), Plan::new(&Params::default(), info).unwrap()).unwrap();
    let other =
        Buffer::new(FrameInfo::new(Geometry::new(21, 10).unwrap(), PixelFormat::Rgba), Picture::Flat, 0, 0);
    let mut map = vec![0; 210];
    let mut labels = Labels::new(geometry, &mut map, 20).unwrap();
    let error = engine.segment(&other.frame(), &mut labels, Outputs::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan is for frames of 20x10 Rgba, got one of 21x10 Rgba; make a plan and an engine for it"
    );
    let fits = Buffer::new(info, Picture::Flat, 0, 0);
    let mut labels = Labels::new(other.info.geometry, &mut map, 21).unwrap();
    let error = engine.segment(&fits.frame(), &mut labels, Outputs::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the plan is for frames of 20x10, got a label plane of 21x10; pass one of the frame's size"
    );
    // Fields that RGB does not use make no difference.
    let unused = FrameInfo { matrix: YuvMatrix::Bt709, full_range: false, ..info };
    let mut labels = Labels::new(geometry, &mut map, 20).unwrap();
    engine
        .segment(&Buffer::new(unused, Picture::Flat, 0, 0).frame(), &mut labels, Outputs::default())
        .unwrap();
    let gray = FrameInfo::new(geometry, PixelFormat::Gray8);
    let mut engine = Engine::new(CPU[0].clone(), Plan::new(&Params::default(), gray).unwrap()).unwrap();
    let studio = Buffer::new(FrameInfo { full_range: false, ..gray }, Picture::Flat, 0, 0);
    let error = engine.segment(&studio.frame(), &mut labels, Outputs::default()).unwrap_err().to_string();
    assert!(
        error.contains("20x10 Gray8 (Bt601, full range), got one of 20x10 Gray8 (Bt601, studio range)"),
        "{error}"
    );
    assert!(Grid::with_step(geometry, 16).cells() == 1);
}
