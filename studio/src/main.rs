// SPDX-License-Identifier: MPL-2.0
//! The program: `superpixel-studio SOURCE [PROPERTY=VALUE ...]`; `pipelines/studio.sh` starts it.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;

use clap::Parser;
use superpixel_studio::source::Source;
use superpixel_studio::start;
use tokio::net::TcpListener;

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
            eprintln!("error: {error}");
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
    println!("{}", running.address());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
    running.stop().await;
    Ok(())
}
