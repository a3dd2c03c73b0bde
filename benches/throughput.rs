// SPDX-License-Identifier: MPL-2.0
//! Frames a second through the element on a CUDA device, from a source that costs next to nothing, and what limits it
//! beside them: `cargo bench --bench throughput`, or with `-- --sizes 1920x1080 --depths 0,2 --frames 2000`.
//!
//! The source repeats a few buffers whose memory it holds on to; the sink lets go of frames, reads their labels, or does
//! so behind a queue. What is timed lies between the first frames and the last, without start and end.

mod picture;

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use clap::Parser;
use cudarc::driver::CudaContext;
use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::ObjectSubclassIsExt;
use gstsuperpixel::meta::SuperpixelMeta;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const ON_DEVICE: &str = "video/x-raw(memory:CUDAMemory)";
/// Longest wait for the end of a pipeline.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(300);

#[derive(Parser)]
struct Args {
    /// Picture that is scaled to each size; without it one is made.
    #[arg(long)]
    picture: Option<PathBuf>,
    /// Frame sizes.
    #[arg(long, value_delimiter = ',', default_value = "1920x1080,3840x2160")]
    sizes: Vec<Size>,
    /// Values of `async-depth`.
    #[arg(long, value_delimiter = ',', default_value = "0,1,2,3,4")]
    depths: Vec<u32>,
    /// Grid step in px.
    #[arg(long, default_value_t = 16)]
    superpixel_size: u32,
    /// Assign/update rounds.
    #[arg(long, default_value_t = 5)]
    iterations: u32,
    /// Go on from frame to frame, as the element does unless told not to: then there is one lane, whatever `async-depth`.
    #[arg(long)]
    temporal: bool,
    /// Frames of a run, a tenth of which is not timed.
    #[arg(long, default_value_t = 3000)]
    frames: usize,
    /// Buffers that the source repeats.
    #[arg(long, default_value_t = 8)]
    buffers: usize,
    /// Leave frames in device memory out.
    #[arg(long)]
    no_device: bool,
    /// Leave frames in system memory out.
    #[arg(long)]
    no_system: bool,
    /// Set by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// WIDTHxHEIGHT in px.
#[derive(Clone, Copy)]
struct Size(u32, u32);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse().map_err(|_| format!("{text} is not a number of pixels"));
        let (width, height) = text.split_once('x').ok_or("not WIDTHxHEIGHT")?;
        Ok(Self(side(width)?, side(height)?))
    }
}

mod repeat {
    //! A source that repeats buffers.
    use std::sync::Mutex;

    use gst::glib;
    use gst_base::subclass::base_src::CreateSuccess;
    use gst_base::subclass::prelude::*;

    /// A stream to send, and the number of its frames.
    #[derive(Default)]
    pub struct Work {
        pub caps: Option<gst::Caps>,
        pub buffers: Vec<gst::Buffer>,
        pub frames: usize,
        pub sent: usize,
    }

    #[derive(Default)]
    pub struct Repeat(pub Mutex<Work>);

    #[glib::object_subclass]
    impl ObjectSubclass for Repeat {
        const NAME: &'static str = "SuperpixelBenchRepeat";
        type Type = super::Repeat;
        type ParentType = gst_base::PushSrc;
    }

    impl ObjectImpl for Repeat {}
    impl GstObjectImpl for Repeat {}

