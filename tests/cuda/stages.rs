// SPDX-License-Identifier: MPL-2.0
//! The CUDA backend against the CPU backend stage by stage: what differs is named by the first stage that gives something else.
//!
//! A stage is seen through plans that end after it: without connectivity for clusters, round by round with one iteration more each,
//! without a smallest region for components, with one merging pass more each. Where something lasts, the motion of the picture is seen
//! where every pixel is a region, that of regions without connectivity.
//!
//! Without a device the comparison prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure. That the right stage is
//! named is tested without one.

use crate::device;
use std::collections::BTreeMap;

use crate::pictures::{Buffer, Picture, clip};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::Regions;

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

const DRAWINGS: [(&str, Drawing); 3] = [
    (
        "overlay, boundaries",
        Drawing { fill: Fill::None, boundaries: Some(Boundaries { color: 0x8040_ff20, width: 2 }) },
    ),
    ("overlay, mean colors", Drawing { fill: Fill::MeanColor, boundaries: None }),
    (
        "overlay, labels",
        Drawing { fill: Fill::Labels, boundaries: Some(Boundaries { color: 0xffff_ff00, width: 1 }) },
    ),
];

/// Results of a plan for a frame.
struct Outcome {
    features: Vec<u32>,
    map: Vec<u16>,
    regions: Regions,
    /// One for each of [`DRAWINGS`].
    drawn: Vec<Vec<Vec<u8>>>,
}

/// A backend with a plan: frame after frame.
type Segmenter<'a> = Box<dyn FnMut(&Buffer) -> Outcome + 'a>;
/// A backend: from parameters to that.
type Backend<'a> = &'a dyn Fn(&Params, FrameInfo) -> Segmenter<'a>;

/// The part of two outcomes that is compared.
#[derive(Clone, Copy)]
enum Part {
    Features,
    Labels,
    /// The motion of regions whose identity both have.
    Motion,
    /// Identities, ages and motion.
    Ways,
    Table,
    Neighbors,
    Drawing(usize),
}

impl Part {
    /// Says what differs.
    fn compare(self, want: &Outcome, got: &Outcome) -> Result<(), String> {
        fn first<T: PartialEq + std::fmt::Debug>(what: &str, want: &[T], got: &[T]) -> Result<(), String> {
            if want.len() != got.len() {
                return Err(format!("{} {what} instead of {}", got.len(), want.len()));
            }
            match (0..want.len()).filter(|&i| want[i] != got[i]).collect::<Vec<_>>()[..] {
                [] => Ok(()),
                [i, ref more @ ..] => Err(format!(
                    "{} {what} differ, the first, {i}: {:?} instead of {:?}",
                    more.len() + 1,
                    got[i],
                    want[i]
                )),
            }
        }
        let ids = |outcome: &Outcome| outcome.regions.table.iter().map(|r| r.track_id).collect::<Vec<_>>();
        let of_ids = |outcome: &Outcome| -> BTreeMap<u32, [f32; 2]> {
            ids(outcome).into_iter().zip(outcome.regions.motion.iter().map(|m| m.velocity)).collect()
        };
        match self {
            Self::Features => first("features", &want.features, &got.features),
            Self::Labels => first("labels", &want.map, &got.map),
            Self::Motion => {
                let (want, got) = (of_ids(want), of_ids(got));
                let both =
                    |of: &BTreeMap<u32, [f32; 2]>, other: &BTreeMap<u32, [f32; 2]>| -> Vec<(u32, [f32; 2])> {
                        of.iter().filter(|(id, _)| other.contains_key(id)).map(|(&id, &v)| (id, v)).collect()
                    };
                first("motions of regions", &both(&want, &got), &both(&got, &want))
            }
            Self::Ways => {
                first("track ids", &ids(want), &ids(got))?;
                first("ages and motions", &want.regions.motion, &got.regions.motion)
            }
            Self::Table => first("regions", &want.regions.table, &got.regions.table),
            Self::Neighbors => first("neighbors", &want.regions.neighbors, &got.regions.neighbors),
            Self::Drawing(i) => want.drawn[i]
                .iter()
                .zip(&got.drawn[i])
                .try_for_each(|(want, got)| first("bytes of a plane", want, got)),
        }
    }
}

