// SPDX-License-Identifier: MPL-2.0
//! Temporal mode on the CPU against its restatement in `tests/oracle/temporal.rs`: label maps, identities, ages and motion of
//! every frame, by equality.

use crate::oracle::temporal::{Seen, Stream};
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, Shape, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use proptest::prelude::*;

const TABLE: Outputs = Outputs { table: true, neighbors: false, mean_color: false, linear_light: false };

/// Segments a clip with the library and by the specification, with a reset before frame `reset`. Says what differs first.
fn differ(params: &Params, clip: &[Buffer], reset: Option<usize>) -> Result<Seen, String> {
    let info = clip[0].info;
    let plan = Plan::new(params, info).unwrap();
    let mut engine = Engine::new(Cpu::new(2).unwrap(), plan.clone()).unwrap();
    let mut stream = Stream::new(params, &plan);
    for (i, buffer) in clip.iter().enumerate() {
        if reset == Some(i) {
            engine.reset();
            stream.reset();
        }
        let mut map = vec![0xfffe; info.geometry.pixels()];
        let mut labels = Labels::new(info.geometry, &mut map, info.geometry.width() as usize).unwrap();
        let regions = engine.segment(&buffer.frame(), &mut labels, TABLE).unwrap().clone();
        let want = stream.frame(&buffer.features(plan.color_space()));
        let of = |what: &str| {
            format!("frame {i} of {}x{}: {what} differ", info.geometry.width(), info.geometry.height())
        };
        if map != want.labels {
            let count = map.iter().zip(&want.labels).filter(|(a, b)| a != b).count();
            return Err(of(&format!("{count} labels")));
        }
        let equal = |what: &str, equal: bool| if equal { Ok(()) } else { Err(of(what)) };
        equal("track ids", regions.table.iter().map(|r| r.track_id).eq(want.ids.iter().copied()))?;
        equal("ages", regions.motion.iter().map(|m| m.age).eq(want.ages.iter().copied()))?;
        let motions = want.motions.iter().map(|m| m.map(|v| v as f32 / 16.0));
        equal("motions", regions.motion.iter().map(|m| m.velocity).eq(motions))?;
        equal("next identities", engine.next_id().unwrap() == stream.next_id)?;
    }
    Ok(stream.seen)
}

fn slic(compactness: f32, adaptive_compactness: bool) -> AlgorithmParams {
    AlgorithmParams::Slic(slic::Params { compactness, adaptive_compactness, ..Default::default() })
}

fn lsc(ratio: f32) -> AlgorithmParams {
    AlgorithmParams::Lsc(lsc::Params { ratio, ..Default::default() })
}

fn params(superpixel_size: u32, algorithm: AlgorithmParams) -> Params {
    Params { superpixel_size, temporal: true, algorithm, ..Params::default() }
}

/// A scene under which a disk moves another way: regions come, go, and do not move as the picture does.
fn layers(geometry: Geometry, frames: usize, scene: [i32; 2], disk: [i32; 2]) -> Vec<Buffer> {
    let mut frames = clip(geometry, PixelFormat::Rgb, 3, frames, scene, None);
    let (w, h) = (geometry.width() as i32, geometry.height() as i32);
    for (i, buffer) in frames.iter_mut().enumerate() {
        let center = [w / 3 + disk[0] * i as i32, h / 2 + disk[1] * i as i32];
        for y in 0..h {
            for x in 0..w {
                let (u, v) = (x - center[0], y - center[1]);
                if u * u + v * v < (h / 3).pow(2) {
                    let [r, g, b] =
                        Picture::Natural.pixel((u + 900) as usize, (v + 700) as usize, geometry, 11);
                    buffer.planes[0][3 * (y * w + x) as usize..][..3].copy_from_slice(&[b, r, 255 - g]);
                }
            }
        }
    }
    frames
}

fn size(w: u32, h: u32) -> Geometry {
    Geometry::new(w, h).unwrap()
}

fn sum(all: &[Seen]) -> Seen {
    all.iter().fold(Seen::default(), |a, b| Seen {
        cuts: a.cuts + b.cuts,
        tracked: a.tracked + b.tracked,
        drifts: a.drifts + b.drifts,
        displaced: a.displaced + b.displaced,
        ended: a.ended + b.ended,
        born: a.born + b.born,
        adopted: a.adopted + b.adopted,
        planted: a.planted + b.planted,
        found: a.found + b.found,
        parts: a.parts + b.parts,
        kept: a.kept + b.kept,
    })
}

