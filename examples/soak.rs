// SPDX-License-Identifier: MPL-2.0
//! Runs pipelines for minutes or hours and disturbs them all the while: properties, caps, flushing seeks, reverse rates,
//! restarts, relinks. Samples memory, threads and open files, and fails where one of them grows:
//!
//! ```sh
//! cargo run --release --example soak -- --minutes 60 --csv soak.csv --svg soak.svg
//! ```
//!
//! The first `--warm-up` of the time is not judged: pools fill, the allocator makes its arenas, every size has been there once.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Parser;
use gst::glib;
use gst::prelude::*;

type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Shortest side of a frame: `videotestsrc pattern=ball` writes in front of its line where a frame is narrower than the ball's 40 pixels.
const LEAST_SIDE: i32 = 48;

/// Longest wait for a state, a frame or the end of a disturbance.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(60);

#[derive(Parser, Clone)]
struct Args {
    /// How long.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Backend of the elements.
    #[arg(long, default_value = "cpu")]
    backend: String,
    /// Frames in flight with CUDA.
    #[arg(long, default_value_t = 2)]
    async_depth: u32,
    /// Pipelines side by side.
    #[arg(long, default_value_t = 2)]
    pipelines: u32,
    /// Largest frame.
    #[arg(long, default_value = "1280x720")]
    size: Size,
    /// Every frame has that size.
    #[arg(long)]
    one_size: bool,
    /// Disturbances that are left out.
    #[arg(long, value_delimiter = ',')]
    without: Vec<Disturbance>,
    /// Share of the time that is not judged.
    #[arg(long, default_value_t = 0.3)]
    warm_up: f64,
    /// MB by which resident memory may grow after that: from the mean of the first fifth to the mean of the last.
    #[arg(long, default_value_t = 32.0)]
    bound: f64,
    /// Seconds from sample to sample.
    #[arg(long, default_value_t = 2.0)]
    every: f64,
    /// Seed of the disturbances.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// New file for the samples; otherwise they are printed.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// New file for a plot.
    #[arg(long)]
    svg: Option<PathBuf>,
}

/// Creates a file that is not there: one that is may be somebody's.
fn create(path: &Path) -> Result<File> {
    Ok(File::create_new(path).map_err(|error| format!("{}: {error}; name a new file", path.display()))?)
}

#[derive(Debug, Clone, Copy)]
struct Size {
    width: i32,
    height: i32,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        let (width, height) = sides.ok_or_else(|| format!("{text} is not WIDTHxHEIGHT"))?;
        Ok(Self { width, height })
    }
}

/// A disturbance of a playing pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Disturbance {
    Property,
    Caps,
    Seek,
    Reverse,
    Restart,
    Relink,
}

const DISTURBANCES: [Disturbance; 6] = [
    Disturbance::Property,
    Disturbance::Caps,
    Disturbance::Seek,
    Disturbance::Reverse,
    Disturbance::Restart,
    Disturbance::Relink,
];

/// Numbers of a fixed sequence (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn part(&mut self) -> f32 {
        self.below(10_001) as f32 / 10_000.0
    }

    fn choose<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len() as u64) as usize]
    }
}

/// Counters of all pipelines.
#[derive(Default)]
struct Counters {
    frames_in: AtomicU64,
    frames_out: AtomicU64,
    disturbances: AtomicU64,
    errors: AtomicU64,
    stop: AtomicBool,
}

