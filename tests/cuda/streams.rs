// SPDX-License-Identifier: MPL-2.0
//! Streams side by side in temporal mode: each gives what it gives by itself on the CPU, whichever of them have a frame.

use crate::device::{device, short};
use crate::pictures::areas::Areas;
use crate::pictures::{Buffer, PICTURES, SHAPES, clip, hash};
use crate::temporal;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Cuda, DeviceFrame, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::Regions;

const OUTPUTS: Outputs = Outputs { table: true, neighbors: true, mean_color: false, linear_light: false };

/// An engine of streams beside an engine on the CPU for each.
struct Side {
    alone: Vec<Engine<Cpu>>,
    together: Engine<Cuda>,
    stagings: Vec<Staging>,
    what: String,
}

impl Side {
    fn new(cuda: &Cuda, params: &Params, first: &Buffer, streams: usize, what: String) -> Self {
        let plan = Plan::new(params, first.info).unwrap();
        Self {
            alone: (0..streams).map(|_| Engine::new(Cpu::new(1).unwrap(), plan.clone()).unwrap()).collect(),
            together: Engine::for_batch(cuda, &plan, streams as u32).unwrap(),
            stagings: (0..streams).map(|_| Staging::new(cuda, first.info).unwrap()).collect(),
            what,
        }
    }

    fn change(&mut self, params: &Params) {
        let plan = Plan::new(params, self.together.plan().frame()).unwrap();
        assert!(self.alone.iter_mut().all(|engine| engine.change(&plan).unwrap()), "{}", self.what);
        assert!(self.together.change(&plan).unwrap(), "{}", self.what);
    }

    fn reset(&mut self, stream: usize) {
        self.alone[stream].reset();
        self.together.reset_stream(stream as u32);
    }

    /// Compares a batch with a frame of each of these streams, which ascend.
    fn compare(&mut self, buffers: &[(usize, &Buffer)]) {
        let Self { alone, together, stagings, what } = self;
        let streams: Vec<u32> = buffers.iter().map(|(stream, _)| *stream as u32).collect();
        let mut uploads = stagings.iter_mut().enumerate();
        let frames: Vec<_> = buffers
            .iter()
            .map(|(stream, buffer)| {
                let (_, staging) = uploads.find(|(i, _)| i == stream).unwrap();
                staging.upload(&buffer.frame()).unwrap()
            })
            .collect();
        let all = streams.len() == alone.len();
        let batch =
            if all { DeviceFrame::of_batch(&frames) } else { DeviceFrame::of_streams(&frames, &streams) };
        together.submit(&batch.unwrap(), &mut None, OUTPUTS).unwrap();
        for (i, (stream, buffer)) in buffers.iter().enumerate() {
            let g = buffer.info.geometry;
            let (mut want_map, mut map) = (vec![0; g.pixels()], vec![0xfffe; g.pixels()]);
            let stride = g.width() as usize;
            let mut labels = Labels::new(g, &mut want_map, stride).unwrap();
            let want = alone[*stream].segment(&buffer.frame(), &mut labels, OUTPUTS).unwrap();
            let (results, mut regions) = (together.results_of(i).unwrap(), Regions::default());
            results.download_labels(&mut Labels::new(g, &mut map, stride).unwrap()).unwrap();
            results.download(&mut regions).unwrap();
            let differ = map.iter().zip(&want_map).filter(|(a, b)| a != b).count();
            assert_eq!(differ, 0, "{what}: labels of stream {stream} among {streams:?}");
            assert_eq!(regions.table, want.table, "{what}: stream {stream}");
            assert_eq!(regions.motion, want.motion, "{what}: stream {stream}");
            assert_eq!(regions.neighbors, want.neighbors, "{what}: stream {stream}");
            assert_eq!(regions.merges, want.merges, "{what}: stream {stream}");
        }
        assert!(matches!(together.results_of(buffers.len()), Err(Error::Batch(_))), "{what}");
    }
}

/// Parameters in temporal mode from a number, with all stages.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(59).wrapping_add(salt)) % n;
    let merge = merge::Params { ratio: [0.0, 0.0, 0.0, 2.0][pick(1, 4) as usize], ..Default::default() };
    let exact = merge.ratio == 0.0 && pick(2, 3) == 0;
    let temporal = temporal::drawn_params(seed);
    Params {
        merge,
        hierarchy: hierarchy::Params {
            regions: if exact { 1 + pick(3, 60) as u32 } else { 0 },
            levels: pick(4, 4) == 0,
            ..Default::default()
        },
        refine: refine::Params { sweeps: [0, 0, 2][pick(5, 3) as usize], ..Default::default() },
        masked: pick(6, 4) == 0,
        prior: temporal.connectivity && pick(7, 3) == 0,
        prior_cuts: pick(8, 3) != 0,
        prior_price: [0.0, 8.0][pick(9, 2) as usize],
        ..temporal
    }
}