/// Algorithms whose clusters go on. The specification is followed into every corner that it has: the restatement counts.
#[test]
fn moving_pictures_and_cuts_equal_the_specification() {
    for (name, algorithm) in [
        ("slic", slic(10.0, false)),
        ("coarse slic", slic(60.0, false)),
        ("slico", slic(10.0, true)),
        ("lsc", lsc(0.1)),
    ] {
        let mut seen = Vec::new();
        for (size_of, clip, reset) in [
            (8, clip(size(131, 97), PixelFormat::Rgb, 5, 7, [4, -3], Some(4)), None),
            (16, clip(size(150, 101), PixelFormat::Rgb, 7, 6, [-9, 2], None), Some(4)),
            (5, layers(size(97, 71), 7, [1, 0], [-3, 2]), None),
            (12, layers(size(144, 96), 7, [0, 0], [7, -1]), None),
        ] {
            let params = params(size_of, algorithm.clone());
            seen.push(
                differ(&params, &clip, reset).unwrap_or_else(|what| panic!("{name}, S {size_of}: {what}")),
            );
        }
        let seen = sum(&seen);
        let clusters = [seen.cuts, seen.tracked, seen.drifts, seen.displaced, seen.ended, seen.born];
        let regions = [seen.adopted, seen.planted, seen.parts, seen.kept];
        let all = [&clusters[..], &regions].concat();
        assert!(all.iter().all(|&n| n > 0), "{name}: the clips do not reach everything: {seen:?}");
    }
}

