// SPDX-License-Identifier: MPL-2.0
//! Segments a picture file with the library alone: no GStreamer needed.
//!
//! `cargo run --release --no-default-features --example segment_image -- photo.jpg out.png --superpixels 600`

use std::path::{Path, PathBuf};

use clap::Parser;
use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Boundaries, Drawing, Fill, Outputs, ParamSet, Params, list_for_help};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::vectors::{self, Gradients, Outlines, SEAM, Style, TOLERANCE};
use superpixel_output::{NewFile, Request};

#[derive(Parser)]
#[command(about, after_help = list_for_help())]
struct Args {
    /// Picture to read (PNG or JPEG).
    input: PathBuf,
    /// Picture to write, with boundaries drawn.
    output: PathBuf,
    /// Algorithm.
    #[arg(long, default_value = "slic")]
    algo: Algorithm,
    /// Wanted number of superpixels; 400 where neither this nor a size or a number of regions is set.
    #[arg(long)]
    superpixels: Option<u32>,
    /// Any other parameter, as the element's property is called; may be given again. They are listed below.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Paint every superpixel in its mean color.
    #[arg(long)]
    mean_color: bool,
    /// Mean colors of light instead of code values.
    #[arg(long)]
    linear_light: bool,
    /// Also write the label map, as a 16-bit gray PNG.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Also write the regions as an SVG picture, in their mean colors and with smooth outlines.
    #[arg(long)]
    svg: Option<PathBuf>,
    /// Fill the regions of the SVG picture with gradients.
    #[arg(long, requires = "svg")]
    shading: bool,
    /// Replace outputs that are there already.
    #[arg(long)]
    force: bool,
}

/// Returns true if nothing says how many superpixels there are.
fn is_open(params: &Params) -> bool {
    let Params { superpixels, superpixel_size, .. } = Params::default();
    (params.superpixels, params.superpixel_size, params.hierarchy.regions)
        == (superpixels, superpixel_size, 0)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    // Before the work, which would be lost.
    let begin =
        |path, inputs: &[&Path]| NewFile::begin(&Request { path, inputs, force: args.force }, |_| Ok(false));
    let output = begin(&args.output, &[&args.input])?;
    let label_map =
        args.labels.as_deref().map(|path| begin(path, &[&args.input, &args.output])).transpose()?;
    let outputs_before: Vec<&Path> = [Some(&args.input), Some(&args.output), args.labels.as_ref()]
        .into_iter()
        .flatten()
        .map(PathBuf::as_path)
        .collect();
    let svg = args.svg.as_deref().map(|path| begin(path, &outputs_before)).transpose()?;
    let mut picture = image::open(&args.input)?.to_rgb8();
    let (width, height) = picture.dimensions();
    let geometry = Geometry::new(width, height)?;
    let info = FrameInfo::new(geometry, PixelFormat::Rgb);
    let stride = 3 * width as usize;

    let mut set = ParamSet { algorithm: args.algo, ..ParamSet::default() };
    args.settings.iter().try_for_each(|text| set.assign(text))?;
    match args.superpixels {
        Some(superpixels) => set.params.superpixels = superpixels,
        // The library knows how many superpixels an exact number of regions needs.
        None if is_open(&set.params) => set.params.superpixels = 400,
        None => {}
    }
    let params = set.params();
    let mut engine = Engine::new(Cpu::new(0)?, Plan::new(&params, info)?)?;
    let mut map = vec![0u16; geometry.pixels()];
    let mut labels = Labels::new(geometry, &mut map, width as usize)?;

    let outputs = Outputs {
        table: true,
        mean_color: args.mean_color || args.svg.is_some(),
        linear_light: args.linear_light,
        ..Default::default()
    };
    engine.segment(&Frame::new(info, &[&picture], &[stride])?, &mut labels, outputs)?;
    println!("{} superpixels", engine.regions().count);
    for (stage, time) in engine.times().iter() {
        println!("{stage:14} {:8.3} ms", time.as_secs_f64() * 1e3);
    }

    // Before boundaries are drawn into the picture.
    let gradients = if args.shading { Some(Gradients::of(&labels, &picture)?) } else { None };
    let drawing = Drawing {
        fill: if args.mean_color { Fill::MeanColor } else { Fill::None },
        boundaries: Some(Boundaries::default()),
    };
    let mut frame = FrameMut::new(info, [&mut *picture], &[stride])?;
    engine.draw(&mut frame, &labels, &drawing)?;
    picture.save(output.path())?;
    output.finish()?;
    if let Some(file) = svg {
        let table = &engine.regions().table;
        let style = |label: u32| {
            let region = table.get(label as usize);
            let color = region.map(|region| [0, 1, 2].map(|c| region.mean_rgb[c])).unwrap_or_default();
            let gradient = gradients.as_ref().and_then(|gradients| gradients.gradient(label, color));
            Style { label: label.into(), id: None, color, gradient }
        };
        let text = Outlines::of(&labels, TOLERANCE)?.svg(&vectors::Drawing {
            fill: Some(&style),
            seam: SEAM,
            lines: None,
        });
        std::fs::write(file.path(), text)?;
        file.finish()?;
    }
    if let Some(file) = label_map {
        image::ImageBuffer::<image::Luma<u16>, _>::from_vec(width, height, map)
            .ok_or("label map of another size")?
            .save(file.path())?;
        file.finish()?;
    }
    Ok(())
}
