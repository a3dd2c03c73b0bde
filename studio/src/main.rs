// SPDX-License-Identifier: MPL-2.0
//! The program: `superpixel-studio SOURCE [PROPERTY=VALUE ...]`; `pipelines/studio.sh` starts it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use superpixel_studio::problem::report;
use superpixel_studio::source::Source;
use superpixel_studio::start;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From the signal to the end of the process, whatever hangs: a driver, a file system, a source.
const LIMIT: Duration = Duration::from_millis(1600);
/// Time until the process is killed, if exiting hangs as well, for instance in a library's cleanup.
const LAST: Duration = Duration::from_millis(200);

/// Superpixels live in the browser
#[derive(Parser)]
#[command(version)]
struct Args {
    /// A file, a URI or `camera`
    source: OsString,
    /// Properties of the element superpixel, NAME=VALUE
    properties: Vec<String>,
    /// Address to listen at, for viewers on other machines; they need the token of the printed address
    #[arg(long, value_name = "IP")]
    listen: Option<IpAddr>,
    /// Port; 0 = any
    #[arg(long, default_value_t = 8470)]
    port: u16,
    /// Another name of this machine that viewers may use in the address
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(format_args!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn run(args: Args) -> Result<(), Box<dyn std::error::Error>> {
    let ip = args.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let listener = TcpListener::bind(SocketAddr::new(ip, args.port)).await.map_err(|error| {
        format!("cannot listen at {ip}, port {}: {error}; --port takes another", args.port)
    })?;
    let running = start(Source::parse(&args.source), &args.properties, listener, args.host)?;
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut hangup = if ignores_hangup() { None } else { Some(signal(SignalKind::hangup())?) };
    println!("{}", running.address());
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        Some(()) = next(hangup.as_mut()) => {}
    }
    std::thread::spawn(leave);
    if !running.stop().await {
        leave_at_once();
    }
    Ok(())
}

async fn next(signal: Option<&mut Signal>) -> Option<()> {
    signal?.recv().await
}

/// Returns true if the studio was started with `nohup`, to outlive its terminal.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

/// Ends the process after [`LIMIT`].
fn leave() {
    std::thread::sleep(LIMIT);
    leave_at_once();
}

/// Ends the process with what hangs in it. Files of exports have no names, so nothing is left.
fn leave_at_once() -> ! {
    report("the source or a device does not stop; the studio ends without it");
    std::thread::spawn(|| {
        std::thread::sleep(LAST);
        // A process may always end itself.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    });
    std::process::exit(0)
}