    impl ElementImpl for Repeat {
        fn pad_templates() -> &'static [gst::PadTemplate] {
            static TEMPLATES: std::sync::LazyLock<Vec<gst::PadTemplate>> = std::sync::LazyLock::new(|| {
                let (direction, presence) = (gst::PadDirection::Src, gst::PadPresence::Always);
                let template = gst::PadTemplate::new("src", direction, presence, &gst::Caps::new_any());
                template.into_iter().collect()
            });
            TEMPLATES.as_ref()
        }
    }

    impl BaseSrcImpl for Repeat {
        fn caps(&self, _filter: Option<&gst::Caps>) -> Option<gst::Caps> {
            self.0.lock().unwrap().caps.clone()
        }

        fn is_seekable(&self) -> bool {
            false
        }
    }

    impl PushSrcImpl for Repeat {
        fn create(&self, _: Option<&mut gst::BufferRef>) -> Result<CreateSuccess, gst::FlowError> {
            let mut work = self.0.lock().unwrap();
            if work.sent == work.frames {
                return Err(gst::FlowError::Eos);
            }
            // Another buffer with the same memory.
            let mut buffer = work.buffers[work.sent % work.buffers.len()].copy();
            if let Some(buffer) = buffer.get_mut() {
                buffer.set_pts(gst::ClockTime::from_mseconds(work.sent as u64));
                buffer.unset_flags(gst::BufferFlags::DISCONT);
            }
            work.sent += 1;
            Ok(CreateSuccess::NewBuffer(buffer))
        }
    }
}

glib::wrapper! {
    pub struct Repeat(ObjectSubclass<repeat::Repeat>)
        @extends gst_base::PushSrc, gst_base::BaseSrc, gst::Element, gst::Object;
}

/// Frames that the source sends.
struct Frames {
    caps: gst::Caps,
    buffers: Vec<gst::Buffer>,
}

/// Makes `count` frames of the picture, each shifted a little, where `line` puts them.
fn frames(args: &Args, size: Size, line: &str) -> Result<Frames> {
    let Size(width, height) = size;
    let rgba = match &args.picture {
        None => picture::rgba(width, height),
        Some(path) => {
            let filter = image::imageops::FilterType::CatmullRom;
            let file = image::open(path).map_err(|e| format!("{}: {e}", path.display()))?;
            image::imageops::resize(&file.to_rgba8(), width, height, filter).into_raw()
        }
    };
    let line = format!("appsrc name=in format=time ! {line} ! appsink name=out sync=false max-buffers=0");
    let pipeline = gst::parse::launch(&line)?.downcast::<gst::Pipeline>().map_err(|_| "not a pipeline")?;
    let source: gst_app::AppSrc = pipeline.by_name("in").ok_or("in")?.downcast().map_err(|_| "in")?;
    let sink: gst_app::AppSink = pipeline.by_name("out").ok_or("out")?.downcast().map_err(|_| "out")?;
    let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgba, width, height)
        .fps(gst::Fraction::new(30, 1))
        .build()?;
    source.set_caps(Some(&info.to_caps()?));
    pipeline.set_state(gst::State::Playing)?;
    let mut found = Frames { caps: gst::Caps::new_empty(), buffers: Vec::new() };
    for i in 0..args.buffers.max(1) {
        let mut shifted = rgba.clone();
        shifted.rotate_left(4 * 16 * i % rgba.len().max(1));
        source.push_buffer(gst::Buffer::from_mut_slice(shifted))?;
        let sample = sink.try_pull_sample(PATIENCE).ok_or_else(|| {
            error_on(&pipeline).unwrap_or_else(|| "no frame came out of the source's pipeline".into())
        })?;
        found.caps = sample.caps_owned().ok_or("no caps")?;
        found.buffers.push(sample.buffer_owned().ok_or("no buffer")?);
    }
    pipeline.set_state(gst::State::Null)?;
    Ok(found)
}

fn error_on(pipeline: &gst::Pipeline) -> Option<String> {
    match pipeline.bus()?.pop_filtered(&[gst::MessageType::Error])?.view() {
        gst::MessageView::Error(error) => Some(format!("{}: {:?}", error.error(), error.debug())),
        _ => None,
    }
}

/// Treatment of a frame at the end of the pipeline.
#[derive(Clone, Copy, PartialEq)]
enum Reader {
    Nobody,
    Sink,
    BehindQueue,
}