/// A value for a property, affordable at any size.
fn set_property(random: &mut Random, element: &gst::Element) {
    let properties = element.list_properties();
    let property = random.choose(&properties.iter().collect::<Vec<_>>());
    let name = property.name();
    let fixed =
        ["backend", "threads", "cuda-device-id", "async-depth", "name", "parent", "qos"].contains(&name);
    if fixed || !property.flags().contains(glib::ParamFlags::WRITABLE) {
        return;
    }
    if let Some(spec) = property.downcast_ref::<glib::ParamSpecUInt>() {
        let most = match name {
            "superpixels" => 5000,
            "superpixel-size" => 80,
            "iterations" => 6,
            _ => spec.maximum(),
        };
        let value = u64::from(spec.minimum()) + random.below(u64::from(most - spec.minimum()) + 1);
        element.set_property(name, value as u32);
    } else if let Some(spec) = property.downcast_ref::<glib::ParamSpecFloat>() {
        let most = if matches!(name, "sigma" | "tau") { 3.0 } else { spec.maximum() };
        element.set_property(name, spec.minimum() + random.part().powi(3) * (most - spec.minimum()));
    } else if property.downcast_ref::<glib::ParamSpecBoolean>().is_some() {
        element.set_property(name, random.below(2) == 0);
    } else if let Some(spec) = property.downcast_ref::<glib::ParamSpecEnum>() {
        let values: Vec<String> =
            spec.enum_class().values().iter().map(|value| value.nick().into()).collect();
        let value = &values[random.below(values.len() as u64) as usize];
        // At these sizes a frame of it takes a second.
        if value != "quickshift" || random.below(8) == 0 {
            element.set_property_from_str(name, value);
        }
    }
}

/// Caps of a drawn format and size.
fn caps(random: &mut Random, args: &Args) -> gst::Caps {
    let formats = ["NV12", "I420", "RGB", "BGRx", "RGBA", "GRAY8", "P010_10LE", "xBGR"];
    let Size { width, height } = args.size;
    let (width, height) = if args.one_size {
        (width, height)
    } else {
        let part = random.part().mul_add(0.9, 0.1);
        (((width as f32 * part) as i32).max(LEAST_SIDE), ((height as f32 * part) as i32).max(LEAST_SIDE))
    };
    gst::Caps::builder("video/x-raw")
        .field("format", random.choose(&formats))
        .field("width", width)
        .field("height", height)
        .field("framerate", gst::Fraction::new(25, 1))
        .build()
}

/// A pipeline that is played and disturbed until it is told to stop.
struct Player {
    args: Args,
    random: Random,
    counters: Arc<Counters>,
    pipeline: gst::Pipeline,
    element: gst::Element,
}

