// SPDX-License-Identifier: MPL-2.0
//! Times whole frames and their stages on one picture, over sizes, algorithms, superpixel sizes and backends, with what
//! the machine itself can do beside them.
//!
//! ```text
//! cargo run --release --no-default-features --features cli --bin superpixel-bench -- --sizes 1920x1080
//! ```

#[path = "../../benches/picture/mod.rs"]
mod picture;

#[path = "superpixel-bench/clip.rs"]
mod clip;
#[cfg(feature = "cuda")]
#[path = "superpixel-bench/cuda.rs"]
mod cuda;
#[path = "superpixel-bench/first.rs"]
mod first;

use std::fmt;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum};
use clip::{Clip, Frames, NO_FRAMES, Pictures};
use gstsuperpixel::algo::{Algorithm, AllParams, lsc, quickshift, slic, snic};
use gstsuperpixel::backend::Backend;
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, FrameMut, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{
    Boundaries, Drawing, Fill, ITERATIONS, Outputs, Params, SUPERPIXEL_SIZE, THREADS,
};
use gstsuperpixel::plan::Plan;
use gstsuperpixel::post::merge;
use serde_json::{Value, json};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(
    version,
    about = "Times superpixel segmentation: whole frames, their stages, and the machine's own limits"
)]
struct Args {
    /// Picture to segment (PNG or JPEG), scaled to each size, or a folder of them: the frames of a clip by name, there and
    /// back as often as wanted. Without it one is made.
    #[arg(long)]
    picture: Option<PathBuf>,
    /// Frame sizes.
    #[arg(long, value_delimiter = ',', default_value = "640x480,1280x720,1920x1080,3840x2160")]
    sizes: Vec<Size>,
    /// Grid steps in px.
    #[arg(long, value_delimiter = ',', default_values_t = [SUPERPIXEL_SIZE.default, 32])]
    superpixel_size: Vec<u32>,
    /// Algorithms.
    #[arg(long, value_delimiter = ',', default_value = "slic")]
    algorithms: Vec<Algorithm>,
    /// Where to compute.
    #[arg(long, default_value = "all")]
    backend: Choice,
    /// Assign/update rounds.
    #[arg(long, default_value_t = ITERATIONS.default)]
    iterations: u32,
    /// SLIC and SNIC: higher = more regular.
    #[arg(long, default_value_t = slic::COMPACTNESS.default)]
    compactness: f32,
    /// LSC: higher = more regular.
    #[arg(long, default_value_t = lsc::RATIO.default)]
    lsc_ratio: f32,
    /// Quick shift: width of the kernel in px.
    #[arg(long, default_value_t = quickshift::SIGMA.default)]
    sigma: f32,
    /// Quick shift: longest link in px.
    #[arg(long, default_value_t = quickshift::TAU.default)]
    tau: f32,
    /// Quick shift: weight of a color unit against a px.
    #[arg(long, default_value_t = quickshift::COLOR_SCALE.default)]
    color_scale: f32,
    /// Measure color differences in R', G', B' instead of Lab.
    #[arg(long)]
    rgb: bool,
    /// What to compute beside the label map.
    #[arg(long, value_delimiter = ',', default_value = "table")]
    outputs: Vec<Output>,
    /// Byte layout of the frames.
    #[arg(long, default_value = "rgba")]
    format: Format,
    /// Leave labels unconnected.
    #[arg(long)]
    no_connectivity: bool,
    /// Merge regions that touch: how many times as far in color as the nearest; 0 = off.
    #[arg(long, default_value_t = merge::MERGE.default)]
    merge: f32,
    /// Merge if one of two regions is near enough for the other, instead of each for the other.
    #[arg(long)]
    merge_either: bool,
    /// Never merge across a larger color difference; 0 = no limit.
    #[arg(long, default_value_t = merge::MAX_DISTANCE.default)]
    merge_max_distance: f32,
    /// How often regions are merged.
    #[arg(long, default_value_t = merge::PASSES.default)]
    merge_passes: u32,
    /// Mean colors of light instead of code values.
    #[arg(long)]
    linear_light: bool,
    /// Go on from frame to frame.
    #[arg(long)]
    temporal: bool,
    /// Threads of the CPU backend; 0 takes all cores.
    #[arg(long, default_value_t = THREADS.default)]
    threads: u32,
    /// Device of the CUDA backend; -1 takes the first that works.
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    cuda_device_id: i32,
    /// Frames that are timed; the median counts.
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// Frames before those, after the first.
    #[arg(long, default_value_t = 5)]
    warm_up: usize,
    /// Also write the figures as JSON; `-` is standard output, and then no table is printed.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Only say what the first frame takes, part by part: a device's own start, ours, the plan, the frame.
    #[arg(long)]
    first: bool,
    /// Time one frame for each line on standard input and answer with its milliseconds, until the input ends; for
    /// comparisons that take turns. Takes one size, superpixel size, algorithm and backend.
    #[arg(long)]
    on_demand: bool,
}