/// A stage, parameters that show it, and where.
struct Stage {
    name: String,
    params: Params,
    part: Part,
}

/// The stages of some parameters in the order of a frame.
fn stages(params: &Params) -> Vec<Stage> {
    let mut all = Vec::new();
    let mut add = |name: &str, params: &Params, part| {
        all.push(Stage { name: name.into(), params: params.clone(), part })
    };
    let nick = params.algorithm.nick();
    let unrefined = Params { refine: refine::Params::default(), ..params.clone() };
    let unmerged = Params {
        merge: merge::Params::default(),
        hierarchy: hierarchy::Params::default(),
        ..unrefined.clone()
    };
    let pieces = Params { connectivity: false, ..unmerged.clone() };
    add("ingest", params, Part::Features);
    let rounds = |iterations| {
        let algorithm = match &params.algorithm {
            AlgorithmParams::Slic(own) => AlgorithmParams::Slic(slic::Params { iterations, ..own.clone() }),
            AlgorithmParams::Lsc(own) => AlgorithmParams::Lsc(lsc::Params { iterations, ..own.clone() }),
            other => other.clone(),
        };
        Params { algorithm, ..pieces.clone() }
    };
    let iterations = match &params.algorithm {
        AlgorithmParams::Slic(own) => own.iterations,
        AlgorithmParams::Lsc(own) => own.iterations,
        _ => 0,
    };
    if params.temporal {
        // Every pixel is a region, which moves with the picture.
        let pixels = Params {
            superpixels: u32::MAX,
            min_region: 0.0,
            algorithm: AlgorithmParams::Slic(slic::Params::default()),
            ..pieces.clone()
        };
        add("temporal/motion", &pixels, Part::Motion);
        if iterations > 0 {
            add("temporal/track", &pieces, Part::Motion);
        }
    } else {
        for round in 1..iterations {
            add(&format!("{nick}, round {round}"), &rounds(round), Part::Labels);
        }
    }
    add(&format!("{nick}, clusters"), &pieces, Part::Labels);
    if params.connectivity {
        add("connectivity, components", &Params { min_region: 0.0, ..unmerged.clone() }, Part::Labels);
        add("connectivity, absorption", &unmerged, Part::Labels);
    }
    if params.temporal {
        add("temporal/identify", &unmerged, Part::Ways);
    }
    if params.merge.ratio > 0.0 {
        for passes in 1..=params.merge.passes {
            let merge = merge::Params { passes, ..params.merge.clone() };
            add(&format!("merge, pass {passes}"), &Params { merge, ..unrefined.clone() }, Part::Labels);
        }
        if params.temporal {
            add("merge, names", &unrefined, Part::Ways);
        }
    }
    if params.hierarchy.regions > 0 {
        add("hierarchy", &unrefined, Part::Labels);
        if params.temporal {
            add("hierarchy, names", &unrefined, Part::Ways);
        }
    }
    for sweeps in 1..=params.refine.sweeps {
        let refine = refine::Params { sweeps, ..params.refine.clone() };
        add(&format!("refine, sweep {sweeps}"), &Params { refine, ..params.clone() }, Part::Labels);
    }
    add("statistics, regions", params, Part::Table);
    add("statistics, neighbors", params, Part::Neighbors);
    for (i, (name, _)) in DRAWINGS.iter().enumerate() {
        add(name, params, Part::Drawing(i));
    }
    all
}

