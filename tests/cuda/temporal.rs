// SPDX-License-Identifier: MPL-2.0
//! `temporal=true` on the CUDA backend against the CPU backend: equality of every frame of clips that pan, stand still, cut
//! and are reset.
//!
//! Without a device each test prints that it was skipped; `SUPERPIXEL_REQUIRE_CUDA=1` makes that a failure.
//! `SUPERPIXEL_SHORT=1` takes the small cases only. `SUPERPIXEL_CLIPS=FOLDER` adds every folder of pictures in it as a clip.

use std::collections::BTreeSet;

use crate::clips;
use crate::device::{device, short};
use crate::pictures::{Buffer, PICTURES, clip, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Cuda, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};

const OUTPUTS: Outputs = Outputs { table: true, neighbors: false, mean_color: false, linear_light: false };
const LABELS: Drawing = Drawing { fill: Fill::Labels, boundaries: None };

/// Engines of both backends for one clip, compared frame by frame.
struct Pair {
    cpu: Engine<Cpu>,
    cuda: Engine<Cuda>,
    staging: Staging,
    what: String,
    frame: usize,
}

impl Pair {
    fn new(cuda: &Cuda, params: &Params, info: FrameInfo, what: &str) -> Self {
        let plan = Plan::new(params, info).unwrap();
        Self {
            cpu: Engine::new(Cpu::new(0).unwrap(), plan.clone()).unwrap(),
            cuda: Engine::new(cuda.clone(), plan).unwrap(),
            staging: Staging::new(cuda, info).unwrap(),
            what: format!("{what} {}x{} {params:?}", info.geometry.width(), info.geometry.height()),
            frame: 0,
        }
    }

    fn reset(&mut self) {
        self.cpu.reset();
        self.cuda.reset();
    }

    fn change(&mut self, params: &Params) {
        let plan = Plan::new(params, self.cpu.plan().frame()).unwrap();
        assert!(self.cpu.change(&plan).unwrap() && self.cuda.change(&plan).unwrap(), "{}", self.what);
        self.what += &format!("; then {params:?}");
    }

    /// Compares a frame; returns its identities.
    fn compare(&mut self, buffer: &Buffer) -> Vec<u32> {
        let g = buffer.info.geometry;
        let what = format!("frame {} of {}", self.frame, self.what);
        self.frame += 1;
        let mut want = vec![0; g.pixels()];
        let mut labels = Labels::new(g, &mut want, g.width() as usize).unwrap();
        let want_regions = self.cpu.segment(&buffer.frame(), &mut labels, OUTPUTS).unwrap().clone();
        let mut frame = self.staging.upload(&buffer.frame()).unwrap();
        let mut map = vec![0xfffe; g.pixels()];
        let labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
        let regions = self.cuda.segment(&frame, &mut Some(labels), OUTPUTS).unwrap().clone();
        if let Some(i) = (0..g.pixels()).find(|&i| want[i] != map[i]) {
            let differ = (0..g.pixels()).filter(|&i| want[i] != map[i]).count();
            let (x, y) = (i % g.width() as usize, i / g.width() as usize);
            panic!(
                "{what}: {differ} labels differ, first at ({x}, {y}): cpu {} of {}, cuda {} of {}",
                want[i], want_regions.count, map[i], regions.count
            );
        }
        assert_eq!(want_regions.table, regions.table, "{what}");
        assert_eq!(want_regions.motion, regions.motion, "{what}");
        assert_eq!(want_regions.merges, regions.merges, "{what}");
        assert_eq!(self.cpu.next_id().unwrap(), self.cuda.next_id().unwrap(), "{what}");
        if self.frame % 4 == 3 {
            let drawn = |buffer: &Buffer, draw: &mut dyn FnMut(&mut FrameMut<'_>)| {
                let mut planes = buffer.planes.clone();
                let list = planes.iter_mut().map(Vec::as_mut_slice);
                draw(&mut FrameMut::new(buffer.info, list, &buffer.strides).unwrap());
                planes
            };
            let labels = Labels::new(g, &mut want, g.width() as usize).unwrap();
            let want = drawn(buffer, &mut |frame| self.cpu.draw(frame, &labels, &LABELS).unwrap());
            self.cuda.draw(&mut frame, &None, &LABELS).unwrap();
            let got = drawn(buffer, &mut |host| self.staging.download(host).unwrap());
            assert!(want == got, "{what}: colors of identities differ");
        }
        let ids: Vec<u32> = regions.table.iter().map(|region| region.track_id).collect();
        let all: BTreeSet<u32> = ids.iter().copied().collect();
        assert!(all.len() == ids.len() && !all.contains(&0), "{what}: identities {ids:?}");
        ids
    }
}

