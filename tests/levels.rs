// SPDX-License-Identifier: MPL-2.0
//! Label maps, tables and identities are equal at every instruction level that the hot loops are compiled for. A
//! program of one test, since the level is the whole process's. In a build with debug assertions it also checks which
//! functions ran at which level.

mod pictures;

use std::hash::{DefaultHasher, Hash, Hasher};

use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cpu::level::{self, Level};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{abstraction, hierarchy, merge, refine};
use pictures::{Buffer, Picture, clip};

const ALL: Outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };

/// Functions that are compiled for every level.
const FUNCTIONS: [&str; 18] = [
    "add_region_body",
    "compare_sides_body",
    "density_row_body",
    "find_changes_body",
    "ingest_row_body",
    "link_row_body",
    "list_costs_body",
    "lsc_assign_band_body",
    "lsc_label_band_body",
    "means_body",
    "predict_samples_body",
    "refine_row_body",
    "settle_body",
    "slic_assign_band_body",
    "slic_label_band_body",
    "squared_difference_body",
    "sum_features_body",
    "track_slots_body",
];

/// Parameters of all algorithms: frames by themselves, over time, merged by either stage, without connectivity.
fn cases() -> Vec<Params> {
    let slic = |adaptive_compactness| {
        AlgorithmParams::Slic(slic::Params { adaptive_compactness, ..slic::Params::default() })
    };
    let lsc = AlgorithmParams::Lsc(lsc::Params::default());
    let quickshift =
        AlgorithmParams::QuickShift(quickshift::Params { sigma: 1.0, tau: 5.0, ..Default::default() });
    let mut cases = Vec::new();
    for algorithm in [slic(false), slic(true), lsc, quickshift] {
        for (temporal, ratio, connectivity, sweeps, regions) in [
            (false, 0.0, true, 0, 0),
            (true, 0.0, true, 0, 0),
            (true, 2.0, true, 0, 0),
            (false, 0.0, false, 0, 0),
            (false, 0.0, true, 2, 0),
            (true, 0.0, true, 0, 12),
        ] {
            cases.push(Params {
                algorithm: algorithm.clone(),
                superpixel_size: 9,
                temporal,
                connectivity,
                merge: merge::Params { ratio, ..Default::default() },
                refine: refine::Params { sweeps, ..Default::default() },
                hierarchy: hierarchy::Params { regions, ..Default::default() },
                ..Params::default()
            });
        }
    }
    cases
}

/// A hash for each case: of all labels, regions, motions and pairs of a clip, and of the abstraction of each frame.
fn results() -> Vec<u64> {
    let geometry = Geometry::new(83, 61).unwrap();
    let mut hashes = Vec::new();
    for format in [PixelFormat::Rgb, PixelFormat::Nv12, PixelFormat::P010Le] {
        let clip = match format {
            PixelFormat::Rgb => clip(geometry, format, 3, 4, [3, -2], Some(3)),
            _ => {
                let info = FrameInfo::new(geometry, format);
                (0..3).map(|seed| Buffer::new(info, Picture::Natural, seed, 0)).collect()
            }
        };
        for params in cases() {
            let plan = Plan::new(&params, clip[0].info).unwrap();
            let mut engine = Engine::new(Cpu::new(2).unwrap(), plan).unwrap();
            let mut map = vec![0; geometry.pixels()];
            let mut hasher = DefaultHasher::new();
            for buffer in &clip {
                let mut labels = Labels::new(geometry, &mut map, geometry.width() as usize).unwrap();
                let regions = engine.segment(&buffer.frame(), &mut labels, ALL).unwrap();
                assert!(regions.count > 3, "{params:?}");
                bytemuck::cast_slice::<_, u8>(&regions.table).hash(&mut hasher);
                bytemuck::cast_slice::<_, u8>(&regions.motion).hash(&mut hasher);
                bytemuck::cast_slice::<_, u8>(&regions.neighbors).hash(&mut hasher);
                let fill = Fill::Abstraction(abstraction::Params::default());
                let mut drawn = buffer.planes.clone();
                let parts = drawn.iter_mut().map(Vec::as_mut_slice);
                let mut frame = FrameMut::new(buffer.info, parts, &buffer.strides).unwrap();
                engine.draw(&mut frame, &labels, &Drawing { fill, boundaries: None }).unwrap();
                drawn.hash(&mut hasher);
                map.hash(&mut hasher);
            }
            hashes.push(hasher.finish());
        }
    }
    hashes
}

#[test]
fn every_level_gives_the_same() {
    level::taken();
    let mut baseline = None;
    for level in Level::ALL {
        if !level::set(level) {
            println!("{level:?}: skipped: this processor cannot run it");
            continue;
        }
        assert_eq!(level::current(), level);
        let hashes = results();
        let taken = level::taken();
        if cfg!(debug_assertions) {
            let wanted = FUNCTIONS.map(|function| (function, level));
            assert_eq!(taken, wanted, "what has run");
        }
        println!("{level:?}: {} cases, {} functions seen to run at this level", hashes.len(), taken.len());
        let baseline = baseline.get_or_insert_with(|| hashes.clone());
        for (i, params) in cases().iter().cycle().take(hashes.len()).enumerate() {
            assert_eq!(hashes[i], baseline[i], "{level:?} differs: case {i}, {params:?}");
        }
    }
    // The best is what is taken where nobody has chosen.
    let best = Level::ALL.into_iter().rfind(|level| level.is_available());
    assert_eq!(Some(level::current()), best);
}