/// The first frame and stage at which `other` gives something else than `reference`, and what.
fn first_difference(
    reference: Backend,
    other: Backend,
    params: &Params,
    clip: &[Buffer],
) -> Result<(), String> {
    let stages = stages(params);
    let mut plans: Vec<&Params> = Vec::new();
    for stage in &stages {
        if !plans.contains(&&stage.params) {
            plans.push(&stage.params);
        }
    }
    let info = clip[0].info;
    let mut both: Vec<_> =
        plans.iter().map(|params| (reference(params, info), other(params, info))).collect();
    for (i, buffer) in clip.iter().enumerate() {
        let outcomes: Vec<_> = both.iter_mut().map(|(want, got)| (want(buffer), got(buffer))).collect();
        for Stage { name, params, part } in &stages {
            let plan = plans.iter().position(|plan| *plan == params).expect("it was listed");
            let (want, got) = &outcomes[plan];
            part.compare(want, got).map_err(|what| format!("frame {i}, stage {name}: {what}"))?;
        }
    }
    Ok(())
}

fn on_cpu(params: &Params, info: FrameInfo) -> Segmenter<'static> {
    let plan = Plan::new(params, info).unwrap();
    let mut engine = Engine::new(Cpu::new(2).unwrap(), plan.clone()).unwrap();
    Box::new(move |buffer| {
        let g = info.geometry;
        let mut map = vec![0; g.pixels()];
        let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let regions = engine.segment(&buffer.frame(), &mut labels, EVERYTHING).unwrap().clone();
        let mut draw = |(_, drawing): &(&str, Drawing)| {
            let mut planes = buffer.planes.clone();
            let slices = planes.iter_mut().map(Vec::as_mut_slice);
            engine
                .draw(&mut FrameMut::new(info, slices, &buffer.strides).unwrap(), &labels, drawing)
                .unwrap();
            planes
        };
        let drawn = DRAWINGS.iter().map(&mut draw).collect();
        Outcome { features: buffer.features(plan.color_space()), map, regions, drawn }
    })
}

#[cfg(feature = "cuda")]
fn on_cuda(cuda: &gstsuperpixel::cuda::Cuda, params: &Params, info: FrameInfo) -> Segmenter<'static> {
    let mut engine = Engine::new(cuda.clone(), Plan::new(params, info).unwrap()).unwrap();
    let mut staging = gstsuperpixel::cuda::Staging::new(cuda, info).unwrap();
    let cuda = cuda.clone();
    Box::new(move |buffer| {
        let g = info.geometry;
        let frame = staging.upload(&buffer.frame()).unwrap();
        let mut map = vec![0xfffe; g.pixels()];
        let labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let regions = engine.segment(&frame, &mut Some(labels), EVERYTHING).unwrap().clone();
        let features = engine.buffers().read_features().unwrap();
        let mut draw = |(_, drawing): &(&str, Drawing)| {
            let mut frame = staging.upload(&buffer.frame()).unwrap();
            engine.draw(&mut frame, &None, drawing).unwrap();
            let mut planes = buffer.planes.clone();
            let slices = planes.iter_mut().map(Vec::as_mut_slice);
            staging.download(&mut FrameMut::new(info, slices, &buffer.strides).unwrap()).unwrap();
            cuda.synchronize().unwrap();
            planes
        };
        let drawn = DRAWINGS.iter().map(&mut draw).collect();
        Outcome { features, map, regions, drawn }
    })
}

fn slic(adaptive_compactness: bool, color_space: ColorSpace) -> AlgorithmParams {
    AlgorithmParams::Slic(slic::Params {
        adaptive_compactness,
        color_space,
        iterations: 4,
        ..Default::default()
    })
}