/// Parameters of every algorithm.
fn algorithms() -> [AlgorithmParams; 3] {
    [
        AlgorithmParams::Slic(slic::Params::default()),
        AlgorithmParams::Lsc(lsc::Params::default()),
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, ..Default::default() }),
    ]
}

fn temporal(size: u32, algorithm: AlgorithmParams) -> Params {
    Params { superpixel_size: size, temporal: true, algorithm, ..Params::default() }
}

#[test]
fn pans_and_cuts_match_cpu() {
    let Some(cuda) = device("pans_and_cuts_match_cpu") else { return };
    let sizes = if short() {
        vec![(97, 71), (160, 121)]
    } else {
        vec![(97, 71), (160, 121), (640, 360), (1281, 719)]
    };
    for (i, (w, h)) in sizes.into_iter().enumerate() {
        for (j, motion) in [[0, 0], [1, 0], [4, -3], [-11, 7]].into_iter().enumerate() {
            let geometry = Geometry::new(w, h).unwrap();
            let clip = clip(geometry, PixelFormat::Rgb, (i + j) as u64, 9, motion, Some(5));
            for algorithm in algorithms() {
                // Slow on the emulated device.
                if short() && matches!(algorithm, AlgorithmParams::QuickShift(_)) && (i, j) != (0, 2) {
                    continue;
                }
                let size = [8, 12, 16, 25][(i + j) % 4];
                let mut pair =
                    Pair::new(&cuda, &temporal(size, algorithm), clip[0].info, &format!("{motion:?}"));
                let mut last = Vec::new();
                for (f, buffer) in clip.iter().enumerate() {
                    let ids = pair.compare(buffer);
                    let kept = ids.iter().filter(|id| last.contains(*id)).count();
                    if f > 0 && f != 5 {
                        assert!(2 * kept > ids.len(), "frame {f}: {kept} of {} identities go on", ids.len());
                    }
                    last = ids;
                }
            }
        }
    }
}

#[test]
fn awkward_sizes_match_cpu() {
    let Some(cuda) = device("awkward_sizes_match_cpu") else { return };
    let mut sizes = vec![(1, 1), (1, 77), (77, 1), (2, 2), (31, 33), (32, 32), (33, 65), (5, 300)];
    if !short() {
        sizes.extend([(8191, 3), (3, 2047), (257, 193)]);
    }
    for (i, (w, h)) in sizes.into_iter().enumerate() {
        let geometry = Geometry::new(w, h).unwrap();
        let clip = clip(geometry, PixelFormat::Rgba, i as u64, 4, [2, 1], None);
        for (size, count) in [(4, 0), (16, 0), (33, 0), (16, 1), (16, u32::MAX)] {
            for algorithm in algorithms() {
                // Which knows no grid.
                if matches!(algorithm, AlgorithmParams::QuickShift(_)) && (size, count) != (16, 0) {
                    continue;
                }
                let params = Params { superpixels: count, ..temporal(size, algorithm) };
                let mut pair = Pair::new(&cuda, &params, clip[0].info, "awkward");
                clip.iter().for_each(|buffer| drop(pair.compare(buffer)));
            }
        }
    }
}

#[test]
fn resets_match_cpu() {
    let Some(cuda) = device("resets_match_cpu") else { return };
    let geometry = Geometry::new(120, 90).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 4, 8, [3, 2], None);
    for algorithm in algorithms() {
        let mut pair = Pair::new(&cuda, &temporal(12, algorithm), clip[0].info, "reset");
        pair.cpu.set_next_id(u32::MAX - 60).unwrap();
        pair.cuda.set_next_id(u32::MAX - 60).unwrap();
        for (i, buffer) in clip.iter().enumerate() {
            if [1, 4, 5].contains(&i) {
                pair.reset();
            }
            pair.compare(buffer);
        }
    }
}

