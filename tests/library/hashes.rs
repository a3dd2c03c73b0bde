// SPDX-License-Identifier: MPL-2.0
//! Hashes of everything that the CPU backend computes for drawn pictures: a change of any bit is found.
//!
//! The other tests say that results are right; these say that they are the same as before. Users compare label maps of two versions,
//! and other backends are compared with this one, so no bit changes by accident, by a compiler or by a faster loop.
//!
//! A hash may change where a change of results is what a commit is for: another distance, rounding, tie or default. Then the
//! oracles of `tests/oracle` change with it, `CHANGELOG.md` says so, and `docs/quality.md` has the new figures. To update, run
//!
//! ```sh
//! cargo test --no-default-features --test library hashes
//! ```
//!
//! and take the table that the failure prints, and `KNOWN` of `benches/picture/mod.rs` as its own failure says. A change for speed, of
//! layout or of dependencies that changes a hash is a fault: find the bit.

use crate::picture;
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;

const WIDTH: u32 = 163;
const HEIGHT: u32 = 122;
/// Frames of the clip; before the last one is a cut.
const FRAMES: u32 = 6;

/// Of the label map, of region table, motion and neighbors, and of the drawn pixels; of a clip over all frames.
#[rustfmt::skip]
const EXPECTED: [(&str, [u64; 3]); 20] = [
    ("slic", [0xb64b95dc7a203305, 0x1d94a05627090442, 0x9e4e85e87a123132]),
    ("slic, temporal", [0x0f1cceba5a31f1a4, 0xba79b0e0a5bfc7ec, 0xbab87bb7cd3cba30]),
    ("slic, quanta halved", [0xcce201e635b4684e, 0x8357aa599f70dd9d, 0x4e9dd3d54fe54363]),
    ("slic, quanta halved, temporal", [0x653cb0ead9b3e2cb, 0x24616ded1dfbe000, 0x317f39217088667f]),
    ("slico", [0xf3e5986337da2d31, 0x8a17712f79e4de07, 0xc91fe8c8a334541d]),
    ("slico, temporal", [0xe29430465be9d724, 0xc415b04b32946b00, 0x63a592e70dacc3a3]),
    ("slico, pieces", [0x256c38c26fc50123, 0x5ecdcf246b8f618a, 0x279102794f55886d]),
    ("slico, pieces, temporal", [0x89bfbeab204060ed, 0x262683479e5ba9ed, 0x559e8c0b73ec0528]),
    ("slic, merged", [0xc20186e742df4fe3, 0x1933d62bd764b83e, 0x1a888ade945e5df6]),
    ("slic, merged, temporal", [0xaa2fea110f8ba248, 0x447727fe83de1a9d, 0x2ca82d69cd215898]),
    ("lsc", [0xc40b9cfff16bad7f, 0x4a9797de1d3b716e, 0x6ad4d62c45c7074b]),
    ("lsc, temporal", [0xd28e1bd3a5cb11f6, 0xac8d774d09b1d541, 0x5a6617d514a06530]),
    ("lsc, fine", [0x47efc15b8625d0ef, 0x492ea8089931bb0a, 0xba3d32933626c9f8]),
    ("lsc, fine, temporal", [0x9e450068dea8388b, 0x263abd7b6d048b1c, 0xd38c974ac06bbc6c]),
    ("quickshift", [0x05e4b576b56bbb6b, 0x571896888be5364a, 0x6fd7d25a598a22e3]),
    ("quickshift, temporal", [0x8605231cb595f1bc, 0x73a0769bc9372251, 0xbd32bf29f3dcd71a]),
    ("quickshift, merged", [0x3240b3d281387001, 0x61345d1668490f2d, 0x93f7b3da9f9871af]),
    ("quickshift, merged, temporal", [0x213780ddfe87216c, 0xc5eea0a800bdacb5, 0x392b28a60f1269fc]),
    ("snic", [0xe38086a25bf2e781, 0xed3c5055cf08d34d, 0x8d2b1d1dccf93569]),
    ("snic, temporal", [0x41d343ffa1269c24, 0x03d3571ecaa3c68d, 0x3946091080f07051]),
];

/// Settings that are hashed: they reach every algorithm, both fills of rows and every stage.
fn settings() -> Vec<(&'static str, Params)> {
    let with = |superpixel_size, algorithm| Params { superpixel_size, algorithm, ..Params::default() };
    let slic = |params| AlgorithmParams::Slic(params);
    let merged = merge::Params { ratio: 2.0, max_distance: 12.0, ..Default::default() };
    let slico =
        slic::Params { adaptive_compactness: true, color_space: ColorSpace::Rgb, ..Default::default() };
    let coarse = slic::Params { compactness: 60.0, iterations: 3, ..Default::default() };
    let lsc_fine = lsc::Params { ratio: 0.03, iterations: 3 };
    let quickshift = quickshift::Params { sigma: 2.0, tau: 6.0, ..Default::default() };
    vec![
        ("slic", with(16, slic(slic::Params::default()))),
        ("slic, quanta halved", with(7, slic(coarse))),
        ("slico", with(9, slic(slico.clone()))),
        ("slico, pieces", Params { connectivity: false, ..with(12, slic(slico)) }),
        ("slic, merged", Params { merge: merged.clone(), ..with(8, slic(slic::Params::default())) }),
        ("lsc", with(16, AlgorithmParams::Lsc(lsc::Params::default()))),
        ("lsc, fine", with(7, AlgorithmParams::Lsc(lsc_fine))),
        ("quickshift", with(16, AlgorithmParams::QuickShift(quickshift.clone()))),
        ("quickshift, merged", Params { merge: merged, ..with(16, AlgorithmParams::QuickShift(quickshift)) }),
        ("snic", with(12, AlgorithmParams::Snic(snic::Params::default()))),
    ]
}