impl Reader {
    fn words(self) -> &'static str {
        match self {
            Self::Nobody => "labels unread",
            Self::Sink => "labels read",
            Self::BehindQueue => "labels read behind a queue",
        }
    }
}

#[derive(Default)]
struct Clock {
    frames: usize,
    from: Option<Instant>,
    to: Option<Instant>,
    sum: u64,
}

/// Plays `middle` between source and sink; returns frames a second and the element's counters.
fn play(
    frames: &Frames,
    count: usize,
    middle: &str,
    reader: Reader,
) -> Result<(f64, Option<gst::Structure>)> {
    let queue =
        if reader == Reader::BehindQueue { "! queue max-size-buffers=3 max-size-bytes=0" } else { "" };
    let line = format!("{middle} {queue} ! fakesink name=out sync=false");
    let bin = gst::parse::bin_from_description(&line, true)?;
    let source: Repeat = glib::Object::new();
    *source.imp().0.lock().unwrap() = repeat::Work {
        caps: Some(frames.caps.clone()),
        buffers: frames.buffers.clone(),
        frames: count,
        sent: 0,
    };
    let pipeline = gst::Pipeline::new();
    pipeline.add_many([source.upcast_ref::<gst::Element>(), bin.upcast_ref()])?;
    gst::Element::link_many([source.upcast_ref::<gst::Element>(), bin.upcast_ref()])?;
    let clock = Arc::<Mutex<Clock>>::default();
    let (to, warm) = (clock.clone(), count / 10);
    let pad = bin.by_name("out").and_then(|sink| sink.static_pad("sink")).ok_or("no sink")?;
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let Some(buffer) = info.buffer() else { return gst::PadProbeReturn::Ok };
        let mut clock = to.lock().unwrap();
        if reader != Reader::Nobody
            && let Some(meta) = SuperpixelMeta::from_buffer(buffer)
            && let Ok(map) = meta.label_buffer().map_readable()
        {
            // All bytes are in the host's memory once they are mapped.
            clock.sum += u64::from(map[map.len() - 1]);
        }
        clock.frames += 1;
        if clock.frames == warm {
            clock.from = Some(Instant::now());
        }
        if clock.frames == count {
            clock.to = Some(Instant::now());
        }
        gst::PadProbeReturn::Ok
    });
    pipeline.set_state(gst::State::Playing)?;
    let bus = pipeline.bus().ok_or("no bus")?;
    let end = bus.timed_pop_filtered(PATIENCE, &[gst::MessageType::Eos, gst::MessageType::Error]);
    let stats = bin.by_name("s").map(|element| element.property::<gst::Structure>("stats"));
    let error = match end.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Eos(_)) => None,
        Some(gst::MessageView::Error(error)) => Some(format!("{}: {:?}", error.error(), error.debug())),
        _ => Some("the pipeline does not end".into()),
    };
    pipeline.set_state(gst::State::Null)?;
    if let Some(error) = error {
        return Err(error.into());
    }
    let clock = clock.lock().unwrap();
    let (Some(from), Some(to)) = (clock.from, clock.to) else {
        return Err(format!("{} of {count} frames arrived", clock.frames).into());
    };
    Ok(((count - warm) as f64 / to.duration_since(from).as_secs_f64(), stats))
}

/// One line of the table.
fn row(what: &str, fps: f64, stats: Option<gst::Structure>) {
    let traffic = stats.map(|stats| {
        let frames = stats.get::<u64>("frames").unwrap_or(0).max(1) as f64;
        let bytes = |name: &str| stats.get::<u64>(name).map_or(0.0, |bytes| bytes as f64 / frames);
        format!(
            "  bytes a frame: pixels {:.0} up {:.0} down, results {:.0} down; {} regions",
            bytes("pixel-bytes-to-device"),
            bytes("pixel-bytes-from-device"),
            bytes("result-bytes-from-device"),
            stats.get::<u32>("regions").unwrap_or(0)
        )
    });
    println!("{what:86} {fps:9.1} fps  {:8.3} ms{}", 1e3 / fps, traffic.unwrap_or_default());
}

