// SPDX-License-Identifier: MPL-2.0
//! Segments the pictures of a folder as a video with the library alone and writes which identity each pixel has.
//!
//! `cargo run --release --no-default-features --example track_video -- frames out --superpixels 600`
//!
//! `out` gets one 16-bit gray PNG a frame with the low 16 bits of the track ids.

use std::path::PathBuf;

use clap::Parser;
use gstsuperpixel::algo::{AlgorithmParams, lsc, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge};
use gstsuperpixel::temporal;
use superpixel_output::{Folder, Layout, Request};

#[derive(Parser)]
#[command(about)]
struct Args {
    /// Folder of pictures (PNG or JPEG) of one size, in the order of their names.
    frames: PathBuf,
    /// Folder to write; new or empty.
    out: PathBuf,
    /// Replace files of the same names in a folder that has others; those stay.
    #[arg(long)]
    force: bool,
    /// Wanted number of superpixels; 600 without a number of regions.
    #[arg(long)]
    superpixels: Option<u32>,
    /// Higher = more regular.
    #[arg(long, default_value_t = slic::COMPACTNESS.default)]
    compactness: f32,
    /// How strongly a pixel keeps its region.
    #[arg(long, default_value_t = temporal::INERTIA.default)]
    inertia: f32,
    /// Linear spectral clustering instead of SLIC.
    #[arg(long)]
    lsc: bool,
    /// Merge superpixels, the most alike first, until exactly so many regions are left; 0 = off. Without the number of
    /// superpixels their size follows.
    #[arg(long, default_value_t = hierarchy::REGIONS.default)]
    regions: u32,
    /// Merge superpixels that touch: how many times as far in color as the nearest; 0 = off, usual 1.5 to 2.5.
    #[arg(long, default_value_t = merge::MERGE.default)]
    merge: f32,
    /// Never merge across a larger color difference (Delta E); 0 = no limit.
    #[arg(long, default_value_t = merge::MAX_DISTANCE.default)]
    merge_max_distance: f32,
    /// Segment every frame by itself: the identity is the label.
    #[arg(long)]
    per_frame: bool,
}

/// One picture a frame, named by its number.
const LAYOUT: Layout = Layout {
    program: "track_video",
    names: |name| {
        let number = name.to_str().and_then(|name| name.strip_suffix(".png"));
        number.is_some_and(|number| number.len() >= 5 && number.bytes().all(|digit| digit.is_ascii_digit()))
    },
    marker: None,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(&args.frames)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let request = Request { path: &args.out, inputs: &[&args.frames], force: args.force };
    let folder = Folder::begin(&request, LAYOUT)?;
    let slic = slic::Params { compactness: args.compactness, ..Default::default() };
    let params = Params {
        superpixels: args.superpixels.unwrap_or(if args.regions > 0 { 0 } else { 600 }),
        hierarchy: hierarchy::Params { regions: args.regions, ..Default::default() },
        merge: merge::Params {
            ratio: args.merge,
            max_distance: args.merge_max_distance,
            ..Default::default()
        },
        temporal: !args.per_frame,
        temporal_inertia: args.inertia,
        algorithm: if args.lsc {
            AlgorithmParams::Lsc(lsc::Params::default())
        } else {
            AlgorithmParams::Slic(slic)
        },
        ..Default::default()
    };
    let mut engine = None;
    let (mut map, mut time) = (Vec::new(), std::time::Duration::ZERO);
    for (i, path) in paths.iter().enumerate() {
        let picture = image::open(path)?.to_rgb8();
        let (width, height) = picture.dimensions();
        let geometry = Geometry::new(width, height)?;
        let info = FrameInfo::new(geometry, PixelFormat::Rgb);
        let engine = match &mut engine {
            Some(engine) => engine,
            none => none.insert(Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?),
        };
        map.resize(geometry.pixels(), 0u16);
        let mut labels = Labels::new(geometry, &mut map, width as usize)?;
        let frame = Frame::new(info, &[&picture], &[3 * width as usize])?;
        let start = std::time::Instant::now();
        let outputs = Outputs { table: true, ..Default::default() };
        let regions = engine.segment(&frame, &mut labels, outputs)?;
        time += start.elapsed();
        let ids: Vec<u16> = map.iter().map(|&l| regions.table[usize::from(l)].track_id as u16).collect();
        let out = folder.path(&format!("{i:05}.png"));
        image::ImageBuffer::<image::Luma<u16>, _>::from_vec(width, height, ids)
            .ok_or("label map of another size")?
            .save(out)?;
    }
    folder.finish()?;
    if let Some(engine) = &engine {
        for (stage, time) in engine.times().iter() {
            println!("{stage:18} {:8.3} ms in the last frame", time.as_secs_f64() * 1e3);
        }
    }
    println!("{} frames, {:.2} ms a frame", paths.len(), time.as_secs_f64() * 1e3 / paths.len() as f64);
    Ok(())
}
