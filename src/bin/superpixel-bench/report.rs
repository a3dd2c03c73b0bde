// SPDX-License-Identifier: MPL-2.0
//! The figures as a table and as JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;
use gstsuperpixel::params::{self, Listed};
use serde_json::{Value, json};

use super::{Args, Case, Limit, Runner};

/// The figures of one case.
pub struct Row {
    pub case: Case,
    pub step: u32,
    pub regions: u32,
    pub hash: u64,
    /// Stages and memory of the plan.
    pub plan_ms: f64,
    /// The first frame behind it.
    pub first_ms: f64,
    pub ms: f64,
    pub fastest_ms: f64,
    pub slowest_ms: f64,
    pub stages: Vec<(&'static str, f64)>,
    /// From host memory to host memory, where `ms` leaves that out.
    pub round_trip_ms: Option<f64>,
    /// Time of the unavoidable bytes at the copy bandwidth.
    pub floor_ms: f64,
}

fn name_of(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

impl Row {
    pub fn print(&self) {
        println!(
            "{:>11}  {:10} S={:<4} {:>6} regions  {:9.3} ms  {:8.1} fps  ({:.3} to {:.3}; plan {:.1}, first {:.1})  {:7.1} x floor",
            self.case.size,
            self.case.algorithm.nick(),
            self.step,
            self.regions,
            self.ms,
            1e3 * f64::from(self.case.frames()) / self.ms,
            self.fastest_ms,
            self.slowest_ms,
            self.plan_ms,
            self.first_ms,
            self.ms / self.floor_ms
        );
        if let Some(time) = self.round_trip_ms {
            println!(
                "{:13}from and to host memory {time:12.3} ms  {:8.1} fps",
                "",
                1e3 * f64::from(self.case.frames()) / time
            );
        }
        for (name, time) in &self.stages {
            println!("{:13}{name:26} {time:9.3} ms  {:5.1} %", "", 100.0 * time / self.ms);
        }
    }

    pub fn json(&self) -> Value {
        let stages: serde_json::Map<String, Value> =
            self.stages.iter().map(|(name, time)| ((*name).to_owned(), json!(time))).collect();
        json!({
            "size": self.case.size.to_string(),
            "algorithm": self.case.algorithm.nick(),
            "superpixel_size": self.step,
            "batch": self.case.batch,
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

/// Times of a start.
pub fn parts(opening: &[(&'static str, f64)]) -> String {
    let texts: Vec<_> = opening.iter().map(|(name, time)| format!("{name} {time:.1}")).collect();
    format!("opening, ms: {}", texts.join(", "))
}

/// Names the pictures.
fn source(args: &Args) -> String {
    args.picture.as_ref().map_or("made".into(), |path| path.display().to_string())
}

/// Names of the outputs that are asked for.
fn outputs(args: &Args) -> Vec<String> {
    args.outputs.iter().map(|output| name_of(*output)).collect()
}

/// Prints what stands above the rows of a backend.
pub fn print_head(runner: &dyn Runner, args: &Args, limits: &[Limit]) {
    let load = load().map_or_else(|| "unknown".into(), |load| format!("{load:.2}"));
    println!(
        "{}; {}; {}; load {load}; {}",
        runner.device(),
        runner.driver(),
        today(),
        parts(runner.opening())
    );
    println!(
        "superpixel {}; picture: {}, {}; {}; outputs: {}; median of {} after {}",
        env!("CARGO_PKG_VERSION"),
        source(args),
        args.format,
        if args.settings.is_empty() { "defaults".to_owned() } else { args.settings.join(" ") },
        outputs(args).join(","),
        args.runs,
        args.warm_up
    );
    for limit in limits {
        println!("{}: {:.1} {}", limit.name, limit.value, limit.unit);
    }
}

/// Figures of one backend.
pub fn backend(runner: &dyn Runner, limits: &[Limit], cases: Vec<Value>) -> Value {
    let limits: Vec<Value> =
        limits.iter().map(|l| json!({"name": l.name, "value": l.value, "unit": l.unit})).collect();
    let opening: serde_json::Map<String, Value> =
        runner.opening().iter().map(|(name, time)| ((*name).to_owned(), json!(time))).collect();
    json!({
        "device": runner.device(),
        "driver": runner.driver(),
        "opening_ms": opening,
        "limits": limits,
        "cases": cases,
    })
}

/// Values of all parameters, by name, as they are typed.
fn parameters(args: &Args) -> Value {
    let set = args.parameters().unwrap_or_default();
    let value =
        |one: &Listed| Some((one.about().name.to_owned(), one.kind.text(set.get(one.about().name)?).into()));
    Value::Object(params::list().iter().filter_map(value).collect())
}

/// All figures of a run, with its arguments.
pub fn document(args: &Args, backends: Vec<Value>) -> Value {
    json!({
        "date": today(),
        "version": env!("CARGO_PKG_VERSION"),
        "load": load(),
        "picture": source(args),
        "format": args.format.to_string(),
        "parameters": parameters(args),
        "linear_light": args.linear_light,
        "outputs": outputs(args),
        "runs": args.runs,
        "backends": backends,
    })
}