/// How often a second a frame could go up and one come down, through pinned memory and at the same time.
fn bus(bytes: usize) -> Result<f64> {
    const RUNS: u32 = 200;
    let context = CudaContext::new(0)?;
    let (up, down) = (context.new_stream()?, context.new_stream()?);
    // SAFETY: bytes of any value; both are filled before they are read.
    let (mut from, mut to) =
        unsafe { (context.alloc_pinned::<u8>(bytes)?, context.alloc_pinned::<u8>(bytes)?) };
    from.as_mut_slice()?.fill(1);
    to.as_mut_slice()?.fill(1);
    let (mut arrived, left) = (up.alloc_zeros::<u8>(bytes)?, down.alloc_zeros::<u8>(bytes)?);
    let mut once = || -> Result<()> {
        up.memcpy_htod(&from, &mut arrived)?;
        Ok(down.memcpy_dtoh(&left, &mut to)?)
    };
    once()?;
    up.synchronize()?;
    down.synchronize()?;
    let start = Instant::now();
    for _ in 0..RUNS {
        once()?;
    }
    up.synchronize()?;
    down.synchronize()?;
    Ok(f64::from(RUNS) / start.elapsed().max(Duration::from_nanos(1)).as_secs_f64())
}

fn main() -> Result<()> {
    let args = Args::parse();
    gst::init()?;
    gstsuperpixel::plugin_register_static()?;
    let element = |depth: u32, overlay: &str| {
        format!(
            "superpixel name=s backend=cuda superpixel-size={} iterations={} temporal={} async-depth={depth} overlay={overlay}",
            args.superpixel_size, args.iterations, args.temporal
        )
    };
    for size in &args.sizes {
        // Larger frames, fewer of them.
        let pixels = size.0 as usize * size.1 as usize;
        let count = (args.frames * 1920 * 1080 / pixels.max(1920 * 1080)).max(20);
        let name = format!("{}x{}", size.0, size.1);
        if !args.no_device {
            let line = format!("videoconvert ! video/x-raw,format=NV12 ! cudaupload ! {ON_DEVICE}");
            let frames = frames(&args, *size, &line)?;
            let (fps, _) = play(&frames, 50 * count, "identity", Reader::Nobody)?;
            row(&format!("{name} NV12 CUDAMemory, identity"), fps, None);
            for reader in [Reader::Nobody, Reader::Sink, Reader::BehindQueue] {
                for depth in &args.depths {
                    let (fps, stats) = play(&frames, count, &element(*depth, "none"), reader)?;
                    let what = format!(
                        "{name} NV12 CUDAMemory, overlay=none, {}, async-depth={depth}",
                        reader.words()
                    );
                    row(&what, fps, stats);
                }
            }
            for depth in &args.depths {
                let (fps, stats) = play(&frames, count, &element(*depth, "boundaries"), Reader::Nobody)?;
                row(&format!("{name} NV12 CUDAMemory, overlay=boundaries, async-depth={depth}"), fps, stats);
            }
        }
        if !args.no_system {
            let frames = frames(&args, *size, "video/x-raw,format=RGBA")?;
            let (fps, _) = play(&frames, 50 * count, "identity", Reader::Nobody)?;
            row(&format!("{name} RGBA system memory, identity"), fps, None);
            let fps = bus(4 * size.0 as usize * size.1 as usize)?;
            row(&format!("{name} RGBA up and down the bus at once, pinned"), fps, None);
            for overlay in ["none", "boundaries"] {
                for depth in &args.depths {
                    let (fps, stats) = play(&frames, count, &element(*depth, overlay), Reader::Nobody)?;
                    row(
                        &format!("{name} RGBA system memory, overlay={overlay}, async-depth={depth}"),
                        fps,
                        stats,
                    );
                }
            }
        }
    }
    Ok(())
}