#[test]
fn drawn_streams_match_each_alone() {
    let Some(cuda) = device("drawn_streams_match_each_alone") else { return };
    let wanted = std::env::var("SUPERPIXEL_STREAMS").ok().map(|text| text.parse().unwrap());
    for seed in 0..wanted.unwrap_or(if short() { 16 } else { 200 }) {
        let pick = |salt: u64, n: u64| hash(seed * 73 + salt) % n;
        let side = if short() { 90 } else { 300 };
        let geometry = Geometry::new(1 + pick(1, side) as u32, 1 + pick(2, side) as u32).unwrap();
        let (streams, params) = (2 + pick(3, 4) as usize, drawn_params(seed));
        let mut clips: Vec<_> = (0..streams)
            .map(|stream| {
                let salt = |n: u64| 10 * stream as u64 + n;
                let motion = [pick(salt(10), 13) as i32 - 6, pick(salt(11), 13) as i32 - 6];
                let cut = [None, Some(3)][pick(salt(12), 2) as usize];
                let mut frames = clip(geometry, PixelFormat::Rgb, seed + stream as u64, 7, motion, cut);
                // Any picture may follow any other.
                frames[5] = Buffer::new(frames[0].info, PICTURES[pick(salt(13), 6) as usize], seed, 3);
                frames.into_iter()
            })
            .collect();
        let first = clips[0].as_slice()[0].clone();
        let what = format!("seed {seed} {:?} {params:?}", first.info);
        let mut side = Side::new(&cuda, &params, &first, streams, what);
        for tick in 0..9 {
            let salt = |stream: usize, n: u64| 1000 + 100 * tick + 10 * stream as u64 + n;
            (0..streams).filter(|&i| pick(salt(i, 0), 9) == 0).for_each(|i| side.reset(i));
            if tick == 4 {
                side.change(&Params { temporal_inertia: 0.3, ..params.clone() });
            }
            let is_there = |i: usize| tick < 2 && pick(4, 2) == 0 || pick(salt(i, 1), 4) != 0;
            let frames: Vec<_> = clips
                .iter_mut()
                .enumerate()
                .filter(|(i, _)| is_there(*i))
                .filter_map(|(i, clip)| Some((i, clip.next()?)))
                .map(|(i, frame)| {
                    let shape = SHAPES[pick(salt(i, 2), SHAPES.len() as u64) as usize];
                    let frame = if params.masked { frame.with_mask(shape, seed, [0, 0]) } else { frame };
                    let areas = Areas::drawn(geometry, 1 + pick(salt(i, 3), 6), seed + i as u64);
                    (
                        i,
                        if params.prior && pick(salt(i, 4), 5) != 0 {
                            frame.with_prior(areas)
                        } else {
                            frame
                        },
                    )
                })
                .collect();
            let frames: Vec<_> = frames.iter().map(|(i, frame)| (*i, frame)).collect();
            if !frames.is_empty() {
                side.compare(&frames);
            }
        }
    }
}

#[test]
fn what_is_no_stream_is_refused() {
    let Some(cuda) = device("what_is_no_stream_is_refused") else { return };
    let geometry = Geometry::new(64, 48).unwrap();
    let clips: Vec<_> = (0..3).map(|seed| clip(geometry, PixelFormat::Rgb, seed, 3, [2, 1], None)).collect();
    let params = Params { temporal: true, superpixel_size: 8, ..Params::default() };
    let info = clips[0][0].info;
    let mut side = Side::new(&cuda, &params, &clips[0][0], 3, "refused".into());
    let mut other = Staging::new(&cuda, info).unwrap();
    let frame = other.upload(&clips[0][0].frame()).unwrap();
    let pair = [frame, frame];
    assert!(matches!(DeviceFrame::of_streams(&pair, &[0]), Err(Error::Batch(_))));
    assert!(matches!(DeviceFrame::of_streams(&pair, &[1, 1]), Err(Error::Batch(_))));
    assert!(matches!(DeviceFrame::of_streams(&pair, &[1, 0]), Err(Error::Batch(_))));
    let frames_at = |at: usize| clips.iter().map(|clip| &clip[at]).enumerate().collect::<Vec<_>>();
    side.compare(&frames_at(0));
    // Refused before anything is done: every stream goes on from its last frame.
    let beyond = DeviceFrame::of_streams(&pair, &[1, 3]).unwrap();
    assert!(matches!(side.together.submit(&beyond, &mut None, OUTPUTS), Err(Error::Batch(_))));
    side.reset(1);
    side.together.reset_stream(17);
    side.compare(&frames_at(1));
    // One of them began anew, and results are those of all none the less.
    assert_eq!(side.together.batch_results().unwrap().frames(), 3);
    side.compare(&frames_at(2)[1..2]);
    assert!(matches!(side.together.batch_results(), Err(Error::Batch(_))));
    // Of a batch the caller says which frame is drawn on.
    let drawing = Drawing { fill: Fill::Labels, boundaries: Some(Boundaries { color: 0, width: 1 }) };
    let mut one = DeviceFrame::of_streams(&pair[..1], &[2]).unwrap();
    assert!(matches!(side.together.draw(&mut one, &None, &drawing), Err(Error::Batch(_))));
    assert!(matches!(side.together.draw_of(1, &mut one, &drawing), Err(Error::Batch(_))));

    let plan = Plan::new(&Params { temporal: false, ..params.clone() }, info).unwrap();
    let mut pictures = Engine::for_batch(&cuda, &plan, 3).unwrap();
    let streams = DeviceFrame::of_streams(&pair, &[0, 2]).unwrap();
    assert!(matches!(pictures.submit(&streams, &mut None, OUTPUTS), Err(Error::Batch(_))));
    // An engine of one stream has no second one.
    let plan = Plan::new(&params, info).unwrap();
    let mut single = Engine::new(cuda.clone(), plan).unwrap();
    assert!(matches!(single.submit(&one, &mut None, OUTPUTS), Err(Error::Batch(_))));
}
