// SPDX-License-Identifier: MPL-2.0
//! Batches: frames side by side in one set of launches give what each gives alone on the CPU, in any order and number.

use crate::device::{device, short};
use crate::pictures::areas::Areas;
use crate::pictures::{Buffer, PICTURES, Picture, SHAPES, hash};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::buffers::BatchTable;
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cuda::{Cuda, DeviceFrame, DeviceMemory, DevicePool, LabelType, Staging};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::error::Error;
use gstsuperpixel::image::{FrameInfo, Geometry, Labels, NO_LABEL, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::regions::{Region, Regions};

const EVERYTHING: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

fn info(w: u32, h: u32, format: PixelFormat) -> FrameInfo {
    FrameInfo::new(Geometry::new(w, h).unwrap(), format)
}

/// Labels and tables of one frame.
type Outcome = (Vec<u16>, Regions);

fn alone(plan: &Plan, buffer: &Buffer, outputs: Outputs) -> Outcome {
    let g = buffer.info.geometry;
    let mut engine = Engine::new(Cpu::new(1).unwrap(), plan.clone()).unwrap();
    let mut map = vec![0; g.pixels()];
    let mut labels = Labels::new(g, &mut map, g.width() as usize).unwrap();
    let regions = engine.segment(&buffer.frame(), &mut labels, outputs).unwrap().clone();
    (map, regions)
}

/// Compares every frame of a batch with the same frame alone.
fn compare(
    engine: &mut Engine<Cuda>,
    stagings: &mut [Staging],
    clip: &[Buffer],
    outputs: Outputs,
    what: &str,
) {
    let g = clip[0].info.geometry;
    let frames: Vec<DeviceFrame<'_>> =
        clip.iter().zip(stagings).map(|(buffer, staging)| staging.upload(&buffer.frame()).unwrap()).collect();
    engine.submit(&DeviceFrame::of_batch(&frames).unwrap(), &mut None, outputs).unwrap();
    for (i, buffer) in clip.iter().enumerate() {
        let (want_map, want) = alone(engine.plan(), buffer, outputs);
        let results = engine.results_of(i).unwrap();
        let (mut map, mut regions) = (vec![0xfffe; g.pixels()], Regions::default());
        results.download_labels(&mut Labels::new(g, &mut map, g.width() as usize).unwrap()).unwrap();
        results.download(&mut regions).unwrap();
        let differ = map.iter().zip(&want_map).filter(|(a, b)| a != b).count();
        assert_eq!(differ, 0, "{what}: labels of frame {i} of {}", clip.len());
        assert_eq!(regions.count, want.count, "{what}: frame {i}");
        assert_eq!(regions.table, want.table, "{what}: frame {i}");
        assert_eq!(regions.neighbors, want.neighbors, "{what}: frame {i}");
        assert_eq!(regions.merges, want.merges, "{what}: frame {i}");
    }
    assert!(matches!(engine.results_of(clip.len()), Err(Error::Batch(_))));
    if outputs == EVERYTHING {
        compare_together(engine, clip.len(), what);
    }
}

/// Items of device memory.
fn read<T: bytemuck::Pod>(memory: &DeviceMemory, len: usize) -> Vec<T> {
    let mut items = vec![T::zeroed(); len];
    memory.read(0, bytemuck::cast_slice_mut(&mut items)).unwrap();
    items
}

/// Compares the results of all frames together with those of each.
fn compare_together(engine: &Engine<Cuda>, frames: usize, what: &str) {
    let (g, batch) = (engine.plan().frame().geometry, engine.batch_results().unwrap());
    assert_eq!(batch.frames(), frames);
    let pool = DevicePool::new(engine.backend());
    let take = |bytes: usize| pool.take(bytes.max(8)).unwrap();
    let [mut labels, mut short] = [4, 2].map(|bytes| take(frames * g.pixels() * bytes));
    for (memory, kind) in [(&mut labels, LabelType::I32 { first: 7 }), (&mut short, LabelType::U16)] {
        let planes = memory.labels(g, kind).unwrap();
        // SAFETY: the memory has room for as many planes.
        let mut planes = unsafe { planes.with_planes(frames, (g.pixels() * kind.bytes()) as u64).unwrap() };
        batch.export_labels(&mut planes).unwrap();
    }
    let (labels, short): (Vec<i32>, Vec<u16>) =
        (read(&labels, frames * g.pixels()), read(&short, frames * g.pixels()));
    let tables = [BatchTable::Regions, BatchTable::Neighbors, BatchTable::Merges];
    let offsets = tables.map(|table| batch.offsets(table).unwrap());
    let gathered = [0, 1, 2].map(|i| {
        let (total, table) = (offsets[i][frames] as usize, tables[i]);
        let mut memory = take(total * table.bytes());
        batch.export_records(table, None, &mut memory.bytes(), total).unwrap();
        let mut known = take((frames + 1) * 8);
        batch.export_offsets(table, &mut known.bytes()).unwrap();
        assert_eq!(read::<u64>(&known, frames + 1), offsets[i], "{what}");
        read::<u8>(&memory, total * table.bytes())
    });
    let (regions, pairs) = (offsets[0][frames] as usize, offsets[1][frames] as usize);
    let [mut edges, mut numbers] = [4 * pairs, regions].map(|items| take(8 * items));
    batch.export_edges(&mut edges.bytes(), pairs).unwrap();
    batch.export_frame_numbers(&mut numbers.bytes(), regions).unwrap();
    let (edges, numbers): (Vec<i64>, Vec<i64>) = (read(&edges, 4 * pairs), read(&numbers, regions));
    let capacity = batch.capacity(BatchTable::Regions);
    let mut padded = take(frames * capacity * size_of::<Region>());
    batch.export_records(BatchTable::Regions, Some(capacity), &mut padded.bytes(), 0).unwrap();
    let padded = read::<u8>(&padded, frames * capacity * size_of::<Region>());
    for i in 0..frames {
        let (mut map, mut own) = (vec![0; g.pixels()], Regions::default());
        let results = engine.results_of(i).unwrap();
        results.download_labels(&mut Labels::new(g, &mut map, g.width() as usize).unwrap()).unwrap();
        results.download(&mut own).unwrap();
        let plane = i * g.pixels()..(i + 1) * g.pixels();
        assert!(short[plane.clone()] == map, "{what}: labels of 16 bits of frame {i}");
        let widened = map.iter().map(|&label| if label == NO_LABEL { 6 } else { i32::from(label) + 7 });
        assert!(widened.eq(labels[plane].iter().copied()), "{what}: labels of 32 bits of frame {i}");
        let bytes = [
            bytemuck::cast_slice(&own.table).to_vec(),
            bytemuck::cast_slice(&own.neighbors).to_vec(),
            bytemuck::cast_slice(&own.merges).to_vec(),
        ];
        for (j, want) in bytes.iter().enumerate() {
            let at = |k: usize| offsets[j][k] as usize * tables[j].bytes();
            assert!(&gathered[j][at(i)..at(i + 1)] == want, "{what}: {:?} of frame {i}", tables[j]);
        }
        let row = &padded[i * capacity * size_of::<Region>()..][..capacity * size_of::<Region>()];
        assert!(row[..bytes[0].len()] == bytes[0], "{what}: padded regions of frame {i}");
        assert!(row[bytes[0].len()..].iter().all(|&byte| byte == 0), "{what}: padding of frame {i}");
        let nodes = offsets[0][i] as usize..offsets[0][i + 1] as usize;
        assert!(numbers[nodes.clone()].iter().all(|&frame| frame == i as i64), "{what}: frame {i}");
        // Both directions, with regions numbered through all frames.
        let node = |label: u32| nodes.start as i64 + i64::from(label);
        let (from, to): (Vec<_>, Vec<_>) =
            own.neighbors.iter().map(|pair| (node(pair.a), node(pair.b))).unzip();
        let columns = 2 * offsets[1][i] as usize..2 * offsets[1][i + 1] as usize;
        let (low, high) = edges.split_at(2 * pairs);
        assert!(low[columns.clone()] == [from.clone(), to.clone()].concat(), "{what}: edges of frame {i}");
        assert!(high[columns] == [to, from].concat(), "{what}: edges of frame {i}");
    }
}

/// Any parameters from a number.
fn drawn_params(seed: u64) -> Params {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(53).wrapping_add(salt)) % n;
    let slic = slic::Params {
        iterations: 1 + pick(1, 6) as u32,
        compactness: [0.1, 1.0, 10.0, 30.0, 700.0][pick(2, 5) as usize],
        color_space: ColorSpace::ALL[pick(3, 4) as usize],
        adaptive_compactness: pick(4, 4) == 0,
    };
    let small = quickshift::Params { sigma: 1.0, tau: 4.0, ..Default::default() };
    let merge = merge::Params { ratio: [0.0, 0.0, 2.0][pick(5, 3) as usize], ..Default::default() };
    let exact = merge.ratio == 0.0 && pick(14, 3) == 0;
    let prior = pick(19, 4) == 0;
    Params {
        superpixel_size: 2 + pick(6, 30) as u32,
        superpixels: [0, 0, 0, 40, u32::MAX][pick(7, 5) as usize],
        holds_count: pick(13, 2) == 0,
        prior,
        prior_cuts: pick(20, 3) != 0,
        prior_price: [0.0, 8.0][pick(21, 2) as usize],
        connectivity: prior || pick(8, 4) != 0,
        min_region: [0.0, 0.25, 0.25, 1.0, 4.0][pick(9, 5) as usize],
        hierarchy: hierarchy::Params {
            regions: if exact { 1 + pick(15, 60) as u32 } else { 0 },
            levels: pick(16, 3) == 0,
            ..Default::default()
        },
        merge,
        refine: refine::Params { sweeps: [0, 0, 2][pick(12, 3) as usize], ..Default::default() },
        algorithm: match pick(11, 5) {
            0 | 1 => AlgorithmParams::Slic(slic),
            2 | 3 => AlgorithmParams::Lsc(lsc::Params { iterations: slic.iterations, ratio: 0.1 }),
            _ => AlgorithmParams::QuickShift(small),
        },
        masked: pick(17, 3) == 0,
        stretch_gray16: pick(18, 2) == 0,
        ..Params::default()
    }
}

