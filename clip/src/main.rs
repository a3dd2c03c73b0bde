// SPDX-License-Identifier: MPL-2.0
//! Superpixels of a video file as label maps (FFV1) and tables (Parquet).
//!
//! Lines of JSON on the standard output tell of the progress; the last one says how it ended. Exit status: 0 done, 65 the clip's fault,
//! 74 the machine's, worth another try, 2 a wrong command line. See docs/corpus.md.

mod convert;
mod cuts;
mod decode;
mod fault;
mod join;
mod objects;
mod properties;
mod recorder;
mod schema;
mod serve;
mod session;
mod signals;
mod summary;
mod tables;
mod upright;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use gst::prelude::*;
use serde_json::{Value, json};
use superpixel_output::{NewFile, Request};

use crate::decode::Decoding;
use crate::fault::{Failure, Fault, Result};
use crate::session::Session;

/// Words that begin another command line than a file does; a file of such a name is ./NAME.
const TOOLS: [&str; 4] = ["check", "cuts", "join", "serve"];

/// Tools beside the conversion of a clip.
#[derive(Parser)]
#[command(name = "superpixel-clip", version)]
struct Tools {
    #[command(subcommand)]
    tool: Tool,
}

#[derive(Subcommand)]
enum Tool {
    /// Checks properties and prints them with the version of the plugin
    Check {
        /// Properties of the element superpixel
        #[arg(value_name = "PROPERTY=VALUE")]
        properties: Vec<String>,
    },
    /// Finds where the picture cuts and writes the parts between as JSON
    Cuts {
        /// Video file
        input: PathBuf,
        /// File to write
        output: PathBuf,
        /// Shortest part, in seconds
        #[arg(long, default_value_t = 60.0, value_parser = seconds)]
        least: f64,
        #[command(flatten)]
        replace: Replace,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Joins the folders of all parts to that of the clip
    Join {
        /// Folder to make
        output: PathBuf,
        /// Folders of all parts in their order
        #[arg(required = true)]
        parts: Vec<PathBuf>,
        #[command(flatten)]
        replace: Replace,
        #[command(flatten)]
        common: CommonArgs,
    },
    /// Does jobs of one line each from the standard input, {"id": ANY, "arguments": ["IN", "OUT", ...]}, until one fails
    #[command(after_help = SERVE)]
    Serve {
        #[command(flatten)]
        tie: Tie,
    },
}

/// Help text of `serve`.
const SERVE: &str = "\
The arguments are those of one run of this program, with or without cuts, join or check. Every line of the output has the job's id.
A job that fails is the last: the process ends with its exit status, and another one has to do the rest.
A byte of a name that is not UTF-8 is the escape \\udc80 to \\udcff, as json.dumps(os.fsdecode(name)) of Python has it.";

/// Turns a video file into superpixels: label maps as FFV1, regions, adjacency and events as Parquet
#[derive(Parser)]
#[command(
    name = "superpixel-clip",
    version,
    after_help = "Other tools: superpixel-clip check | cuts | join | serve --help"
)]
struct Convert {
    /// Video file
    input: PathBuf,
    /// Folder to make: labels.mkv, regions.parquet, adjacency.parquet, events.parquet, clip.json
    output: PathBuf,
    /// Properties of the element superpixel
    #[arg(value_name = "PROPERTY=VALUE")]
    properties: Vec<String>,
    /// Text for the field `key` of clip.json
    #[arg(long)]
    key: Option<String>,
    /// Name of the video for the field `source` of clip.json, where it is not its path
    #[arg(long)]
    source: Option<OsString>,
    /// List of parts from the command cuts: starts anew with each
    #[arg(long, value_name = "FILE")]
    cuts: Option<PathBuf>,
    /// Boxes of objects to follow, as JSON: [{"frame": 0, "box": [X, Y, WIDTH, HEIGHT], "class": TEXT}, ...]; adds objects.mkv and
    /// objects.parquet
    #[arg(long, value_name = "FILE", conflicts_with = "cuts")]
    objects: Option<PathBuf>,
    /// Only the part of that number, from 0 on
    #[arg(long, requires = "cuts", value_name = "NUMBER")]
    part: Option<usize>,
    #[command(flatten)]
    replace: Replace,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct Replace {
    /// Replace files of this program's names in an output that it did not make; other files stay
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
struct CommonArgs {
    /// Longest time without a frame, in seconds
    #[arg(long, default_value_t = 30.0, value_parser = seconds)]
    stall: f64,
    /// Never decode with the hardware
    #[arg(long)]
    software_decoder: bool,
    /// Leave frames as they are stored, where the clip says that they are to be turned
    #[arg(long)]
    no_autorotate: bool,
    /// Threads of the decoder and, unless given as a property, of the CPU backend; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: u32,
    #[command(flatten)]
    tie: Tie,
}

#[derive(Args)]
struct Tie {
    /// End at once when the process with this number, the parent, ends
    #[arg(long, value_name = "PROCESS")]
    parent: Option<i32>,
}

impl CommonArgs {
    fn decoding(&self) -> Decoding {
        Decoding { threads: self.threads, hardware: !self.software_decoder, upright: !self.no_autorotate }
    }

    fn stall(&self) -> Duration {
        Duration::from_secs_f64(self.stall)
    }
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let most = 1e6;
    let value = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=most).contains(&value) { Ok(value) } else { Err(format!("0 to {most}")) }
}

/// Ends this process with its parent, even where that is killed.
fn follow(parent: Option<i32>) -> Result<()> {
    let Some(parent) = parent else { return Ok(()) };
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
        .map_err(|error| Failure::machine(error.to_string()))?;
    // It may have ended before that.
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if now == Some(parent) {
        Ok(())
    } else {
        Err(Failure::machine(format!("process {parent} is not the parent")))
    }
}

/// A command line.
enum Command {
    Convert(Convert),
    Tool(Tool),
}

impl Command {
    /// From the words behind the name of the program.
    fn parse(words: Vec<OsString>) -> std::result::Result<Self, clap::Error> {
        let is_tool = words.first().is_some_and(|word| TOOLS.iter().any(|tool| word == *tool));
        let words = std::iter::once(OsString::from("superpixel-clip")).chain(words);
        if is_tool {
            Tools::try_parse_from(words).map(|tools| Self::Tool(tools.tool))
        } else {
            Convert::try_parse_from(words).map(Self::Convert)
        }
    }