/// Every algorithm that both backends have, with merging, with refining, with a number of regions and without connectivity, and some of that together.
fn settings() -> Vec<Params> {
    let merge = merge::Params { ratio: 2.0, passes: 2, ..Default::default() };
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    let with = |superpixel_size, algorithm| Params { superpixel_size, algorithm, ..Params::default() };
    let merged = |params: Params| Params { merge: merge.clone(), ..params };
    let refine = refine::Params { sweeps: 2, ..Default::default() };
    let refined = |params: Params| Params { refine: refine.clone(), ..params };
    vec![
        refined(merged(with(9, slic(false, ColorSpace::Lab)))),
        refined(with(16, slic(true, ColorSpace::Rgb))),
        Params { connectivity: false, ..merged(with(7, slic(false, ColorSpace::XyzGslicr))) },
        merged(with(12, AlgorithmParams::Lsc(lsc::Params::default()))),
        Params { connectivity: false, ..refined(with(10, AlgorithmParams::Lsc(lsc::Params::default()))) },
        with(16, AlgorithmParams::QuickShift(small)),
        // The superpixels are as many as without: their number does not follow from that of regions.
        Params {
            superpixels: 90,
            hierarchy: hierarchy::Params { regions: 12, ..Default::default() },
            ..with(16, slic(false, ColorSpace::Lab))
        },
    ]
}

fn still(picture: Picture, format: PixelFormat, w: u32, h: u32) -> Buffer {
    Buffer::new(FrameInfo::new(Geometry::new(w, h).unwrap(), format), picture, 3, 5)
}

#[cfg(feature = "cuda")]
#[test]
fn every_stage_matches_cpu() {
    let Some(cuda) = device::device("every_stage_matches_cpu") else { return };
    let cuda = |params: &Params, info| on_cuda(&cuda, params, info);
    for params in settings() {
        for (picture, format, w, h) in [
            (Picture::Natural, PixelFormat::Rgba, 101, 67),
            (Picture::Natural, PixelFormat::Nv12, 64, 49),
            (Picture::Natural, PixelFormat::P010Le, 33, 70),
            (Picture::Natural, PixelFormat::Gray16Le, 45, 52),
            (Picture::Natural, PixelFormat::Bgr48Le, 58, 41),
            // Regions of equal color.
            (Picture::Halves, PixelFormat::Rgb, 64, 40),
        ] {
            first_difference(&on_cpu, &cuda, &params, &[still(picture, format, w, h)])
                .unwrap_or_else(|what| panic!("{what}\n{picture:?} {format:?} {w}x{h} {params:?}"));
        }
    }
}

#[cfg(feature = "cuda")]
#[test]
fn every_stage_of_a_clip_matches_cpu() {
    let Some(cuda) = device::device("every_stage_of_a_clip_matches_cpu") else { return };
    let cuda = |params: &Params, info| on_cuda(&cuda, params, info);
    for params in settings() {
        let params = Params { temporal: true, ..params };
        // Thumbnails with squares of 2 px, between which the picture moves.
        let clip = clip(Geometry::new(131, 38).unwrap(), PixelFormat::Rgb, 5, 4, [5, 2], Some(2));
        first_difference(&on_cpu, &cuda, &params, &clip).unwrap_or_else(|what| panic!("{what}\n{params:?}"));
    }
}

