// SPDX-License-Identifier: MPL-2.0
//! Times whole frames and their stages on one picture, over sizes, algorithms, superpixel sizes and backends, with what
//! the machine itself can do beside them.
//!
//! ```text
//! cargo run --release --no-default-features --features cli --bin superpixel-bench -- --sizes 1920x1080
//! ```

#[path = "../../benches/picture/mod.rs"]
mod picture;

#[cfg(feature = "cuda")]
#[path = "superpixel-bench/batch.rs"]
mod batch;
#[path = "superpixel-bench/clip.rs"]
mod clip;
#[path = "superpixel-bench/cpu.rs"]
mod cpu;
#[cfg(feature = "cuda")]
#[path = "superpixel-bench/cuda.rs"]
mod cuda;
#[path = "superpixel-bench/first.rs"]
mod first;
#[path = "superpixel-bench/format.rs"]
mod format;
#[path = "superpixel-bench/report.rs"]
mod report;

use std::fmt;
use std::fs::File;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use clap::{Parser, ValueEnum};
use clip::{Clip, Frames, NO_FRAMES, Pictures};
use format::Format;
use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::image::{FrameInfo, Geometry};
use gstsuperpixel::params::{
    Boundaries, Drawing, Fill, Outputs, ParamSet, Params, SUPERPIXEL_SIZE, THREADS, list_for_help,
};
use gstsuperpixel::post::abstraction;
use report::Row;
use serde_json::Value;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

#[derive(Parser)]
#[command(
    version,
    about = "Times superpixel segmentation: whole frames, their stages, and the machine's own limits",
    after_help = list_for_help()
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
    /// The backend or backends to measure.
    #[arg(long, default_value = "all")]
    backend: Choice,
    /// A parameter, as the element's property is called; may be given again. They are listed below.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    settings: Vec<String>,
    /// Results to compute beside the label map.
    #[arg(long, value_delimiter = ',', default_value = "table")]
    outputs: Vec<Output>,
    /// Format of the frames, by GStreamer's name.
    #[arg(long, default_value = "RGBA")]
    format: Format,
    /// Mean colors of light instead of code values.
    #[arg(long)]
    linear_light: bool,
    /// Threads of the CPU backend; 0 takes all cores.
    #[arg(long, default_value_t = THREADS.default)]
    threads: u32,
    /// Device of the CUDA backend; -1 takes the first that works.
    #[arg(long, default_value_t = -1, allow_hyphen_values = true)]
    cuda_device_id: i32,
    /// Frames that a device works on side by side, in temporal mode of as many streams; times are those of all of them together. Without
    /// it each comes alone.
    #[arg(long, value_name = "N")]
    batch: Option<u32>,
    /// The frames of `--batch` each by an engine of its own, on a stream of its own, to compare; timed by the host.
    #[arg(long, requires = "batch")]
    one_by_one: bool,
    /// Frames that are timed; the median counts.
    #[arg(long, default_value_t = 30)]
    runs: usize,
    /// Frames before those, after the first.
    #[arg(long, default_value_t = 5)]
    warm_up: usize,
    /// Also write the figures as JSON, to a new file; `-` is standard output, and then no table is printed.
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
    /// The list of merges down to one region.
    Merges,
    /// Boundaries drawn on the frame.
    Boundaries,
    /// Every region drawn in its mean color.
    MeanColor,
    /// Regions drawn as patches with smooth outlines.
    Abstraction,
}

impl Args {
    /// The parameters of `--set`; the others have their defaults.
    fn parameters(&self) -> Result<ParamSet> {
        let mut set = ParamSet::default();
        self.settings.iter().try_for_each(|text| set.assign(text))?;
        Ok(set)
    }

    /// True if figures are printed as a table, not as JSON.
    fn prints_table(&self) -> bool {
        self.json.as_ref().is_none_or(|path| path.as_os_str() != "-")
    }
}

/// Subject of one row of the table.
#[derive(Clone)]
struct Case {
    size: Size,
    algorithm: Algorithm,
    params: Params,
    info: FrameInfo,
    outputs: Outputs,
    drawing: Option<Drawing>,
    /// Frames side by side; none: each comes alone.
    batch: Option<u32>,
    /// These one after the other.
    one_by_one: bool,
}