impl Player {
    fn new(args: &Args, seed: u64, counters: &Arc<Counters>) -> Result<Self> {
        let labels = if seed.is_multiple_of(2) { "superpixellabels on-missing=zero !" } else { "" };
        let line = format!(
            "videotestsrc name=source pattern=ball ! capsfilter name=caps ! queue max-size-buffers=2 ! identity name=before ! \
             superpixel name=superpixel backend={} threads=2 async-depth={} ! identity name=after ! {labels} \
             fakesink sync=false",
            args.backend, args.async_depth
        );
        let pipeline: gst::Pipeline = gst::parse::launch(&line)?.downcast().map_err(|_| "not a pipeline")?;
        let element = pipeline.by_name("superpixel").ok_or("no element")?;
        for (pad, out) in [("sink", false), ("src", true)] {
            let counters = counters.clone();
            let pad = element.static_pad(pad).ok_or("no pad")?;
            pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
                let count = if out { &counters.frames_out } else { &counters.frames_in };
                count.fetch_add(1, Ordering::Relaxed);
                gst::PadProbeReturn::Ok
            });
        }
        let random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        Ok(Self { args: args.clone(), random, counters: counters.clone(), pipeline, element })
    }

    fn named(&self, name: &str) -> Result<gst::Element> {
        self.pipeline.by_name(name).ok_or_else(|| format!("no element {name}").into())
    }

    fn play(&self) -> Result<()> {
        self.pipeline.set_state(gst::State::Playing)?;
        let (result, state, _) = self.pipeline.state(PATIENCE);
        result?;
        if state == gst::State::Playing { Ok(()) } else { Err(format!("not playing but {state:?}").into()) }
    }

    fn disturb(&mut self, how: Disturbance) -> Result<()> {
        match how {
            Disturbance::Property => set_property(&mut self.random, &self.element),
            Disturbance::Caps => {
                let caps = caps(&mut self.random, &self.args);
                self.change_caps(caps)?;
            }
            Disturbance::Seek | Disturbance::Reverse => {
                let place = gst::ClockTime::from_mseconds(self.random.below(60_000) + 1);
                let flags = gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE;
                let (rate, start, stop) = if how == Disturbance::Seek {
                    (1.0, place, None)
                } else {
                    (-1.0, gst::ClockTime::ZERO, Some(place + gst::ClockTime::from_seconds(600)))
                };
                let (set, none) = (gst::SeekType::Set, gst::SeekType::None);
                let kind = if stop.is_some() { set } else { none };
                self.pipeline.seek(rate, flags, set, start, kind, stop)?;
            }
            Disturbance::Restart => {
                let state = self.random.choose(&[gst::State::Null, gst::State::Ready, gst::State::Paused]);
                self.pipeline.set_state(state)?;
                self.play()?;
            }
            Disturbance::Relink => self.relink()?,
        }
        Ok(())
    }

    /// Changes the caps between two frames, in the thread of the source: a change from another thread between the source's query and its
    /// caps event would have the filter refuse what it has just offered.
    fn change_caps(&self, caps: gst::Caps) -> Result<()> {
        let filter = self.named("caps")?;
        let pad = self.named("source")?.static_pad("src").ok_or("no pad")?;
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            filter.set_property("caps", &caps);
            gst::PadProbeReturn::Remove
        });
        Ok(())
    }

    /// Takes the element out, between two frames, and puts it back.
    fn relink(&self) -> Result<()> {
        let (before, after) = (self.named("before")?, self.named("after")?);
        let element = self.element.clone();
        let pad = before.static_pad("src").ok_or("no pad")?;
        let (done, wait) = std::sync::mpsc::channel();
        let probe = pad.add_probe(gst::PadProbeType::BLOCK_DOWNSTREAM, move |_, _| {
            before.unlink(&element);
            element.unlink(&after);
            let linked = gst::Element::link_many([&before, &element, &after]).is_ok();
            let _ = done.send(linked);
            gst::PadProbeReturn::Remove
        });
        // A pipeline at its end sends nothing more.
        match wait.recv_timeout(Duration::from_secs(10)) {
            Ok(true) => Ok(()),
            Ok(false) => Err("cannot be linked again".into()),
            Err(_) => {
                if let Some(probe) = probe {
                    pad.remove_probe(probe);
                }
                Ok(())
            }
        }
    }

    /// Handles what the pipeline says: an error or an end starts it anew.
    fn listen(&self) -> Result<()> {
        let Some(bus) = self.pipeline.bus() else { return Ok(()) };
        while let Some(message) = bus.pop() {
            match message.view() {
                gst::MessageView::Error(error) => {
                    self.counters.errors.fetch_add(1, Ordering::Relaxed);
                    let from = error.src().map(|object| object.name().to_string()).unwrap_or_default();
                    eprintln!("error from {from}: {} ({:?})", error.error(), error.debug());
                }
                gst::MessageView::Eos(_) => {}
                gst::MessageView::Latency(_) => {
                    let _ = self.pipeline.recalculate_latency();
                    continue;
                }
                _ => continue,
            }
            self.pipeline.set_state(gst::State::Null)?;
            bus.set_flushing(true);
            bus.set_flushing(false);
            self.play()?;
        }
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let usable: Vec<_> =
            DISTURBANCES.into_iter().filter(|how| !self.args.without.contains(how)).collect();
        let caps = caps(&mut self.random, &self.args);
        self.named("caps")?.set_property("caps", caps);
        self.play()?;
        while !self.counters.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(self.random.below(200)));
            if !usable.is_empty() {
                // Properties more often than what starts the stream anew.
                let how = self.random.choose(&usable);
                let how = if self.random.below(2) == 0 && usable.contains(&Disturbance::Property) {
                    Disturbance::Property
                } else {
                    how
                };
                self.disturb(how).map_err(|error| format!("{how:?}: {error}"))?;
                self.counters.disturbances.fetch_add(1, Ordering::Relaxed);
            }
            self.listen()?;
        }
        Ok(())
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
        if let Some(bus) = self.pipeline.bus() {
            bus.set_flushing(true);
        }
    }
}