#[test]
fn still_pictures_equal_the_specification() {
    for picture in PICTURES {
        for algorithm in [slic(10.0, false), slic(20.0, true), lsc(0.075)] {
            let info = FrameInfo::new(size(75, 58), PixelFormat::Rgb);
            let still: Vec<Buffer> = (0..4).map(|_| Buffer::new(info, picture, 9, 0)).collect();
            let what = format!("{picture:?} {algorithm:?}");
            differ(&params(9, algorithm), &still, None).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
}

/// Beyond 864 px a side what is flat moves more easily.
#[test]
fn long_frames_equal_the_specification() {
    for (w, h, motion) in [(1300, 40, [23, 0]), (40, 2000, [-1, 37])] {
        let clip = clip(size(w, h), PixelFormat::Rgb, 7, 4, motion, None);
        let seen = differ(&params(12, slic(10.0, false)), &clip, None)
            .unwrap_or_else(|what| panic!("{w}x{h}: {what}"));
        assert!(seen.tracked > 0 && seen.cuts == 0, "{w}x{h}: {seen:?}");
    }
}

/// Frames of few cells, few samples, no thumbnail, and of a cell for each pixel.
#[test]
fn small_sizes_equal_the_specification() {
    for (w, h) in [(1, 1), (1, 67), (71, 1), (3, 2), (7, 33), (16, 16), (33, 9)] {
        for (superpixel_size, superpixels) in [(4, 0), (16, 0), (16, u32::MAX)] {
            for algorithm in [slic(10.0, false), slic(10.0, true), lsc(0.1)] {
                let params = Params { superpixels, ..params(superpixel_size, algorithm) };
                let clip = clip(size(w, h), PixelFormat::Rgb, 4, 5, [1, 1], Some(3));
                differ(&params, &clip, None).unwrap_or_else(|what| panic!("{what}: {params:?}"));
            }
        }
    }
}

/// Algorithms of whose frames only motion and identities go on.
#[test]
fn identities_without_clusters_equal_the_specification() {
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    for algorithm in [AlgorithmParams::QuickShift(small), AlgorithmParams::Snic(snic::Params::default())] {
        let name = algorithm.nick();
        let mut seen = Vec::new();
        for (superpixel_size, clip) in [
            (8, clip(size(61, 45), PixelFormat::Rgb, 5, 6, [2, -1], Some(4))),
            (5, layers(size(64, 48), 5, [1, 1], [-3, 0])),
            (6, clip(size(1, 40), PixelFormat::Rgb, 5, 3, [0, 1], None)),
        ] {
            for ratio in [0.0, 2.0] {
                let merge = merge::Params { ratio, ..Default::default() };
                let params = Params { merge, ..params(superpixel_size, algorithm.clone()) };
                seen.push(
                    differ(&params, &clip, None)
                        .unwrap_or_else(|what| panic!("{name}, merge {ratio}: {what}")),
                );
            }
        }
        let seen = sum(&seen);
        assert!(seen.cuts > 0 && seen.adopted > 20, "{name}: {seen:?}");
    }
}

/// A cut is where no shift makes the thumbnails alike: second frames that fade from the first into another picture, and flat ones that
/// are brighter.
#[test]
fn cuts_are_where_the_specification_has_them() {
    let geometry = size(56, 48);
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let flat = |code: u8| {
        let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
        buffer.planes[0].fill(code);
        buffer
    };
    for algorithm in [slic(10.0, false), lsc(0.1), AlgorithmParams::Snic(snic::Params::default())] {
        let name = algorithm.nick();
        let params = params(8, algorithm);
        let cuts = |clip: &[Buffer], what: &str| {
            differ(&params, clip, None).unwrap_or_else(|error| panic!("{name}, {what}: {error}")).cuts
        };
        let [first, other] =
            [3, 6].map(|seed| clip(geometry, PixelFormat::Rgb, seed, 1, [0, 0], None).remove(0));
        let mut found = Vec::new();
        // Under strong grain residuals are high before the cut, too, and thumbnails count for more.
        for grain in [0, 40, 60] {
            let faded = |part: i32, seed: u64| {
                let mut buffer = Buffer::new(info, Picture::Flat, 0, 0);
                for (i, v) in buffer.planes[0].iter_mut().enumerate() {
                    let [from, to] = [&first, &other].map(|frame| i32::from(frame.planes[0][i]));
                    let noise = (hash(seed ^ i as u64) % (2 * grain as u64 + 1)) as i32 - grain;
                    *v = (from + (to - from) * part / 40 + noise).clamp(0, 255) as u8;
                }
                buffer
            };
            for part in (0..=40).step_by(2) {
                let what = format!("grain {grain}, {part} of 40 parts of another picture");
                found.push(cuts(&[faded(0, 1), faded(part, 2 << 32)], &what));
            }
        }
        assert!(found.contains(&0) && found.contains(&1), "{name}: {found:?}");
        for brighter in 0..8 {
            cuts(&[flat(100), flat(100 + brighter)], &format!("brighter by {brighter}"));
        }
    }
}

/// A clip whose frames have a mask that moves, and every fourth another; some have none.
fn masked(clip: Vec<Buffer>, shape: Shape, seed: u64, motion: [i32; 2]) -> Vec<Buffer> {
    let mask = |(i, buffer): (usize, Buffer)| match i % 5 {
        2 => buffer,
        4 => buffer.with_mask(SHAPES[seed as usize % SHAPES.len()], seed, [0, 0]),
        _ => buffer.with_mask(shape, seed, motion.map(|v| v * i as i32)),
    };
    clip.into_iter().enumerate().map(mask).collect()
}

/// Masks that move, grow, vanish and come again.
#[test]
fn moving_masks_equal_the_specification() {
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    for algorithm in [
        slic(10.0, false),
        slic(10.0, true),
        lsc(0.1),
        AlgorithmParams::Snic(snic::Params::default()),
        AlgorithmParams::QuickShift(small),
    ] {
        for (i, shape) in SHAPES.into_iter().enumerate() {
            // Half of them merged.
            let ratio = [0.0, 2.0][i % 2];
            let merge = merge::Params { ratio, ..Default::default() };
            let params = Params { merge, masked: true, ..params(7, algorithm.clone()) };
            let scene = clip(size(71, 50), PixelFormat::Rgb, 5, 7, [2, -1], Some(6));
            let scene = masked(scene, shape, i as u64, [3, -2]);
            let layers = masked(layers(size(62, 49), 4, [0, 0], [3, 1]), shape, 2, [0, 0]);
            for (clip, reset) in [(scene, Some(5)), (layers, None)] {
                differ(&params, &clip, reset)
                    .unwrap_or_else(|what| panic!("{shape:?}, merge {ratio}, {algorithm:?}: {what}"));
            }
        }
    }
}

fn any_params() -> impl Strategy<Value = Params> {
    let algorithm = (0usize..5, prop_oneof![3 => 1.0f32..22.0, 1 => 22.0f32..200.0], 0usize..4, 0.01f32..0.5)
        .prop_map(|(kind, compactness, space, ratio)| {
            let color_space = ColorSpace::ALL[space];
            let of_slic = |adaptive_compactness| {
                let iterations = 1 + space as u32;
                AlgorithmParams::Slic(slic::Params {
                    iterations,
                    compactness,
                    color_space,
                    adaptive_compactness,
                })
            };
            match kind {
                0 => AlgorithmParams::Snic(snic::Params { compactness, color_space }),
                1 => lsc(ratio),
                2 => of_slic(true),
                _ => of_slic(false),
            }
        });
    let merge = prop_oneof![2 => Just(0.0f32), 1 => 1.0f32..3.0];
    (4u32..24, algorithm, prop::bool::weighted(0.8), 0.0f32..0.9, 0usize..3, merge).prop_map(
        |(superpixel_size, algorithm, connectivity, temporal_inertia, min, ratio)| Params {
            connectivity,
            temporal_inertia,
            min_region: [0.25, 0.0, 1.0][min],
            merge: merge::Params { ratio, ..Default::default() },
            ..params(superpixel_size, algorithm)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_clip_equals_the_specification(
        params in any_params(), w in 1u32..120, h in 1u32..90, seed in any::<u64>(), dx in -9i32..10, dy in -9i32..10,
        kind in 0usize..3, shape in prop_oneof![Just(None), (0usize..SHAPES.len()).prop_map(Some)]
    ) {
        let clip = match kind {
            0 => layers(size(w, h), 5, [dx / 3, dy / 3], [dy, dx]),
            1 => clip(size(w, h), PixelFormat::Rgb, seed, 5, [dx, dy], Some(3)),
            _ => clip(size(w, h), PixelFormat::Rgb, seed, 5, [dx, dy], None),
        };
        let (clip, params) = match shape {
            Some(shape) => (masked(clip, SHAPES[shape], seed, [dy, dx]), Params { masked: true, ..params }),
            None => (clip, params),
        };
        if let Err(what) = differ(&params, &clip, None) {
            prop_assert!(false, "{what}");
        }
    }
}
