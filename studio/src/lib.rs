// SPDX-License-Identifier: MPL-2.0
//! The studio: a local server that plays a source through the element `superpixel` and shows it in the browser.
//!
//! Knows the element by its public interfaces only: properties as GObject describes them, and the metadata of its frames.
//! [`source`] says what is played, [`player`] plays it, [`encode`] turns a frame into a message, [`hub`] hands messages to
//! viewers, [`http`] serves page and socket. [`objects`] has what viewers mark, and what becomes of it.

pub mod encode;
pub mod export;
pub mod http;
pub mod hub;
pub mod objects;
pub mod orientation;
pub mod player;
pub mod problem;
pub mod properties;
pub mod request;
pub mod script;
pub mod segmentation;
pub mod source;
pub mod state;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::encode::Encoder;
use crate::export::Exporter;
use crate::http::download::Downloads;
use crate::http::{Guard, Studio};
use crate::hub::Hub;
use crate::player::{Player, Viewers};
use crate::problem::Problem;
use crate::source::Source;

/// How long a stop waits for viewers and pipeline; with what is left to do below the two seconds that it may take.
const PATIENCE: Duration = Duration::from_millis(1200);

/// A studio that plays and serves until it is stopped.
pub struct Running {
    studio: Arc<Studio>,
    server: JoinHandle<()>,
    host: String,
}

/// Starts GStreamer, and makes the element of this program known to it, once for a process.
///
/// # Errors
///
/// GStreamer that does not start.
pub fn init() -> Result<(), Problem> {
    static DONE: OnceLock<Result<(), Problem>> = OnceLock::new();
    let first = || {
        gst::init().map_err(Problem::internal)?;
        gstsuperpixel::plugin_register_static().map_err(Problem::internal)
    };
    DONE.get_or_init(first).clone()
}

/// Plays `source` and serves it at `listener`.
///
/// # Errors
///
/// GStreamer or an element that is missing, a property that is refused, a listener without an address.
pub fn start(
    source: Source,
    properties: &[String],
    listener: TcpListener,
    names: Vec<String>,
) -> Result<Running, Problem> {
    init()?;
    let address = listener.local_addr().map_err(Problem::internal)?;
    let guard = Guard::new(address, names).map_err(Problem::internal)?;
    let host = match address.ip() {
        ip if ip.is_unspecified() => "localhost".to_owned(),
        ip if ip.is_ipv6() => format!("[{ip}]"),
        ip => ip.to_string(),
    };
    let hub = Arc::new(Hub::default());
    let exporter = Arc::new(Exporter::new(export::folder(), export::SPARE));
    let (frames, states, encoder) = (hub.clone(), hub.clone(), Mutex::new(Encoder::default()));
    let receive = Arc::new(move |frame: player::Frame| match encoder.lock().unwrap().encode(&frame) {
        Ok(message) => frames.show(message),
        Err(problem) => problem::report(format_args!("frame {}: {problem}", frame.number)),
    });
    let tell = Box::new(move |state: &state::State| {
        if let Ok(text) = serde_json::to_string(&json!({ "state": state })) {
            states.tell(text);
        }
    });
    let (watching, looking) = (hub.clone(), hub.clone());
    let viewers = Viewers {
        receive,
        tell,
        watched: Arc::new(move || watching.viewers() > 0),
        drawn: Arc::new(move || looking.lookers() > 0),
    };
    let player = Player::start(source, properties, viewers, exporter.clone())?;
    let speeds = [*player::SPEEDS.start(), *player::SPEEDS.end()];
    let hello = json!({ "properties": player.properties(), "speeds": speeds, "records": encode::layouts() });
    let hello = json!({ "hello": hello });
    let studio = Arc::new(Studio {
        hub,
        player,
        exporter,
        hello: hello.to_string(),
        guard,
        stop: watch::Sender::new(false),
        connections: Arc::default(),
        downloads: Downloads::default(),
    });
    let server = tokio::spawn(http::serve(listener, studio.clone()));
    Ok(Running { studio, server, host })
}

impl Running {
    /// The address to open, with the token where there is one.
    pub fn address(&self) -> String {
        self.studio.guard.address(&self.host)
    }

    /// Number of viewers.
    pub fn viewers(&self) -> usize {
        self.studio.hub.viewers()
    }

    /// Number of connections, those of viewers included.
    pub fn connections(&self) -> usize {
        self.studio.connections.count()
    }

    /// Ends all connections, the pipeline and their threads. `false` where something of them hangs and was left behind.
    pub async fn stop(self) -> bool {
        self.studio.stop.send_replace(true);
        self.studio.player.stop();
        let ended = async {
            // A task that panicked has ended, too.
            let _ = self.server.await;
            while self.studio.hub.viewers() > 0 || !self.studio.player.has_ended() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let ended = tokio::time::timeout(PATIENCE, ended).await.is_ok();
        if !ended {
            // Its end would wait for what hangs.
            std::mem::forget(self.studio);
        }
        ended
    }
}
