// SPDX-License-Identifier: MPL-2.0
//! Times the element in a pipeline against the library call that it makes, frame by frame in turns:
//! `cargo bench --bench element`, or `cargo bench --bench element -- --threads 1 --picture photo.png`.
//!
//! The pipeline is `appsrc ! superpixel overlay=none ! appsink`; its time runs from the push of a frame to the arrival of
//! the same frame with its metadata.

mod picture;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Parser;
use gst::prelude::*;
use gstsuperpixel::algo::{AlgorithmParams, slic};
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const WIDTH: u32 = 1920;
const HEIGHT: u32 = 1080;

#[derive(Parser)]
struct Args {
    /// Picture of 1920x1080; without it one is made.
    #[arg(long)]
    picture: Option<PathBuf>,
    /// Threads of either side; 0 takes all cores.
    #[arg(long, default_value_t = 0)]
    threads: u32,
    /// Grid step in px.
    #[arg(long, default_value_t = 32)]
    superpixel_size: u32,
    /// Assign/update rounds.
    #[arg(long, default_value_t = 10)]
    iterations: u32,
    /// Frames that are timed.
    #[arg(long, default_value_t = 40)]
    runs: usize,
    /// With the region table.
    #[arg(long)]
    table: bool,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The middle value.
fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

fn main() -> Result<()> {
    let mut args = Args::parse();
    if !args.bench {
        // `cargo test --benches` only wants to see that it runs.
        args.runs = 2;
    }
    gst::init()?;
    gstsuperpixel::plugin_register_static()?;

    let pixels = match &args.picture {
        Some(path) => image::open(path)?.to_rgba8().into_raw(),
        None => picture::rgba(WIDTH, HEIGHT),
    };
    let geometry = Geometry::new(WIDTH, HEIGHT)?;
    let info = FrameInfo::new(geometry, PixelFormat::Rgba);
    let stride = 4 * WIDTH as usize;
    let params = Params {
        superpixel_size: args.superpixel_size,
        algorithm: AlgorithmParams::Slic(slic::Params { iterations: args.iterations, ..Default::default() }),
        ..Default::default()
    };
    let outputs = Outputs { table: args.table, ..Default::default() };
    let mut engine = Engine::new(Cpu::new(args.threads)?, Plan::new(&params, info)?)?;
    let mut map = vec![0u16; geometry.pixels()];

    let video = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgba, WIDTH, HEIGHT).build()?;
    let source = gst_app::AppSrc::builder().caps(&video.to_caps()?).format(gst::Format::Time).build();
    let element = gst::ElementFactory::make("superpixel")
        .property_from_str("backend", "cpu")
        .property_from_str("overlay", "none")
        .property("threads", args.threads)
        .property("superpixel-size", args.superpixel_size)
        .property("iterations", args.iterations)
        .property("region-table", args.table)
        .build()?;
    if element.find_property("temporal").is_some() {
        // The library call starts every frame anew.
        element.set_property("temporal", false);
    }
    let sink = gst_app::AppSink::builder().sync(false).build();
    let pipeline = gst::Pipeline::new();
    pipeline.add_many([source.upcast_ref(), &element, sink.upcast_ref()])?;
    gst::Element::link_many([source.upcast_ref(), &element, sink.upcast_ref()])?;
    pipeline.set_state(gst::State::Playing)?;

    let buffer = gst::Buffer::from_slice(pixels.clone());
    let (mut calls, mut frames, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..args.runs + 3 {
        let mut call = || -> Result<Duration> {
            let start = Instant::now();
            let mut labels = Labels::new(geometry, &mut map, WIDTH as usize)?;
            engine.segment(&Frame::new(info, &[&pixels], &[stride])?, &mut labels, outputs)?;
            Ok(start.elapsed())
        };
        let through = || -> Result<Duration> {
            let start = Instant::now();
            source.push_buffer(buffer.clone())?;
            sink.pull_sample()?;
            Ok(start.elapsed())
        };
        // The second call finds the first one's data in the caches, so the order alternates.
        let (call, frame) = if run % 2 == 0 {
            let call = call()?;
            (call, through()?)
        } else {
            let frame = through()?;
            (call()?, frame)
        };
        if run >= 3 {
            calls.push(call);
            frames.push(frame);
            pairs.push(frame.as_secs_f64() / call.as_secs_f64());
        }
    }
    let stats = element.property::<gst::Structure>("stats");
    let mean = stats.get::<u64>("frame-time-us-mean")?;
    pipeline.set_state(gst::State::Null)?;

    pairs.sort_by(f64::total_cmp);
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "{WIDTH}x{HEIGHT}, step {}, iterations {}, threads {}, table {}: library call {:.2} ms (least {:.2}), pipeline \
         {:.2} ms (least {:.2}), mean by the element's stats {:.2} ms; pipeline to call, median of {} pairs: {:+.1} %",
        args.superpixel_size,
        args.iterations,
        args.threads,
        args.table,
        ms(median(&calls)),
        calls.iter().min().copied().map_or(f64::NAN, ms),
        ms(median(&frames)),
        frames.iter().min().copied().map_or(f64::NAN, ms),
        mean as f64 / 1e3,
        args.runs,
        100.0 * (pairs[pairs.len() / 2] - 1.0)
    );
    Ok(())
}