/// One value of a sample.
type Reading = fn(&Sample) -> f64;

/// Resources that the process holds at one time.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    seconds: f64,
    /// MB in memory.
    resident: f64,
    /// MB of that by kind of mapping.
    mappings: Mappings,
    /// MB that the allocator has handed out, as the C library counts them.
    heap: f64,
    threads: f64,
    files: f64,
    frames_in: u64,
    frames_out: u64,
    disturbances: u64,
    errors: u64,
}

/// Resident memory by kind of mapping, in MB.
#[derive(Debug, Clone, Copy, Default)]
struct Mappings {
    /// Heap, stacks and what is mapped privately without a file.
    anonymous: f64,
    /// Shared without a file of this machine: pinned memory of a device driver, among others.
    shared: f64,
    /// Of a device's files.
    device: f64,
    /// Programs and libraries.
    files: f64,
}

impl Mappings {
    /// Reads `/proc/self/smaps`, whose mappings each begin with a line of addresses.
    fn take() -> Self {
        let mut found = Self::default();
        let mut kind = 0;
        for line in std::fs::read_to_string("/proc/self/smaps").unwrap_or_default().lines() {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap_or_default();
            if first == "Rss:" {
                let mb = words.next().and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0;
                let Self { anonymous, shared, device, files } = &mut found;
                *[anonymous, shared, device, files][kind] += mb;
            } else if !first.ends_with(':') && first.contains('-') {
                let shares = words.next().is_some_and(|flags| flags.ends_with('s'));
                let path = words.nth(3).unwrap_or_default();
                kind = match (path, shares) {
                    (path, _) if path.starts_with("/dev/nvidia") => 2,
                    (_, true) => 1,
                    (path, _) if path.starts_with('/') && !path.starts_with("/dev/zero") => 3,
                    _ => 0,
                };
            }
        }
        found
    }
}

/// The first fields of the C library's `struct mallinfo2`.
#[repr(C)]
struct Heap {
    arena: usize,
    ordblks: usize,
    smblks: usize,
    hblks: usize,
    hblkhd: usize,
    usmblks: usize,
    fsmblks: usize,
    uordblks: usize,
    fordblks: usize,
    keepcost: usize,
}

unsafe extern "C" {
    fn mallinfo2() -> Heap;
    fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

impl Sample {
    fn take(start: Instant, counters: &Counters) -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()).unwrap_or(0.0)
        };
        // SAFETY: the function has no preconditions and returns ten words by value.
        let heap = unsafe { mallinfo2() };
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            seconds: start.elapsed().as_secs_f64(),
            resident: number("VmRSS:") / 1024.0,
            mappings: Mappings::take(),
            heap: (heap.uordblks + heap.hblkhd) as f64 / f64::from(1 << 20),
            threads: number("Threads:"),
            files: std::fs::read_dir("/proc/self/fd").map_or(0.0, |files| files.count() as f64),
            frames_in: load(&counters.frames_in),
            frames_out: load(&counters.frames_out),
            disturbances: load(&counters.disturbances),
            errors: load(&counters.errors),
        }
    }

    const HEADER: &str = "seconds,resident_mb,anonymous_mb,shared_mb,device_mb,files_mb,heap_mb,threads,files,frames_in,\
                          frames_out,disturbances,errors";

    fn line(&self) -> String {
        let Self {
            seconds,
            resident,
            mappings: Mappings { anonymous, shared, device, files: mapped },
            heap,
            threads,
            files,
            frames_in,
            frames_out,
            disturbances,
            errors,
        } = self;
        format!(
            "{seconds:.1},{resident:.1},{anonymous:.1},{shared:.1},{device:.1},{mapped:.1},{heap:.1},{threads},{files},\
             {frames_in},{frames_out},{disturbances},{errors}"
        )
    }
}