/// A backend that is wrong in one stage is found there: the CPU with other parameters for what this stage does, or with another answer.
#[test]
fn the_first_stage_that_differs_is_named() {
    type Wrong = fn(&Params, FrameInfo) -> Segmenter<'static>;
    fn changed(params: &Params, info: FrameInfo, change: impl Fn(&mut Params)) -> Segmenter<'static> {
        let mut params = params.clone();
        change(&mut params);
        on_cpu(&params, info)
    }
    /// Frames from the second one on are answered otherwise.
    fn answered(
        params: &Params,
        info: FrameInfo,
        change: impl Fn(&mut Outcome, usize) + 'static,
    ) -> Segmenter<'static> {
        let mut segment = on_cpu(params, info);
        let mut frame = 0;
        Box::new(move |buffer| {
            let mut outcome = segment(buffer);
            change(&mut outcome, frame);
            frame += 1;
            outcome
        })
    }
    fn rounds(params: &Params) -> u32 {
        match &params.algorithm {
            AlgorithmParams::Slic(own) => own.iterations,
            _ => unreachable!("SLIC alone"),
        }
    }
    let of_stills: [(&str, Wrong); 10] = [
        ("frame 0, stage ingest", |params, info| answered(params, info, |all, _| all.features[7] ^= 1)),
        ("frame 0, stage slic, round 1", |params, info| {
            changed(params, info, |params| {
                let AlgorithmParams::Slic(own) = &mut params.algorithm else { unreachable!("SLIC alone") };
                own.compactness = 14.0;
            })
        }),
        ("frame 0, stage slic, round 3", |params, info| {
            changed(params, info, |params| {
                let AlgorithmParams::Slic(own) = &mut params.algorithm else { unreachable!("SLIC alone") };
                own.iterations = own.iterations.min(2);
            })
        }),
        ("frame 0, stage connectivity, components", |params, info| {
            changed(params, info, |params| params.min_region = params.min_region.max(0.05))
        }),
        ("frame 0, stage connectivity, absorption", |params, info| {
            changed(params, info, |params| params.min_region *= 2.0)
        }),
        ("frame 0, stage merge, pass 2", |params, info| {
            changed(params, info, |params| params.merge.passes = 1)
        }),
        ("frame 0, stage refine, sweep 2", |params, info| {
            changed(params, info, |params| params.refine.sweeps = params.refine.sweeps.min(1))
        }),
        ("frame 0, stage statistics, regions", |params, info| {
            let is_whole = params.merge.ratio > 0.0 && rounds(params) == 4;
            answered(params, info, move |all, _| all.regions.table[3].area += u32::from(is_whole))
        }),
        ("frame 0, stage statistics, neighbors", |params, info| {
            answered(params, info, |all, _| all.regions.neighbors[3].length += 1)
        }),
        ("frame 0, stage overlay, labels", |params, info| {
            answered(params, info, |all, _| all.drawn[2][0][9] ^= 1)
        }),
    ];
    let params = &settings()[0];
    for (stage, wrong) in of_stills {
        let what =
            first_difference(&on_cpu, &wrong, params, &[still(Picture::Natural, PixelFormat::Rgba, 101, 67)])
                .unwrap_err();
        assert!(what.starts_with(stage), "{stage}: {what}");
    }
    let lasting: [(&str, Wrong); 5] = [
        ("frame 2, stage temporal/motion", |params, info| {
            let in_pixels = params.superpixels == u32::MAX;
            answered(params, info, move |all, frame| {
                let off = f32::from(u8::from(in_pixels && frame == 2));
                all.regions.motion.iter_mut().for_each(|m| m.velocity[0] += off);
            })
        }),
        ("frame 1, stage temporal/track", |params, info| {
            let in_pixels = params.superpixels == u32::MAX;
            answered(params, info, move |all, frame| {
                let off = f32::from(u8::from(!in_pixels && frame == 1));
                all.regions.motion[5].velocity[1] += off;
            })
        }),
        ("frame 1, stage slic, clusters", |params, info| {
            changed(params, info, |params| params.temporal_inertia = 0.25)
        }),
        ("frame 2, stage temporal/identify", |params, info| {
            let connected = params.connectivity;
            answered(params, info, move |all, frame| {
                all.regions.motion[4].age += u32::from(connected && frame == 2);
            })
        }),
        ("frame 1, stage merge, names", |params, info| {
            let merged = params.merge.ratio > 0.0;
            answered(params, info, move |all, frame| {
                all.regions.table[1].track_id += 1000 * u32::from(merged && frame == 1);
            })
        }),
    ];
    let params = &Params { temporal: true, ..params.clone() };
    let clip = clip(Geometry::new(83, 58).unwrap(), PixelFormat::Rgb, 5, 3, [3, -2], None);
    for (stage, wrong) in lasting {
        let what = first_difference(&on_cpu, &wrong, params, &clip).unwrap_err();
        assert!(what.starts_with(stage), "{stage}: {what}");
    }
    first_difference(&on_cpu, &on_cpu, params, &clip).unwrap();
}
