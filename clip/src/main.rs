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
mod output;
mod properties;
mod recorder;
mod summary;
mod tables;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value, json};

use crate::cuts::Parts;
use crate::decode::Decoding;
use crate::fault::{Failure, Result};
use crate::watch::say;

/// Exit status of a wrong command line, as clap has it.
const USAGE: u8 = 2;

/// Words that begin another command line than a file does; a file of such a name is ./NAME.
const TOOLS: [&str; 3] = ["check", "cuts", "join"];

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
        common: CommonArgs,
    },
}

/// Turns a video file into superpixels: label maps as FFV1, regions and adjacency as Parquet
#[derive(Parser)]
#[command(
    name = "superpixel-clip",
    version,
    after_help = "Other tools: superpixel-clip check | cuts | join --help"
)]
struct Convert {
    /// Video file
    input: PathBuf,
    /// Folder to make: labels.mkv, regions.parquet, adjacency.parquet, clip.json
    output: PathBuf,
    /// Properties of the element superpixel
    #[arg(value_name = "PROPERTY=VALUE")]
    properties: Vec<String>,
    /// Text for the field `key` of clip.json
    #[arg(long)]
    key: Option<String>,
    /// Name of the video for the field `source` of clip.json, where it is not its path
    #[arg(long)]
    source: Option<String>,
    /// List of parts from the command cuts: starts anew with each
    #[arg(long, value_name = "FILE")]
    cuts: Option<PathBuf>,
    /// Only the part of that number, from 0 on
    #[arg(long, requires = "cuts", value_name = "NUMBER")]
    part: Option<usize>,
    #[command(flatten)]
    common: CommonArgs,
}

#[derive(Args)]
struct CommonArgs {
    /// Longest time without a frame, in seconds
    #[arg(long, default_value_t = 30.0, value_parser = seconds)]
    stall: f64,
    /// Never decode with the hardware
    #[arg(long)]
    software_decoder: bool,
    /// Threads of the decoder and, unless given as a property, of the CPU backend; 0 = all cores
    #[arg(long, default_value_t = 0)]
    threads: u32,
    /// End at once when the process with this number, the parent, ends
    #[arg(long, value_name = "PROCESS")]
    parent: Option<i32>,
}

impl CommonArgs {
    fn decoding(&self) -> Decoding {
        Decoding { threads: self.threads, hardware: !self.software_decoder }
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

/// How it ended.
enum End {
    Done(Value),
    Usage(String),
}

fn convert(args: &Convert) -> Result<End> {
    let Convert { input, output, properties, key, source, cuts, part, common } = args;
    let mut words = properties.clone();
    if common.threads > 0 && !words.iter().any(|word| word.starts_with("threads=")) {
        words.push(format!("threads={}", common.threads));
    }
    let superpixel = match properties::make(&words) {
        Ok(made) => made,
        Err(message) => return Ok(End::Usage(message)),
    };
    let parts = cuts.as_ref().map(|path| Parts::read(path)).transpose()?.map(|parts| (parts, *part));
    let job = convert::Job {
        input,
        output,
        superpixel,
        decoding: common.decoding(),
        stall: common.stall(),
        key: key.as_deref(),
        source: source.clone().unwrap_or_else(|| input.to_string_lossy().into_owned()),
        parts,
    };
    convert::run(job).map(End::Done)
}

fn find_cuts(
    input: &std::path::Path,
    output: &std::path::Path,
    least: f64,
    common: &CommonArgs,
) -> Result<End> {
    let parts =
        cuts::find(input, common.decoding(), common.stall(), Duration::from_secs_f64(least))?.to_json();
    summary::write(output, &parts)?;
    Ok(End::Done(parts))
}

fn check(words: &[String]) -> End {
    match properties::make(words) {
        Ok((superpixel, given)) => End::Done(json!({
            "version": convert::version(&superpixel),
            "properties": given.into_iter().collect::<std::collections::BTreeMap<_, _>>(),
        })),
        Err(message) => End::Usage(message),
    }
}

/// Starts GStreamer with the elements, tied to the parent where that is asked for.
fn start(parent: Option<i32>) -> Result<()> {
    follow(parent)?;
    gst::init().map_err(|error| Failure::machine(error.to_string()))?;
    Ok(gstsuperpixel::plugin_register_static()?)
}

fn use_tool(tool: Tool) -> Result<End> {
    match tool {
        Tool::Check { properties } => {
            start(None)?;
            Ok(check(&properties))
        }
        Tool::Cuts { input, output, least, common } => {
            start(common.parent)?;
            find_cuts(&input, &output, least, &common)
        }
        Tool::Join { output, parts, common } => {
            start(common.parent)?;
            join::run(&output, &parts, common.stall()).map(End::Done)
        }
    }
}

fn run() -> Result<End> {
    let is_tool = std::env::args_os().nth(1).is_some_and(|word| TOOLS.iter().any(|tool| word == *tool));
    if is_tool {
        return use_tool(Tools::parse().tool);
    }
    let args = Convert::parse();
    start(args.common.parent)?;
    convert(&args)
}

fn main() -> ExitCode {
    match run() {
        Ok(End::Done(mut result)) => {
            summary::extend(&mut result, json!({"event": "done"}));
            say(&result);
            ExitCode::SUCCESS
        }
        Ok(End::Usage(message)) => {
            eprintln!("superpixel-clip: {message}");
            ExitCode::from(USAGE)
        }
        Err(failure) => {
            say(&failure.to_json());
            ExitCode::from(failure.status())
        }
    }
}
