// SPDX-License-Identifier: MPL-2.0
//! Segments a picture file with the library alone: no GStreamer needed.
//!
//! `cargo run --release --no-default-features --example segment_image -- photo.jpg out.png --superpixels 600`

use std::path::{Path, PathBuf};

use clap::Parser;
use gstsuperpixel::algo::{Algorithm, AllParams, lsc, quickshift, slic, snic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, ITERATIONS, MIN_REGION, Outputs, Params};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::{hierarchy, merge, refine};
use superpixel_output::{NewFile, Request};

#[derive(Parser)]
#[command(about)]
struct Args {
    /// Picture to read (PNG or JPEG).
    input: PathBuf,
    /// Picture to write, with boundaries drawn.
    output: PathBuf,
    /// Algorithm.
    #[arg(long, default_value = "slic")]
    algo: Algorithm,
    /// Wanted number of superpixels; 400 without a number of regions.
    #[arg(long)]
    superpixels: Option<u32>,
    /// SLIC and SNIC: higher = more regular.
    #[arg(long, default_value_t = slic::COMPACTNESS.default)]
    compactness: f32,
    /// LSC: higher = more regular.
    #[arg(long, default_value_t = lsc::RATIO.default)]
    lsc_ratio: f32,
    /// Assign/update rounds.
    #[arg(long, default_value_t = ITERATIONS.default)]
    iterations: u32,
    /// Quick shift: width of the kernel in px.
    #[arg(long, default_value_t = quickshift::SIGMA.default)]
    sigma: f32,
    /// Quick shift: longest link in px.
    #[arg(long, default_value_t = quickshift::TAU.default)]
    tau: f32,
    /// Quick shift: weight of a color unit against a px.
    #[arg(long, default_value_t = quickshift::COLOR_SCALE.default)]
    color_scale: f32,
    /// Smallest superpixel, as a fraction of the grid step squared, with quick shift of tau squared.
    #[arg(long, default_value_t = MIN_REGION.default)]
    min_region: f32,
    /// Merge superpixels, the most alike first, until exactly so many regions are left; 0 = off. Without the number of
    /// superpixels their size follows.
    #[arg(long, default_value_t = hierarchy::REGIONS.default)]
    regions: u32,
    /// Merge superpixels that touch: how many times as far in color as the nearest; 0 = off, usual 1.5 to 2.5.
    #[arg(long, default_value_t = merge::MERGE.default)]
    merge: f32,
    /// Merge if one of two is near enough for the other, instead of each for the other.
    #[arg(long)]
    merge_either: bool,
    /// Never merge across a larger color difference (Delta E); 0 = no limit.
    #[arg(long, default_value_t = merge::MAX_DISTANCE.default)]
    merge_max_distance: f32,
    /// How often superpixels are merged.
    #[arg(long, default_value_t = merge::PASSES.default)]
    merge_passes: u32,
    /// Sweeps in which pixels at boundaries move to the superpixel that fits them best; 0 = off.
    #[arg(long, default_value_t = refine::REFINE.default)]
    refine: u32,
    /// Refining: a pixel's side of boundary weighs as much as this color difference (Delta E).
    #[arg(long, default_value_t = refine::SMOOTHNESS.default)]
    smoothness: f32,
    /// Paint every superpixel in its mean color.
    #[arg(long)]
    mean_color: bool,
    /// Mean colors of light instead of code values.
    #[arg(long)]
    linear_light: bool,
    /// Also write the label map, as a 16-bit gray PNG.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Replace outputs that are there already.
    #[arg(long)]
    force: bool,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    // Before the work, which would be lost.
    let begin =
        |path, inputs: &[&Path]| NewFile::begin(&Request { path, inputs, force: args.force }, |_| Ok(false));
    let output = begin(&args.output, &[&args.input])?;
    let label_map =
        args.labels.as_deref().map(|path| begin(path, &[&args.input, &args.output])).transpose()?;
    let mut picture = image::open(&args.input)?.to_rgb8();
    let (width, height) = picture.dimensions();
    let geometry = Geometry::new(width, height)?;
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let stride = 3 * width as usize;

    let iterations = args.iterations;
    let own = AllParams {
        slic: slic::Params { iterations, compactness: args.compactness, ..Default::default() },
        lsc: lsc::Params { iterations, ratio: args.lsc_ratio },
        quickshift: quickshift::Params {
            sigma: args.sigma,
            tau: args.tau,
            color_scale: args.color_scale,
            ..Default::default()
        },
        snic: snic::Params { compactness: args.compactness, ..Default::default() },
    };
    let algorithm = own.of(args.algo);
    let params = Params {
        superpixels: args.superpixels.unwrap_or(if args.regions > 0 { 0 } else { 400 }),
        hierarchy: hierarchy::Params { regions: args.regions, ..Default::default() },
        min_region: args.min_region,
        merge: merge::Params {
            ratio: args.merge,
            rule: if args.merge_either { merge::Rule::Either } else { merge::Rule::Mutual },
            max_distance: args.merge_max_distance,
            passes: args.merge_passes,
        },
        refine: refine::Params { sweeps: args.refine, smoothness: args.smoothness },
        algorithm,
        ..Default::default()
    };
    let mut engine = Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?;
    let mut map = vec![0u16; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, width as usize)?;

    let outputs = Outputs {
        table: true,
        mean_color: args.mean_color,
        linear_light: args.linear_light,
        ..Default::default()
    };
    engine.segment(&Frame::new(info, &[&picture], &[stride])?, &mut labels, outputs)?;
    println!("{} superpixels", engine.regions().count);
    for (stage, time) in engine.times().iter() {
        println!("{stage:14} {:8.3} ms", time.as_secs_f64() * 1e3);
    }

    let drawing = Drawing {
        fill: if args.mean_color { Fill::MeanColor } else { Fill::None },
        boundaries: Some(Boundaries::default()),
    };
    let mut frame = FrameMut::new(info, [&mut *picture], &[stride])?;
    engine.draw(&mut frame, &labels, &drawing)?;
    picture.save(output.path())?;
    output.finish()?;
    if let Some(file) = label_map {
        image::ImageBuffer::<image::Luma<u16>, _>::from_vec(width, height, map)
            .ok_or("label map of another size")?
            .save(file.path())?;
        file.finish()?;
    }
    Ok(())
}