/// WIDTHxHEIGHT in px.
#[derive(Clone, Copy)]
struct Size(Geometry);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (width, height) = text.split_once('x').ok_or("not WIDTHxHEIGHT")?;
        let side = |text: &str| text.parse().map_err(|_| format!("{text} is not a number of pixels"));
        Geometry::new(side(width)?, side(height)?).map(Size).map_err(|e| e.to_string())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}x{}", self.0.width(), self.0.height()))
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Choice {
    Cpu,
    Cuda,
    /// Every backend that this machine has and that has the algorithm.
    All,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Output {
    /// Nothing else.
    Labels,
    /// The region table.
    Table,
    /// The region adjacency list.
    Neighbors,
    /// Boundaries drawn on the frame.
    Boundaries,
    /// Every region drawn in its mean color.
    MeanColor,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Rgba,
    Bgrx,
    Rgb,
}

impl Format {
    fn pixel(self) -> PixelFormat {
        match self {
            Self::Rgba => PixelFormat::Rgba,
            Self::Bgrx => PixelFormat::Bgrx,
            Self::Rgb => PixelFormat::Rgb,
        }
    }

    /// Lays out R, G, B, 255 as this format.
    fn pack(self, rgba: &[u8]) -> Vec<u8> {
        let pixels = rgba.chunks_exact(4);
        match self {
            Self::Rgba => rgba.to_vec(),
            Self::Bgrx => pixels.flat_map(|p| [p[2], p[1], p[0], p[3]]).collect(),
            Self::Rgb => pixels.flat_map(|p| [p[0], p[1], p[2]]).collect(),
        }
    }
}

/// What one row of the table is about.
#[derive(Clone)]
struct Case {
    size: Size,
    algorithm: Algorithm,
    params: Params,
    info: FrameInfo,
    outputs: Outputs,
    drawing: Option<Drawing>,
}

impl Case {
    fn new(args: &Args, size: Size, algorithm: Algorithm, superpixel_size: u32) -> Self {
        let wants = |output| args.outputs.contains(&output);
        let color_space = if args.rgb { ColorSpace::Rgb } else { ColorSpace::Lab };
        let own = AllParams {
            slic: slic::Params {
                iterations: args.iterations,
                compactness: args.compactness,
                color_space,
                ..Default::default()
            },
            lsc: lsc::Params { iterations: args.iterations, ratio: args.lsc_ratio },
            quickshift: quickshift::Params {
                sigma: args.sigma,
                tau: args.tau,
                color_scale: args.color_scale,
                color_space,
            },
            snic: snic::Params { compactness: args.compactness, color_space },
        };
        let drawing = Drawing {
            fill: if wants(Output::MeanColor) { Fill::MeanColor } else { Fill::None },
            boundaries: wants(Output::Boundaries).then(Boundaries::default),
        };
        Self {
            size,
            algorithm,
            params: Params {
                superpixel_size,
                connectivity: !args.no_connectivity,
                merge: merge::Params {
                    ratio: args.merge,
                    rule: if args.merge_either { merge::Rule::Either } else { merge::Rule::Mutual },
                    max_distance: args.merge_max_distance,
                    passes: args.merge_passes,
                },
                algorithm: own.of(algorithm),
                temporal: args.temporal,
                ..Default::default()
            },
            info: FrameInfo::new(size.0, args.format.pixel()),
            outputs: Outputs {
                table: wants(Output::Table),
                neighbors: wants(Output::Neighbors),
                mean_color: wants(Output::MeanColor),
                linear_light: args.linear_light,
            },
            drawing: (drawing != Drawing::default()).then_some(drawing),
        }
    }

    /// Bytes that no implementation can avoid moving: the frame is read, labels are written.
    fn least_bytes(&self) -> usize {
        let frame: usize = self.info.format.planes(self.size.0).map(|(row, rows)| row * rows).sum();
        frame + self.size.0.pixels() * size_of::<u16>()
    }
}

/// Something a machine can do at most, measured.
struct Limit {
    name: String,
    value: f64,
    unit: &'static str,
}

/// One backend on one device, as the table wants it.
trait Runner {
    /// Device and size in words.
    fn device(&self) -> String;
    /// Driver or system below the device.
    fn driver(&self) -> String;
    /// Measures the device itself; the first limit is the copy bandwidth in GB/s, read and write counted.
    fn limits(&self) -> Result<Vec<Limit>>;
    /// How many ms it took to open the device, part by part.
    fn opening(&self) -> &[(&'static str, f64)];
    /// Whether it has an algorithm.
    fn has(&self, algorithm: Algorithm) -> bool {
        let _ = algorithm;
        true
    }
    /// Gets ready to segment `clip` as often as wanted.
    fn job<'a>(&'a self, case: &Case, clip: &'a Clip) -> Result<Box<dyn Job + 'a>>;
}

/// A case on a backend.
trait Job {
    /// Runs the clip's next frame and returns its ms.
    fn frame(&mut self) -> Result<f64>;
    /// The stages in their order with their ms, medians; runs `runs` frames if the timed ones did not give them.
    fn stages(&mut self, runs: usize) -> Result<Vec<(&'static str, f64)>>;
    /// Wall-clock ms of a frame from host memory to labels in host memory, where that is not what `frame` times.
    fn round_trip(&mut self) -> Result<Option<f64>>;
    /// What the last frame gave: number of labels, grid step, the label map.
    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)>;
}

/// The median of each stage.
fn medians(samples: &[Vec<(&'static str, f64)>]) -> Vec<(&'static str, f64)> {
    // The first frame of a stream has other stages than those that go on from it.
    let Some(last) = samples.last() else { return Vec::new() };
    let of = |stage: &str| {
        median(samples.iter().flatten().filter(|(name, _)| *name == stage).map(|(_, time)| *time).collect())
    };
    last.iter().map(|(name, _)| (*name, of(name))).collect()
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The CPU backend by the clock.
struct CpuRunner {
    cpu: Cpu,
    opening: [(&'static str, f64); 1],
}

impl CpuRunner {
    fn open(threads: u32) -> Result<Self> {
        let start = Instant::now();
        Ok(Self { cpu: Cpu::new(threads)?, opening: [("threads", ms(start.elapsed()))] })
    }
}

/// Buffer of the copy test: far beyond every cache.
const COPY_BYTES: usize = 256 << 20;
const COPY_RUNS: usize = 7;

/// Copies with `threads` threads and returns GB/s, read and write counted.
fn copy_bandwidth(threads: usize) -> f64 {
    let from = vec![1u8; COPY_BYTES];
    let mut to = vec![2u8; COPY_BYTES];
    let part = COPY_BYTES.div_ceil(threads);
    let times = (0..COPY_RUNS).map(|_| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for (to, from) in to.chunks_mut(part).zip(from.chunks(part)) {
                scope.spawn(move || to.copy_from_slice(from));
            }
        });
        start.elapsed().as_secs_f64()
    });
    2.0 * COPY_BYTES as f64 / median(times.collect()) / 1e9
}

impl Runner for CpuRunner {
    fn device(&self) -> String {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        match model {
            Some((_, model)) => format!("{}, {model}", self.cpu.describe()),
            None => self.cpu.describe(),
        }
    }

    fn driver(&self) -> String {
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} {}", std::env::consts::OS, kernel.trim())
    }

    fn limits(&self) -> Result<Vec<Limit>> {
        let mut counts = vec![self.cpu.threads()];
        if self.cpu.threads() > 1 {
            counts.push(1);
        }
        Ok(counts
            .into_iter()
            .map(|threads| Limit {
                name: format!("memory copy, threads: {threads}"),
                value: copy_bandwidth(threads),
                unit: "GB/s",
            })
            .collect())
    }

    fn opening(&self) -> &[(&'static str, f64)] {
        &self.opening
    }

    fn job<'a>(&'a self, case: &Case, clip: &'a Clip) -> Result<Box<dyn Job + 'a>> {
        let engine = Engine::new(self.cpu.clone(), Plan::new(&case.params, case.info)?)?;
        let mut job = CpuJob {
            case: case.clone(),
            engine,
            frames: clip.there_and_back(),
            drawn: Vec::new(),
            map: vec![0; case.size.0.pixels()],
            stages: Vec::new(),
        };
        if case.drawing.is_some() {
            job.drawn.clone_from(&clip.frames[0]);
        }
        Ok(Box::new(job))
    }
}

struct CpuJob<'a> {
    case: Case,
    engine: Engine<Cpu>,
    frames: Frames<'a>,
    /// What is drawn on; every frame draws over the last one, which costs the same.
    drawn: Vec<u8>,
    map: Vec<u16>,
    /// Stage times of every frame so far.
    stages: Vec<Vec<(&'static str, f64)>>,
}

impl Job for CpuJob<'_> {
    fn frame(&mut self) -> Result<f64> {
        let geometry = self.case.size.0;
        let stride = self.case.info.format.planes(geometry).map(|(row, _)| row).next().unwrap_or(0);
        let frame = Frame::new(self.case.info, &[self.frames.next().ok_or(NO_FRAMES)?], &[stride])?;
        let mut labels = Labels::new(geometry, &mut self.map, geometry.width() as usize)?;
        let start = Instant::now();
        self.engine.segment(&frame, &mut labels, self.case.outputs)?;
        if let Some(drawing) = &self.case.drawing {
            let mut target = FrameMut::new(self.case.info, [self.drawn.as_mut_slice()], &[stride])?;
            self.engine.draw(&mut target, &labels, drawing)?;
        }
        let whole = ms(start.elapsed());
        self.stages.push(self.engine.times().iter().map(|(name, time)| (name, ms(time))).collect());
        Ok(whole)
    }

    fn stages(&mut self, _: usize) -> Result<Vec<(&'static str, f64)>> {
        Ok(medians(&self.stages))
    }

    fn round_trip(&mut self) -> Result<Option<f64>> {
        Ok(None)
    }

    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)> {
        Ok((self.engine.regions().count, self.engine.plan().grid().step(), self.map.clone()))
    }
}

/// Opens the wanted backends.
fn runners(args: &Args) -> Result<Vec<Box<dyn Runner>>> {
    let mut list: Vec<Box<dyn Runner>> = Vec::new();
    if args.backend != Choice::Cuda {
        list.push(Box::new(CpuRunner::open(args.threads)?));
    }
    #[cfg(feature = "cuda")]
    if args.backend != Choice::Cpu {
        match cuda::CudaRunner::open(args.cuda_device_id) {
            Ok(runner) => list.push(Box::new(runner)),
            Err(error) if args.backend == Choice::All => eprintln!("no CUDA: {error}"),
            Err(error) => return Err(error),
        }
    }
    #[cfg(not(feature = "cuda"))]
    if args.backend == Choice::Cuda {
        return Err("this build has no CUDA backend; build it with the feature cuda".into());
    }
    Ok(list)
}

/// The middle value, or the mean of the two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() % 2 {
        1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The figures of one case.
struct Row {
    case: Case,
    step: u32,
    regions: u32,
    hash: u64,
    /// What the plan needs: stages and memory.
    plan_ms: f64,
    /// The first frame behind it.
    first_ms: f64,
    ms: f64,
    fastest_ms: f64,
    slowest_ms: f64,
    stages: Vec<(&'static str, f64)>,
    /// From host memory to host memory, where `ms` leaves that out.
    round_trip_ms: Option<f64>,
    /// Time of the unavoidable bytes at the copy bandwidth.
    floor_ms: f64,
}

fn measure(runner: &dyn Runner, case: &Case, clip: &Clip, args: &Args, bandwidth: f64) -> Result<Row> {
    let start = Instant::now();
    let mut job = runner.job(case, clip)?;
    let plan_ms = ms(start.elapsed());
    job.frame()?;
    let first_ms = ms(start.elapsed()) - plan_ms;
    for _ in 0..args.warm_up {
        job.frame()?;
    }
    let runs = args.runs.max(1);
    let times = (0..runs).map(|_| job.frame()).collect::<Result<Vec<_>>>()?;
    let stages = job.stages(runs)?;
    let mut round_trips = Vec::new();
    for _ in 0..runs {
        round_trips.extend(job.round_trip()?);
    }
    let round_trip_ms = (!round_trips.is_empty()).then(|| median(round_trips));
    let (regions, step, map) = job.result()?;
    Ok(Row {
        case: case.clone(),
        step,
        regions,
        hash: picture::hash(&map),
        plan_ms,
        first_ms,
        fastest_ms: times.iter().copied().fold(f64::INFINITY, f64::min),
        slowest_ms: times.iter().copied().fold(0.0, f64::max),
        ms: median(times),
        stages,
        round_trip_ms,
        floor_ms: case.least_bytes() as f64 / bandwidth / 1e6,
    })
}

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Row {
    fn print(&self) {
        println!(
            "{:>11}  {:10} S={:<4} {:>6} regions  {:9.3} ms  {:8.1} fps  ({:.3} to {:.3}; plan {:.1}, first {:.1})  {:7.1} x floor",
            self.case.size,
            self.case.algorithm.nick(),
            self.step,
            self.regions,
            self.ms,
            1e3 / self.ms,
            self.fastest_ms,
            self.slowest_ms,
            self.plan_ms,
            self.first_ms,
            self.ms / self.floor_ms
        );
        if let Some(time) = self.round_trip_ms {
            println!("{:13}from and to host memory {time:12.3} ms  {:8.1} fps", "", 1e3 / time);
        }
        for (name, time) in &self.stages {
            println!("{:13}{name:26} {time:9.3} ms  {:5.1} %", "", 100.0 * time / self.ms);
        }
    }

    fn json(&self) -> Value {
        let stages: serde_json::Map<String, Value> =
            self.stages.iter().map(|(name, time)| ((*name).to_owned(), json!(time))).collect();
        json!({
            "size": self.case.size.to_string(),
            "algorithm": self.case.algorithm.nick(),
            "superpixel_size": self.step,
            "regions": self.regions,
            "labels_hash": format!("{:016x}", self.hash),
            "plan_ms": self.plan_ms,
            "first_ms": self.first_ms,
            "ms": self.ms,
            "fastest_ms": self.fastest_ms,
            "slowest_ms": self.slowest_ms,
            "round_trip_ms": self.round_trip_ms,
            "floor_ms": self.floor_ms,
            "stages_ms": stages,
        })
    }
}

/// Today in UTC. Source: days to civil date, Howard Hinnant, "chrono-compatible low-level date algorithms".
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let days = (seconds / 86_400) as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    format!("{}-{month:02}-{day:02}", year_of_era + era * 400 + i64::from(month <= 2))
}

/// How busy the machine was in the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// What a start took.
fn parts(opening: &[(&'static str, f64)]) -> String {
    let texts: Vec<_> = opening.iter().map(|(name, time)| format!("{name} {time:.1}")).collect();
    format!("opening, ms: {}", texts.join(", "))
}

/// Answers each line of input with the time of one frame.
fn on_demand(args: &Args, runners: &[Box<dyn Runner>], pictures: &Pictures) -> Result<()> {
    let ([size], [algorithm], [superpixel_size], [runner]) =
        (&args.sizes[..], &args.algorithms[..], &args.superpixel_size[..], runners)
    else {
        return Err("--on-demand takes one size, algorithm, superpixel size and backend".into());
    };
    let case = Case::new(args, *size, *algorithm, *superpixel_size);
    let clip = pictures.clip(size.0, args.format);
    let mut job = runner.job(&case, &clip)?;
    for _ in 0..args.warm_up {
        job.frame()?;
    }
    for line in std::io::stdin().lock().lines() {
        line?;
        println!("{:.6}", job.frame()?);
        std::io::stdout().flush()?;
    }
    Ok(())
}

fn main() -> Result<()> {
    let args = Args::parse();
    let runners = runners(&args)?;
    let pictures = Pictures::open(&args)?;
    if args.first {
        return first::first_frame(&args, &runners, &pictures);
    }
    if args.on_demand {
        return on_demand(&args, &runners, &pictures);
    }
    let table = args.json.as_ref().is_none_or(|path| path.as_os_str() != "-");
    let source = args.picture.as_ref().map_or("made".into(), |path| path.display().to_string());
    let outputs: Vec<_> = args.outputs.iter().filter_map(ValueEnum::to_possible_value).collect();
    let outputs: Vec<_> = outputs.iter().map(|value| value.get_name()).collect();
    let mut results = Vec::new();
    for runner in &runners {
        let (device, driver, limits) = (runner.device(), runner.driver(), runner.limits()?);
        if table {
            let load = load().map_or_else(|| "unknown".into(), |load| format!("{load:.2}"));
            println!("{device}; {driver}; {}; load {load}; {}", today(), parts(runner.opening()));
            println!(
                "superpixel {}; picture: {source}, {}{}; iterations {}; outputs: {}; median of {} after {}",
                env!("CARGO_PKG_VERSION"),
                name_of(args.format),
                if args.temporal { ", going on from frame to frame" } else { "" },
                args.iterations,
                outputs.join(","),
                args.runs,
                args.warm_up
            );
            for limit in &limits {
                println!("{}: {:.1} {}", limit.name, limit.value, limit.unit);
            }
        }
        let bandwidth = limits.first().map_or(f64::NAN, |limit| limit.value);
        let mut rows = Vec::new();
        for size in &args.sizes {
            let clip = pictures.clip(size.0, args.format);
            let asked_for = args.backend != Choice::All;
            for algorithm in args.algorithms.iter().filter(|&&own| asked_for || runner.has(own)) {
                for superpixel_size in &args.superpixel_size {
                    let case = Case::new(&args, *size, *algorithm, *superpixel_size);
                    let row = measure(&**runner, &case, &clip, &args, bandwidth)?;
                    if table {
                        row.print();
                    }
                    rows.push(row.json());
                }
            }
        }
        let limits: Vec<Value> =
            limits.iter().map(|l| json!({"name": l.name, "value": l.value, "unit": l.unit})).collect();
        let opening: serde_json::Map<String, Value> =
            runner.opening().iter().map(|(name, time)| ((*name).to_owned(), json!(time))).collect();
        results.push(json!({"device": device, "driver": driver, "opening_ms": opening, "limits": limits, "cases": rows}));
    }
    if let Some(path) = &args.json {
        let document = json!({
            "date": today(),
            "version": env!("CARGO_PKG_VERSION"),
            "load": load(),
            "picture": source,
            "format": name_of(args.format),
            "temporal": args.temporal,
            "iterations": args.iterations,
            "compactness": args.compactness,
            "lsc_ratio": args.lsc_ratio,
            "sigma": args.sigma,
            "tau": args.tau,
            "color_scale": args.color_scale,
            "rgb": args.rgb,
            "connectivity": !args.no_connectivity,
            "merge": args.merge,
            "merge_either": args.merge_either,
            "merge_max_distance": args.merge_max_distance,
            "merge_passes": args.merge_passes,
            "linear_light": args.linear_light,
            "outputs": outputs,
            "runs": args.runs,
            "backends": results,
        });
        let text = format!("{document:#}\n");
        if table {
            std::fs::write(path, text)?;
        } else {
            print!("{text}");
        }
    }
    Ok(())
}