/// Parameters change while a clip goes on, in all ways that an engine goes on with.
#[test]
fn changes_match_cpu() {
    let Some(cuda) = device("changes_match_cpu") else { return };
    for seed in 0..if short() { 12 } else { 100 } {
        let pick = |salt: u64, n: u64| hash(seed * 97 + salt) % n;
        let side = if short() { 130 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let clip = clip(geometry, PixelFormat::Rgb, seed, 8, motion, (pick(5, 2) == 0).then_some(5));
        let first = drawn_params(seed);
        let mut pair = Pair::new(&cuda, &first, clip[0].info, &format!("changes, seed {seed}"));
        for (i, buffer) in clip.iter().enumerate() {
            if i % 2 == 1 || pick(6, 2) == 0 {
                let salt = |n: u64| 100 * i as u64 + n;
                let mut params =
                    Params { temporal_inertia: [0.0, 0.2, 0.7][pick(salt(1), 3) as usize], ..first.clone() };
                match &mut params.algorithm {
                    AlgorithmParams::Slic(slic) => {
                        slic.compactness = [0.1, 5.0, 10.0, 24.0, 60.0, 200.0][pick(salt(2), 6) as usize];
                        slic.adaptive_compactness = pick(salt(3), 3) == 0;
                        slic.iterations = 1 + pick(salt(4), 6) as u32;
                    }
                    AlgorithmParams::Lsc(lsc) => lsc.ratio = [0.01, 0.1, 0.6][pick(salt(2), 3) as usize],
                    AlgorithmParams::Snic(_) => unreachable!("it runs on the CPU only"),
                    AlgorithmParams::QuickShift(own) => {
                        own.color_scale = [0.3, 1.0][pick(salt(2), 2) as usize]
                    }
                }
                pair.change(&params);
            }
            pair.compare(buffer);
        }
    }
}

/// A frame of another size is refused, and the next one goes on from the one before it.
#[test]
fn refused_frames_leave_no_trace() {
    let Some(cuda) = device("refused_frames_leave_no_trace") else { return };
    let geometry = Geometry::new(97, 71).unwrap();
    let clip = clip(geometry, PixelFormat::Rgb, 4, 6, [3, 2], None);
    let other = Buffer::new(
        FrameInfo { geometry: Geometry::new(64, 48).unwrap(), ..clip[0].info },
        PICTURES[0],
        1,
        0,
    );
    let mut staging = Staging::new(&cuda, other.info).unwrap();
    for algorithm in algorithms() {
        let mut pair = Pair::new(&cuda, &temporal(12, algorithm), clip[0].info, "refused");
        for (i, buffer) in clip.iter().enumerate() {
            // Planes take turns: after an odd and an even number of frames.
            if [0, 1, 4].contains(&i) {
                let frame = staging.upload(&other.frame()).unwrap();
                assert!(pair.cuda.segment(&frame, &mut None, OUTPUTS).is_err());
            }
            pair.compare(buffer);
        }
    }
}

/// Any parameters from a number.
pub fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(41).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 6) as u32,
        compactness: [0.1, 1.0, 5.0, 10.0, 20.0, 56.0, 64.0, 100.0][pick(2, 8) as usize],
        adaptive_compactness: pick(3, 3) == 0,
        ..Default::default()
    };
    let ratio = [0.01, 0.05, 0.1, 0.2, 1.0][pick(8, 5) as usize];
    let tau = [2.0, 8.0, 20.0][pick(10, 3) as usize];
    let algorithm = match pick(9, 6) {
        5 => AlgorithmParams::QuickShift(quickshift::Params { sigma: 0.7, tau, ..Default::default() }),
        0 | 1 => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio }),
        _ => AlgorithmParams::Slic(slic),
    };
    Params {
        superpixel_size: 4 + pick(4, 40) as u32,
        connectivity: pick(5, 4) != 0,
        min_region: [0.0, 0.1, 0.25, 1.0, 4.0][pick(6, 5) as usize],
        temporal_inertia: [0.0, 0.1, 0.2, 0.5, 0.9][pick(7, 5) as usize],
        ..temporal(16, algorithm)
    }
}

#[test]
fn drawn_clips_match_cpu() {
    let Some(cuda) = device("drawn_clips_match_cpu") else { return };
    for seed in 0..if short() { 14 } else { 200 } {
        let pick = |salt: u64, n: u64| hash(seed * 83 + salt) % n;
        let side = if short() { 130 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 19) as i32 - 9, pick(4, 19) as i32 - 9];
        let mut frames =
            clip(geometry, PixelFormat::Rgb, seed, 6, motion, [None, Some(3)][pick(5, 2) as usize]);
        // No clip is like this: any picture may follow any other.
        let strange = Buffer::new(frames[0].info, PICTURES[pick(6, 6) as usize], seed, 3);
        frames.insert(pick(7, 6) as usize, strange);
        let mut pair = Pair::new(&cuda, &drawn_params(seed), frames[0].info, &format!("seed {seed}"));
        frames.iter().for_each(|buffer| drop(pair.compare(buffer)));
    }
}