impl Case {
    fn new(args: &Args, size: Size, algorithm: Algorithm, superpixel_size: u32) -> Result<Self> {
        let wants = |output| args.outputs.contains(&output);
        let drawing = Drawing {
            fill: match (wants(Output::Abstraction), wants(Output::MeanColor)) {
                (true, _) => Fill::Abstraction(abstraction::Params::default()),
                (false, true) => Fill::MeanColor,
                (false, false) => Fill::None,
            },
            boundaries: wants(Output::Boundaries).then(Boundaries::default),
        };
        let mut set = args.parameters()?;
        set.algorithm = algorithm;
        set.params.superpixel_size = superpixel_size;
        set.params.hierarchy.levels |= wants(Output::Merges);
        Ok(Self {
            size,
            algorithm,
            params: set.params(),
            info: FrameInfo::new(size.0, args.format.0),
            outputs: Outputs {
                table: wants(Output::Table),
                neighbors: wants(Output::Neighbors),
                mean_color: drawing.fill.needs_mean_color(),
                linear_light: args.linear_light,
            },
            drawing: (drawing != Drawing::default()).then_some(drawing),
            batch: args.batch,
            one_by_one: args.one_by_one,
        })
    }

    /// Frames that a time is of.
    fn frames(&self) -> u32 {
        self.batch.unwrap_or(1)
    }

    /// Bytes that no implementation can avoid moving: frames are read, labels are written.
    fn least_bytes(&self) -> usize {
        let frame: usize = self.info.format.planes(self.size.0).map(|(row, rows)| row * rows).sum();
        self.frames() as usize * (frame + self.size.0.pixels() * size_of::<u16>())
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
    /// Results of the last frame: number of labels, grid step, the label map.
    fn result(&mut self) -> Result<(u32, u32, Vec<u16>)>;
}

/// The median of each stage.
fn medians(samples: &[Vec<(&'static str, f64)>]) -> Vec<(&'static str, f64)> {
    // The first frame of a stream has other stages than warm starts.
    let Some(last) = samples.last() else { return Vec::new() };
    let of = |stage: &str| {
        median(samples.iter().flatten().filter(|(name, _)| *name == stage).map(|(_, time)| *time).collect())
    };
    last.iter().map(|(name, _)| (*name, of(name))).collect()
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Opens the wanted backends.
fn runners(args: &Args) -> Result<Vec<Box<dyn Runner>>> {
    let mut list: Vec<Box<dyn Runner>> = Vec::new();
    if args.backend != Choice::Cuda {
        list.push(Box::new(cpu::CpuRunner::open(args.threads)?));
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

/// Answers each line of input with the time of one frame.
fn on_demand(args: &Args, runners: &[Box<dyn Runner>], pictures: &Pictures) -> Result<()> {
    let ([size], [algorithm], [superpixel_size], [runner]) =
        (&args.sizes[..], &args.algorithms[..], &args.superpixel_size[..], runners)
    else {
        return Err("--on-demand takes one size, algorithm, superpixel size and backend".into());
    };
    let case = Case::new(args, *size, *algorithm, *superpixel_size)?;
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

/// Measures every case on one backend.
fn measure_all(
    runner: &dyn Runner,
    args: &Args,
    pictures: &Pictures,
    limits: &[Limit],
) -> Result<Vec<Value>> {
    let bandwidth = limits.first().map_or(f64::NAN, |limit| limit.value);
    let mut rows = Vec::new();
    for size in &args.sizes {
        let clip = pictures.clip(size.0, args.format);
        let asked_for = args.backend != Choice::All;
        for algorithm in args.algorithms.iter().filter(|&&own| asked_for || runner.has(own)) {
            for superpixel_size in &args.superpixel_size {
                let case = Case::new(args, *size, *algorithm, *superpixel_size)?;
                let row = measure(runner, &case, &clip, args, bandwidth)?;
                if args.prints_table() {
                    row.print();
                }
                rows.push(row.json());
            }
        }
    }
    Ok(rows)
}

/// A file that was not there; it goes unless it is written.
struct NewFile<'a> {
    path: &'a Path,
    file: Option<File>,
}

impl<'a> NewFile<'a> {
    fn create(path: &'a Path) -> Result<Self> {
        let file = File::create_new(path)
            .map_err(|error| format!("{}: {error}; --json takes the name of a new file", path.display()))?;
        Ok(Self { path, file: Some(file) })
    }

    fn write(mut self, text: &str) -> Result<()> {
        let written = self.file.as_mut().map_or(Ok(()), |file| file.write_all(text.as_bytes()));
        if written.is_ok() {
            self.file = None;
        }
        Ok(written?)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = std::fs::remove_file(self.path);
        }
    }
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
    // A file that is there is somebody's: it is never replaced, and found before the work.
    let file = args.json.as_deref().filter(|_| args.prints_table()).map(NewFile::create).transpose()?;
    let mut results = Vec::new();
    for runner in &runners {
        let limits = runner.limits()?;
        if args.prints_table() {
            report::print_head(&**runner, &args, &limits);
        }
        let rows = measure_all(&**runner, &args, &pictures, &limits)?;
        results.push(report::backend(&**runner, &limits, rows));
    }
    if args.json.is_none() {
        return Ok(());
    }
    let text = format!("{:#}\n", report::document(&args, results));
    match file {
        Some(file) => file.write(&text)?,
        None => print!("{text}"),
    }
    Ok(())
}