fn drawn_batch(seed: u64, params: &Params, side: u64) -> Vec<Buffer> {
    let pick = |salt: u64, n: u64| hash(seed.wrapping_mul(101).wrapping_add(salt)) % n;
    let format = PixelFormat::ALL[pick(1, PixelFormat::ALL.len() as u64) as usize];
    let info = info(1 + pick(2, side) as u32, 1 + pick(3, side) as u32, format);
    let frames = 1 + pick(4, 9);
    let buffer = |i: u64| {
        let buffer = Buffer::new(info, PICTURES[pick(100 + i, 6) as usize], seed + i, pick(5, 9) as usize);
        let shape = SHAPES[pick(200 + i, SHAPES.len() as u64) as usize];
        let has = |salt: u64, wanted: bool| wanted && pick(salt + i, 4) != 0;
        let areas = Areas::drawn(
            Geometry::new(3 + seed as u32 % 60, 40).unwrap(),
            1 + pick(500 + i, 9),
            seed + 3 * i,
        );
        let buffer = if has(300, params.masked) { buffer.with_mask(shape, seed + i, [0, 0]) } else { buffer };
        if has(400, params.prior) { buffer.with_prior(areas) } else { buffer }
    };
    (0..frames).map(buffer).collect()
}

fn stagings(cuda: &Cuda, clip: &[Buffer]) -> Vec<Staging> {
    clip.iter().map(|buffer| Staging::new(cuda, buffer.info).unwrap()).collect()
}