#[test]
fn clips_of_a_folder_match_cpu() {
    let Some(clips) = clips::of_folder("clips_of_a_folder_match_cpu") else { return };
    let Some(cuda) = device("clips_of_a_folder_match_cpu") else { return };
    for (name, frames) in clips {
        let exactly = hierarchy::Params { regions: 50, levels: true, ..Default::default() };
        let plain = algorithms().map(|algorithm| Params { superpixels: 600, ..temporal(16, algorithm) });
        let merged = plain.clone().map(|params| Params { hierarchy: exactly.clone(), ..params });
        for params in plain.into_iter().chain(merged) {
            let mut pair: Option<Pair> = None;
            for buffer in frames.iter().map(|frame| clips::frame(frame)) {
                pair.get_or_insert_with(|| Pair::new(&cuda, &params, buffer.info, &name)).compare(&buffer);
            }
        }
    }
}

/// The next frame starts from the map before refinement, with merging and without.
#[test]
fn refined_regions_match_cpu() {
    let Some(cuda) = device("refined_regions_match_cpu") else { return };
    for seed in 0..if short() { 12 } else { 100 } {
        let pick = |salt: u64, n: u64| hash(seed * 61 + salt) % n;
        let side = if short() { 130 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let clip = clip(geometry, PixelFormat::Rgb, seed, 6, motion, (pick(5, 2) == 0).then_some(3));
        let merge = merge::Params { ratio: [0.0, 0.0, 2.0][pick(6, 3) as usize], ..Default::default() };
        let refine = refine::Params { sweeps: 1 + pick(7, 3) as u32, smoothness: pick(8, 20) as f32 };
        let params = Params { merge, refine, ..drawn_params(seed) };
        let mut pair = Pair::new(&cuda, &params, clip[0].info, &format!("refined, seed {seed}"));
        for (i, buffer) in clip.iter().enumerate() {
            if i == 4 {
                let refine = refine::Params { sweeps: 2, smoothness: 9.0 };
                pair.change(&Params { refine, ..params.clone() });
            }
            pair.compare(buffer);
        }
    }
}

/// A whole grid chooses among more pairs of regions and earlier ones than one block does, `FEW_PAIRS` of kernels/identity.cu.
#[test]
fn many_regions_match_cpu() {
    let Some(cuda) = device("many_regions_match_cpu") else { return };
    let geometry = Geometry::new(320, 240).unwrap();
    let exactly = hierarchy::Params { regions: 2600, ..Default::default() };
    for (algorithm, hierarchy) in algorithms().into_iter().zip([exactly.clone(), exactly, Default::default()])
    {
        let clip = clip(geometry, PixelFormat::Rgb, 3, 4, [3, -2], Some(3));
        let algorithm = match algorithm {
            // Many small trees, none of which has a cluster.
            AlgorithmParams::QuickShift(_) => {
                AlgorithmParams::QuickShift(quickshift::Params { sigma: 0.7, tau: 2.0, ..Default::default() })
            }
            other => other,
        };
        let params = Params { hierarchy, min_region: 0.1, ..temporal(4, algorithm) };
        let mut pair = Pair::new(&cuda, &params, clip[0].info, "many");
        for buffer in &clip {
            assert!(pair.compare(buffer).len() > 2500, "too few regions");
        }
    }
}

/// Merged regions have names of their own, and what goes on from frame to frame are the superpixels before.
#[test]
fn merged_regions_match_cpu() {
    let Some(cuda) = device("merged_regions_match_cpu") else { return };
    for seed in 0..if short() { 14 } else { 100 } {
        let pick = |salt: u64, n: u64| hash(seed * 59 + salt) % n;
        let side = if short() { 130 } else { 400 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let motion = [pick(3, 9) as i32 - 4, pick(4, 9) as i32 - 4];
        let clip = clip(geometry, PixelFormat::Rgb, seed, 7, motion, (pick(5, 2) == 0).then_some(4));
        let merge = merge::Params {
            ratio: [0.9, 1.5, 2.0, 2.5][pick(6, 4) as usize],
            rule: [merge::Rule::Mutual, merge::Rule::Either][pick(7, 2) as usize],
            max_distance: [0.0, 3.0, 10.0][pick(8, 3) as usize],
            passes: 1 + pick(9, 4) as u32,
        };
        let params = Params { merge, ..drawn_params(seed) };
        let mut pair = Pair::new(&cuda, &params, clip[0].info, &format!("merged, seed {seed}"));
        if pick(10, 2) == 0 {
            pair.cpu.set_next_id(u32::MAX - 20).unwrap();
            pair.cuda.set_next_id(u32::MAX - 20).unwrap();
        }
        for (i, buffer) in clip.iter().enumerate() {
            if i == 2 && pick(11, 3) == 0 {
                pair.reset();
            }
            if i == 5 {
                let merge = merge::Params { ratio: 1.2, max_distance: 6.0, ..params.merge.clone() };
                pair.change(&Params { merge, ..params.clone() });
            }
            pair.compare(buffer);
        }
    }
}