    fn parent(&self) -> Option<i32> {
        match self {
            Self::Convert(Convert { common, .. })
            | Self::Tool(Tool::Cuts { common, .. } | Tool::Join { common, .. }) => common.tie.parent,
            Self::Tool(Tool::Serve { tie }) => tie.parent,
            Self::Tool(Tool::Check { .. }) => None,
        }
    }

    /// Does what the words say. GStreamer has been started.
    fn run(self, session: &mut Session) -> Result<End> {
        match self {
            Self::Convert(args) => convert(&args, session),
            Self::Tool(Tool::Check { properties }) => check(&properties),
            Self::Tool(Tool::Cuts { input, output, least, replace, common }) => {
                let request = Request { path: &output, inputs: &[&input], force: replace.force };
                find_cuts(&input, &request, least, &common, session)
            }
            Self::Tool(Tool::Join { output, parts, replace, common }) => {
                join::run(&output, &parts, replace.force, common.stall(), session).map(End::Done)
            }
            Self::Tool(Tool::Serve { .. }) => serve::run(std::io::stdin().lock(), session, do_job),
        }
    }
}

/// How it ended.
enum End {
    Done(Value),
    /// There are no more jobs.
    Served,
}

fn convert(args: &Convert, session: &mut Session) -> Result<End> {
    let Convert { input, output, properties, key, source, cuts, objects, part, replace, common } = args;
    let mut words = properties.clone();
    if common.threads > 0 && !words.iter().any(|word| word.starts_with("threads=")) {
        words.push(format!("threads={}", common.threads));
    }
    let superpixel = properties::make_checked(&words)?;
    if objects.is_some() && !superpixel.0.property::<bool>("temporal") {
        return Err(Failure::usage("--objects follows regions by their track ids; leave temporal=false out"));
    }
    let detections = objects.as_ref().map(|path| objects::read(path)).transpose()?;
    let parts = cuts.as_ref().map(|path| cuts::read(path)).transpose()?.map(|parts| (parts, *part));
    // The tables and clip.json are UTF-8: bytes of a name that are not become U+FFFD.
    let source = source.as_deref().unwrap_or(input.as_os_str()).to_string_lossy();
    let job = convert::Job {
        input,
        output,
        lists: cuts.iter().chain(objects).map(PathBuf::as_path).collect(),
        detections,
        force: replace.force,
        superpixel,
        decoding: common.decoding(),
        stall: common.stall(),
        key: key.as_deref(),
        source: source.into_owned(),
        parts,
    };
    convert::run(job, session).map(End::Done)
}

fn find_cuts(
    input: &Path,
    output: &Request<'_>,
    least: f64,
    common: &CommonArgs,
    session: &mut Session,
) -> Result<End> {
    let least = Duration::from_secs_f64(least);
    let file = NewFile::begin(output, cuts::is_list)?;
    let parts = cuts::find(input, common.decoding(), common.stall(), least, session)?.to_json();
    std::fs::write(file.path(), summary::text(&parts))?;
    file.finish()?;
    Ok(End::Done(parts))
}

fn check(words: &[String]) -> Result<End> {
    let (superpixel, given) = properties::make_checked(words)?;
    Ok(End::Done(json!({
        "version": convert::version(&superpixel),
        "properties": given.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
    })))
}

/// Does a job of `serve`.
fn do_job(words: Vec<OsString>, session: &mut Session) -> Result<End> {
    match Command::parse(words) {
        Ok(Command::Tool(Tool::Serve { .. })) => Err(Failure::usage("a job cannot serve")),
        Ok(command) if command.parent().is_some() => {
            Err(Failure::usage("--parent belongs to serve, not to a job"))
        }
        Ok(command) => command.run(session),
        Err(error) => Err(Failure::usage(error.to_string())),
    }
}

/// Starts GStreamer with the elements, tied to the parent where that is asked for.
fn start(parent: Option<i32>) -> Result<()> {
    follow(parent)?;
    signals::watch()?;
    gst::init().map_err(|error| Failure::machine(error.to_string()))?;
    Ok(gstsuperpixel::plugin_register_static()?)
}

fn main() -> ExitCode {
    let mut session = Session::new();
    let command = Command::parse(std::env::args_os().skip(1).collect()).unwrap_or_else(|error| error.exit());
    match start(command.parent()).and_then(|()| command.run(&mut session)) {
        Ok(End::Done(result)) => {
            session.say_done(result);
            ExitCode::SUCCESS
        }
        Ok(End::Served) => ExitCode::SUCCESS,
        Err(failure) => {
            if failure.fault == Fault::Usage {
                eprintln!("superpixel-clip: {}", failure.message);
            }
            session.say(failure.to_json());
            ExitCode::from(failure.status())
        }
    }
}