/// How a value went: mean of the first and the last fifth, largest, and MB or pieces an hour by least squares.
struct Course {
    first: f64,
    last: f64,
    most: f64,
    slope: f64,
}

impl Course {
    fn of(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> Self {
        let mean = |samples: &[Sample], value: &dyn Fn(&Sample) -> f64| {
            samples.iter().map(value).sum::<f64>() / samples.len().max(1) as f64
        };
        let fifth = samples.len().div_ceil(5);
        let (time, level) = (mean(samples, &|s| s.seconds), mean(samples, &value));
        let spread: f64 = samples.iter().map(|s| (s.seconds - time).powi(2)).sum();
        let slope: f64 = samples.iter().map(|s| (s.seconds - time) * (value(s) - level)).sum();
        Self {
            first: mean(&samples[..fifth], &value),
            last: mean(&samples[samples.len() - fifth..], &value),
            most: samples.iter().map(&value).fold(0.0, f64::max),
            slope: if spread > 0.0 { slope / spread * 3600.0 } else { 0.0 },
        }
    }
}

/// Resident memory, heap and threads over time.
fn plot(samples: &[Sample], warm: f64) -> String {
    let (width, height) = (900.0, 360.0);
    let end = samples.last().map_or(1.0, |sample| sample.seconds);
    let most = samples.iter().map(|s| s.resident.max(s.heap).max(s.threads)).fold(1.0, f64::max) * 1.1;
    let (x, y) =
        (|t: f64| 50.0 + t / end * (width - 70.0), |v: f64| height - 30.0 - v / most * (height - 60.0));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    for step in 0..=4 {
        let value = most * f64::from(step) / 4.0;
        let _ = writeln!(
            svg,
            "<path d=\"M50 {0:.1}H{1}\" stroke=\"#ddd\"/><text x=\"4\" y=\"{0:.1}\">{value:.0}</text>",
            y(value),
            width - 20.0
        );
    }
    let _ = writeln!(
        svg,
        "<path d=\"M{0:.1} 20V{1}\" stroke=\"#999\" stroke-dasharray=\"4\"/>",
        x(warm),
        height - 30.0
    );
    let lines: [(&str, &str, Reading); 3] = [
        ("resident MB", "#c0392b", |s| s.resident),
        ("heap MB", "#2471a3", |s| s.heap),
        ("threads", "#7d8a2e", |s| s.threads),
    ];
    for (i, (name, color, value)) in lines.into_iter().enumerate() {
        let points: Vec<_> =
            samples.iter().map(|s| format!("{:.1},{:.1}", x(s.seconds), y(value(s)))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\"/><text x=\"{}\" y=\"16\" fill=\"{color}\">{name}</text>",
            points.join(" "),
            60 + 120 * i
        );
    }
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\">{end:.0} s</text>\n</svg>", width - 60.0, height - 10.0);
    svg
}