/// `SUPERPIXEL_BATCHES` says how many.
#[test]
fn drawn_batches_match_each_frame_alone() {
    let Some(cuda) = device("drawn_batches_match_each_frame_alone") else { return };
    let wanted = std::env::var("SUPERPIXEL_BATCHES").ok().map(|text| text.parse().unwrap());
    let cases = wanted.unwrap_or(if short() { 40 } else { 600 });
    for seed in 0..cases {
        let params = drawn_params(seed);
        let clip = drawn_batch(seed, &params, if short() { 80 } else { 300 });
        let Ok(plan) = Plan::new(&params, clip[0].info) else { continue };
        // Room for more than come.
        let mut engine = Engine::for_batch(&cuda, &plan, 9).unwrap();
        let what = format!("seed {seed} {:?} {params:?}", clip[0].info);
        compare(&mut engine, &mut stagings(&cuda, &clip), &clip, EVERYTHING, &what);
    }
}

#[test]
fn the_same_engine_takes_batches_of_any_number_and_order() {
    let Some(cuda) = device("the_same_engine_takes_batches_of_any_number_and_order") else { return };
    let info = info(97, 65, PixelFormat::Rgb);
    // Some end early, some need every round.
    let mut clip: Vec<_> = (0..7).map(|i| Buffer::new(info, PICTURES[i % 6], i as u64, 0)).collect();
    let params = Params { superpixel_size: 12, ..Params::default() };
    let plan = Plan::new(&params, info).unwrap();
    let mut engine = Engine::for_batch(&cuda, &plan, 7).unwrap();
    let mut stagings = stagings(&cuda, &clip);
    for count in [7, 1, 4, 7, 2] {
        for outputs in [EVERYTHING, Outputs::default(), EVERYTHING] {
            clip.rotate_left(3);
            compare(&mut engine, &mut stagings, &clip[..count], outputs, &format!("{count} frames"));
        }
    }
}