/// Part of a larger picture that moves, and after the cut of another part in other colors.
fn frame(large: &[u8], number: u32) -> Vec<u8> {
    let is_cut = number + 1 == FRAMES;
    let (left, top) = if is_cut { (2, 30) } else { (20 - 3 * number, 4 + 2 * number) };
    let row = |y: u32| &large[4 * ((top + y) * LARGE + left) as usize..][..4 * WIDTH as usize];
    let mut pixels: Vec<u8> = (0..HEIGHT).flat_map(row).copied().collect();
    if is_cut {
        pixels.iter_mut().for_each(|v| *v = 255 - *v);
    }
    pixels
}

/// Side of the larger picture.
const LARGE: u32 = 192;

/// Segments and draws frames one after the other on one engine.
fn hashes(params: &Params, frames: &[Vec<u8>]) -> [u64; 3] {
    let geometry = Geometry::new(WIDTH, HEIGHT).unwrap();
    let info = FrameInfo::new(geometry, PixelFormat::Rgba);
    let (width, stride) = (WIDTH as usize, 4 * WIDTH as usize);
    let mut engine = Engine::new(Cpu::new(2).unwrap(), Plan::new(params, info).unwrap()).unwrap();
    let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
    let drawing = Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries::default()) };
    let mut all = [picture::HASH_START; 3];
    for pixels in frames {
        let mut map = vec![0u16; geometry.pixels()];
        let mut labels = Labels::new(geometry, &mut map, width).unwrap();
        let frame = Frame::new(info, &[pixels], &[stride]).unwrap();
        let regions = engine.segment(&frame, &mut labels, outputs).unwrap();
        let table = picture::hash_bytes(all[1], bytemuck::cast_slice(&regions.table));
        let motion = picture::hash_bytes(table, bytemuck::cast_slice(&regions.motion));
        all[1] = picture::hash_bytes(motion, bytemuck::cast_slice(&regions.neighbors));
        let mut drawn = pixels.clone();
        engine
            .draw(&mut FrameMut::new(info, [&mut drawn[..]], &[stride]).unwrap(), &labels, &drawing)
            .unwrap();
        all[0] = picture::hash_bytes(all[0], bytemuck::cast_slice(&map));
        all[2] = picture::hash_bytes(all[2], &drawn);
    }
    all
}

#[test]
fn results_are_the_known_ones() {
    let large = picture::rgba(LARGE, LARGE);
    let frames: Vec<Vec<u8>> = (0..FRAMES).map(|number| frame(&large, number)).collect();
    let mut found: Vec<(String, [u64; 3])> = Vec::new();
    for (name, params) in settings() {
        found.push((name.into(), hashes(&params, &frames[..1])));
        // Weighing every pair of a whole clip takes quick shift long.
        let frames =
            if params.algorithm.nick() == "quickshift" { &frames[FRAMES as usize - 3..] } else { &frames };
        found.push((format!("{name}, temporal"), hashes(&Params { temporal: true, ..params }, frames)));
    }
    let expected: Vec<(String, [u64; 3])> =
        EXPECTED.iter().map(|&(name, hashes)| (name.into(), hashes)).collect();
    let table: String = found
        .iter()
        .map(|(name, [map, tables, drawn])| {
            format!("    (\"{name}\", [{map:#018x}, {tables:#018x}, {drawn:#018x}]),\n")
        })
        .collect();
    let what = ["label map", "tables", "drawn pixels"];
    let changed: Vec<String> = found
        .iter()
        .filter(|found| !expected.contains(found))
        .map(|(name, hashes)| match expected.iter().find(|(known, _)| known == name) {
            Some((_, known)) => {
                let first = (0..3).find(|&i| known[i] != hashes[i]).map_or("", |i| what[i]);
                format!("{name}: {first}")
            }
            None => format!("{name}: new"),
        })
        .collect();
    assert!(found == expected, "results changed: {changed:#?}\nIf that was wanted, and only then:\n{table}");
}

/// The frames that the benches time.
#[test]
fn label_maps_of_the_benches_are_the_known_ones() {
    for (width, height, known) in picture::KNOWN {
        let geometry = Geometry::new(width, height).unwrap();
        let info = FrameInfo::new(geometry, PixelFormat::Rgba);
        let plan = Plan::new(&Params::default(), info).unwrap();
        let mut engine = Engine::new(Cpu::new(0).unwrap(), plan).unwrap();
        let pixels = picture::rgba(width, height);
        let mut map = vec![0; geometry.pixels()];
        let mut labels = Labels::new(geometry, &mut map, width as usize).unwrap();
        let frame = Frame::new(info, &[&pixels], &[4 * width as usize]).unwrap();
        engine.segment(&frame, &mut labels, Outputs::default()).unwrap();
        let hash = picture::hash(&map);
        assert_eq!(
            hash, known,
            "{width}x{height}: the label map changed; if that was wanted, its hash is {hash:#018x}"
        );
    }
}