/// Prints how values went and says whether all stayed within bounds.
fn judge(args: &Args, samples: &[Sample], before: &Sample, after: &Sample) -> bool {
    let warm = args.minutes * 60.0 * args.warm_up;
    let judged: Vec<Sample> = samples.iter().copied().filter(|sample| sample.seconds >= warm).collect();
    if judged.len() < 5 {
        eprintln!("too few samples after the warm-up: nothing is judged");
        return false;
    }
    let mut good = true;
    println!(
        "{:<12}{:>10}{:>10}{:>10}{:>12}{:>10}{:>10}",
        "", "first", "last", "most", "an hour", "bound", ""
    );
    let values: [(&str, Reading, f64); 7] = [
        ("resident MB", |s| s.resident, args.bound),
        ("  anonymous", |s| s.mappings.anonymous, args.bound),
        ("  shared", |s| s.mappings.shared, args.bound),
        ("  device", |s| s.mappings.device, args.bound),
        ("heap MB", |s| s.heap, args.bound),
        // They come and go with restarts; means differ by chance.
        ("threads", |s| s.threads, 3.0),
        ("files", |s| s.files, 3.0),
    ];
    for (name, value, bound) in values {
        let Course { first, last, most, slope } = Course::of(&judged, value);
        let held = last - first <= bound;
        good &= held;
        let verdict = if held { "held" } else { "GROWN" };
        println!("{name:<12}{first:>10.1}{last:>10.1}{most:>10.1}{slope:>+12.1}{bound:>10.1}{verdict:>10}");
    }
    println!(
        "{} frames in, {} out, {} disturbances, {} errors",
        after.frames_in, after.frames_out, after.disturbances, after.errors
    );
    println!(
        "stopped: {:.1} MB resident, {:.1} MB heap, {} threads, {} files; at the start {:.1} MB, {} threads, {} files",
        after.resident, after.heap, after.threads, after.files, before.resident, before.threads, before.files
    );
    // A device driver keeps threads and files of its own; seen were 4 and 37.
    let (threads, files) = if args.backend == "cpu" { (1.0, 2.0) } else { (8.0, 48.0) };
    if after.threads > before.threads + threads || after.files > before.files + files {
        println!("threads or files are left after the last pipeline");
        good = false;
    }
    good && after.errors == 0 && after.frames_out > 0
}

fn main() -> Result<ExitCode> {
    let args = Args::parse();
    gst::init()?;
    gstsuperpixel::plugin_register_static()?;
    // Before the soak, which would be lost.
    let mut csv = args.csv.as_deref().map(create).transpose()?;
    let svg = args.svg.as_deref().map(create).transpose()?;
    let counters = Arc::new(Counters::default());
    let start = Instant::now();
    let before = Sample::take(start, &counters);
    let players: Vec<_> = (0..u64::from(args.pipelines))
        .map(|number| {
            let (args, counters) = (args.clone(), counters.clone());
            std::thread::spawn(move || {
                let result = Player::new(&args, args.seed * 100 + number, &counters)
                    .and_then(|mut player| player.run());
                counters.stop.store(true, Ordering::Relaxed);
                result
            })
        })
        .collect();
    let mut samples = Vec::new();
    match &mut csv {
        Some(file) => writeln!(file, "{}", Sample::HEADER)?,
        None => println!("{}", Sample::HEADER),
    }
    let length = Duration::from_secs_f64(args.minutes * 60.0);
    while start.elapsed() < length && !counters.stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_secs_f64(args.every));
        let sample = Sample::take(start, &counters);
        match &mut csv {
            // As it goes, for those who look in between.
            Some(file) => writeln!(file, "{}", sample.line())?,
            None => println!("{}", sample.line()),
        }
        samples.push(sample);
    }
    counters.stop.store(true, Ordering::Relaxed);
    for player in players {
        player.join().map_err(|_| "a player panicked")??;
    }
    // Threads of the pools end on their own.
    std::thread::sleep(Duration::from_secs(2));
    let after = Sample::take(start, &counters);
    // SAFETY: the function has no preconditions.
    unsafe { malloc_trim(0) };
    let trimmed = Sample::take(start, &counters);
    if let Some(mut file) = svg {
        file.write_all(plot(&samples, args.minutes * 60.0 * args.warm_up).as_bytes())?;
    }
    let good = judge(&args, &samples, &before, &after);
    println!("given back to the system on request: {:.1} MB", after.resident - trimmed.resident);
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