#[test]
fn many_small_frames_match_each_alone() {
    let Some(cuda) = device("many_small_frames_match_each_alone") else { return };
    // More frames than the device has multiprocessors, and than one launch lists.
    let (frames, info) = (if short() { 70 } else { 300 }, info(28, 28, PixelFormat::Gray8));
    let clip: Vec<_> = (0..frames).map(|i| Buffer::new(info, PICTURES[i % 6], i as u64, 0)).collect();
    let exact = hierarchy::Params { regions: 20, ..Default::default() };
    for hierarchy in [hierarchy::Params::default(), exact] {
        let params = Params { superpixel_size: 4, hierarchy, ..Params::default() };
        let plan = Plan::new(&params, info).unwrap();
        let mut engine = Engine::for_batch(&cuda, &plan, frames as u32).unwrap();
        compare(&mut engine, &mut stagings(&cuda, &clip), &clip, EVERYTHING, "small frames");
    }
}

#[test]
fn what_is_no_batch_is_refused() {
    let Some(cuda) = device("what_is_no_batch_is_refused") else { return };
    let (rgb, gray) = (info(40, 30, PixelFormat::Rgb), info(40, 30, PixelFormat::Gray8));
    let plan = Plan::new(&Params::default(), rgb).unwrap();
    assert!(matches!(Engine::for_batch(&cuda, &plan, 0), Err(Error::Batch(_))));
    assert!(matches!(Engine::for_batch(&cuda, &plan, 70_000), Err(Error::Batch(_))));
    assert!(matches!(DeviceFrame::of_batch(&[]), Err(Error::Batch(_))));

    let clip: Vec<_> = (0..3).map(|i| Buffer::new(rgb, Picture::Noise, i, 0)).collect();
    let mut stagings = stagings(&cuda, &clip);
    let mut other = Staging::new(&cuda, gray).unwrap();
    let frames: Vec<_> = clip
        .iter()
        .zip(&mut stagings)
        .map(|(buffer, staging)| staging.upload(&buffer.frame()).unwrap())
        .collect();
    let of_gray = Buffer::new(gray, Picture::Noise, 0, 0);
    let mixed = [frames[0], other.upload(&of_gray.frame()).unwrap()];
    assert!(matches!(DeviceFrame::of_batch(&mixed), Err(Error::Batch(_))));

    let batch = DeviceFrame::of_batch(&frames).unwrap();
    let mut engine = Engine::for_batch(&cuda, &plan, 2).unwrap();
    assert!(matches!(engine.submit(&batch, &mut None, EVERYTHING), Err(Error::Batch(_))));
    // Nor does an engine of single frames take one.
    let mut single = Engine::new(cuda.clone(), plan.clone()).unwrap();
    assert!(matches!(single.submit(&batch, &mut None, EVERYTHING), Err(Error::Batch(_))));
    // A refused batch leaves the engine as it was; one frame listed twice is two.
    let twice = [frames[0], frames[0]];
    engine.submit(&DeviceFrame::of_batch(&twice).unwrap(), &mut None, EVERYTHING).unwrap();
    assert_eq!(
        engine.results_of(0).unwrap().counts().unwrap(),
        engine.results_of(1).unwrap().counts().unwrap()
    );
    // Of a batch the caller says which frame is drawn on.
    let drawing = Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries { color: 0, width: 1 }) };
    let mut drawn = DeviceFrame::of_batch(&twice).unwrap();
    assert!(matches!(engine.draw(&mut drawn, &None, &drawing), Err(Error::Batch(_))));
}
