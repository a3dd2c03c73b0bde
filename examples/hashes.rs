// SPDX-License-Identifier: MPL-2.0
//! Prints a hash of everything that the CPU backend computes for folders of pictures and of frames: run it before and after a change
//! that must not change results, and compare.
//!
//! ```sh
//! cargo run --release --no-default-features --example hashes -- --pictures photos --clip clip/frames > before.txt
//! ```

use std::path::{Path, PathBuf};

use clap::Parser;
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(about = "Hashes of label maps, tables, motion, neighbors and drawn pixels")]
struct Args {
    /// Folder of pictures (PNG or JPEG), each segmented by itself.
    #[arg(long)]
    pictures: Vec<PathBuf>,
    /// Folder of the frames of a clip, in the order of their names, segmented as a video.
    #[arg(long)]
    clip: Vec<PathBuf>,
    /// Most frames of a clip.
    #[arg(long, default_value_t = 40)]
    frames: usize,
    /// Threads; 0 takes one for each core.
    #[arg(long, default_value_t = 0)]
    threads: u32,
}

/// FNV-1a.
fn hash(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Settings that each picture is segmented with.
fn settings() -> Vec<(&'static str, Params)> {
    let slic = |params| Params { algorithm: AlgorithmParams::Slic(params), ..Params::default() };
    let lsc = |params| Params { algorithm: AlgorithmParams::Lsc(params), ..Params::default() };
    let quickshift = |params| Params { algorithm: AlgorithmParams::QuickShift(params), ..Params::default() };
    let merged = merge::Params { ratio: 2.0, max_distance: 12.0, ..Default::default() };
    vec![
        ("slic", slic(slic::Params::default())),
        (
            "slic adaptive rgb",
            Params {
                superpixels: 900,
                connectivity: false,
                ..slic(slic::Params {
                    adaptive_compactness: true,
                    color_space: ColorSpace::Rgb,
                    ..Default::default()
                })
            },
        ),
        (
            "slic merged",
            Params { merge: merged.clone(), superpixel_size: 9, ..slic(slic::Params::default()) },
        ),
        ("lsc", lsc(lsc::Params::default())),
        ("lsc fine", Params { superpixels: 1000, ..lsc(lsc::Params { ratio: 0.03, ..Default::default() }) }),
        ("lsc merged", Params { merge: merged.clone(), superpixel_size: 24, ..lsc(lsc::Params::default()) }),
        ("quickshift", quickshift(quickshift::Params::default())),
        (
            "quickshift small",
            Params {
                connectivity: false,
                ..quickshift(quickshift::Params { sigma: 2.0, tau: 6.0, ..Default::default() })
            },
        ),
        (
            "quickshift merged",
            Params {
                merge: merged,
                min_region: 0.5,
                ..quickshift(quickshift::Params { tau: 14.0, ..Default::default() })
            },
        ),
    ]
}

fn load(path: &Path) -> Result<(Geometry, Vec<u8>)> {
    let picture = image::open(path)?.into_rgb8();
    Ok((Geometry::new(picture.width(), picture.height())?, picture.into_raw()))
}

/// Segments and draws; the hashes of the label map, of the tables and of the drawn pixels.
fn results(engine: &mut Engine<Cpu>, mut pixels: Vec<u8>) -> Result<[u64; 3]> {
    const START: u64 = 0xcbf2_9ce4_8422_2325;
    let info = engine.plan().frame();
    let (width, stride) = (info.geometry.width() as usize, 3 * info.geometry.width() as usize);
    let mut map = vec![0u16; info.geometry.pixels()];
    let mut labels = Labels::new(info.geometry, &mut map, width)?;
    let outputs = Outputs { table: true, neighbors: true, mean_color: true, linear_light: false };
    let regions = engine.segment(&Frame::new(info, &[&pixels], &[stride])?, &mut labels, outputs)?;
    let tables = hash(START, bytemuck::cast_slice(&regions.table));
    let tables =
        hash(hash(tables, bytemuck::cast_slice(&regions.motion)), bytemuck::cast_slice(&regions.neighbors));
    let drawing = Drawing { fill: Fill::MeanColor, boundaries: Some(Boundaries::default()) };
    engine.draw(&mut FrameMut::new(info, [&mut pixels[..]], &[stride])?, &labels, &drawing)?;
    Ok([hash(START, bytemuck::cast_slice(&map)), tables, hash(START, &pixels)])
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_picture = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        (name.ends_with(".jpg") || name.ends_with(".png")) && !name.contains(".gt")
    };
    let mut files: Vec<_> =
        std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.retain(is_picture);
    files.sort();
    Ok(files)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let cpu = Cpu::new(args.threads)?;
    let line = |name: &Path, setting: &str, [map, tables, drawn]: [u64; 3]| {
        println!(
            "{} {setting}: {map:016x} {tables:016x} {drawn:016x}",
            name.file_name().unwrap_or_default().display()
        );
    };
    for path in args.pictures.iter().map(|folder| files(folder)).collect::<Result<Vec<_>>>()?.concat() {
        let (geometry, pixels) = load(&path)?;
        for (name, params) in settings() {
            let plan = Plan::new(&params, FrameInfo::new(geometry, PixelFormat::Rgb))?;
            line(&path, name, results(&mut Engine::new(cpu.clone(), plan)?, pixels.clone())?);
        }
    }
    for folder in &args.clip {
        let frames = files(folder)?;
        for (name, params) in settings() {
            let params = Params { temporal: true, ..params };
            let mut engine = None;
            for path in frames.iter().take(args.frames) {
                let (geometry, pixels) = load(path)?;
                let engine = match &mut engine {
                    Some(engine) => engine,
                    none => {
                        let plan = Plan::new(&params, FrameInfo::new(geometry, PixelFormat::Rgb))?;
                        none.insert(Engine::new(cpu.clone(), plan)?)
                    }
                };
                line(path, &format!("{name}, {}", folder.display()), results(engine, pixels)?);
            }
        }
    }
    Ok(())
}
