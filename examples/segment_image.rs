// SPDX-License-Identifier: MPL-2.0
//! Segments a picture file with the library alone: no GStreamer needed.
//!
//! `cargo run --release --no-default-features --example segment_image -- photo.jpg out.png --superpixels 600`

use std::path::PathBuf;

use clap::Parser;
use gstsuperpixel::algo::{AlgorithmParams, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, ITERATIONS, MIN_REGION, Outputs, Params};
use gstsuperpixel::plan::Plan;

#[derive(Parser)]
#[command(about)]
struct Args {
    /// Picture to read (PNG or JPEG).
    input: PathBuf,
    /// Picture to write, with boundaries drawn.
    output: PathBuf,
    /// Wanted number of superpixels.
    #[arg(long, default_value_t = 400)]
    superpixels: u32,
    /// Higher = more regular.
    #[arg(long, default_value_t = slic::COMPACTNESS.default)]
    compactness: f32,
    /// Assign/update rounds.
    #[arg(long, default_value_t = ITERATIONS.default)]
    iterations: u32,
    /// Smallest superpixel, as a fraction of the grid step squared.
    #[arg(long, default_value_t = MIN_REGION.default)]
    min_region: f32,
    /// Paint every superpixel in its mean color.
    #[arg(long)]
    mean_color: bool,
    /// Also write the label map, as a 16-bit gray PNG.
    #[arg(long)]
    labels: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let mut picture = image::open(&args.input)?.to_rgb8();
    let (width, height) = picture.dimensions();
    let geometry = Geometry::new(width, height)?;
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let stride = 3 * width as usize;

    let slic =
        slic::Params { iterations: args.iterations, compactness: args.compactness, ..Default::default() };
    let params = Params {
        superpixels: args.superpixels,
        min_region: args.min_region,
        algorithm: AlgorithmParams::Slic(slic),
        ..Default::default()
    };
    let mut engine = Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?;
    let mut map = vec![0u16; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, width as usize)?;

    let outputs = Outputs { table: true, mean_color: args.mean_color, ..Default::default() };
    engine.segment(&Frame::new(info, &[&picture], &[stride])?, &mut labels, outputs)?;
    println!("{} superpixels, grid step {} px", engine.regions().count, engine.plan().grid.step);
    for (stage, time) in engine.times().iter() {
        println!("{stage:14} {:8.3} ms", time.as_secs_f64() * 1e3);
    }

    let drawing = Drawing {
        fill: if args.mean_color { Fill::MeanColor } else { Fill::None },
        boundaries: Some(Boundaries::default()),
    };
    let mut frame = FrameMut::new(info, vec![&mut picture], &[stride])?;
    engine.draw(&mut frame, &labels, &drawing)?;
    picture.save(&args.output)?;
    if let Some(path) = args.labels {
        image::ImageBuffer::<image::Luma<u16>, _>::from_vec(width, height, map)
            .ok_or("label map of another size")?
            .save(path)?;
    }
    Ok(())
}
