// SPDX-License-Identifier: MPL-2.0
//! Page, socket, texts to copy and exported files over HTTP.

mod assets;
pub mod connections;
pub mod download;
mod guard;
mod listen;
pub mod socket;

use std::sync::Arc;

use axum::extract::{Path, Query, Request, State, WebSocketUpgrade};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde::Deserialize;
use tokio::sync::watch;

pub use guard::Guard;
pub use listen::serve;

use crate::export::Exporter;
use crate::hub::Hub;
use crate::player::Player;
use crate::request::{self, Side};
use crate::script;
use connections::{Admission, Connections};
use download::Downloads;

/// Everything that a connection uses.
pub struct Studio {
    /// Frames and states.
    pub hub: Arc<Hub>,
    /// Receiver of the requests.
    pub player: Player,
    /// Files to fetch.
    pub exporter: Arc<Exporter>,
    /// The first message of every socket.
    pub hello: String,
    /// Access control.
    pub guard: Guard,
    /// Set once: connections end.
    pub stop: watch::Sender<bool>,
    /// Open connections.
    pub connections: Arc<Connections>,
    /// Places for those who fetch files.
    pub downloads: Downloads,
}

/// Only what this server has itself, in no frame of another page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Ends when the studio stops, or is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The page and what it asks for.
fn router(studio: Arc<Studio>) -> Router {
    let guarded = Router::new()
        .route("/", get(page))
        .route("/socket", get(open_socket))
        .route("/copy/{kind}", get(copy))
        .route("/export/{id}", get(export))
        .layer(middleware::from_fn_with_state(studio.clone(), check_caller));
    let open = assets::ASSETS.iter().fold(Router::new(), |router, asset| {
        router
            .route(asset.path, get(move || async move { ([(header::CONTENT_TYPE, asset.kind)], asset.text) }))
    });
    open.merge(guarded)
        .layer(middleware::from_fn_with_state(studio.clone(), check_site))
        .layer(middleware::from_fn(harden))
        .with_state(studio)
}

async fn check_site(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    match studio.guard.check_site(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn check_caller(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    match studio.guard.check_caller(request.headers(), request.uri()) {
        Ok(()) => {
            if let Some(admission) = request.extensions().get::<Arc<Admission>>() {
                admission.is_known();
            }
            next.run(request).await
        }
        Err(refusal) => refusal.into_response(),
    }
}

async fn harden(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if response.status().is_client_error() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn page() -> Html<&'static str> {
    Html(include_str!("../../page/index.html"))
}

/// A browser always says which page opens a socket, so who does not say it is refused.
async fn open_socket(
    State(studio): State<Arc<Studio>>,
    Extension(admission): Extension<Arc<Admission>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !headers.contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "The socket is for pages of the studio.\n").into_response();
    }
    upgrade
        .max_message_size(request::LONGEST)
        .max_frame_size(request::LONGEST)
        .on_upgrade(async move |socket| socket::serve(socket, &studio, &admission).await)
}

#[derive(Deserialize)]
struct Copied {
    side: Side,
    overlay: String,
}

/// The line or the program for what a viewer sees.
async fn copy(
    State(studio): State<Arc<Studio>>,
    Path(kind): Path<String>,
    Query(copied): Query<Copied>,
) -> Response {
    // Reads the file's headers, which no thread of the runtime waits for.
    let made = tokio::task::spawn_blocking(move || studio.player.pipeline(copied.side, &copied.overlay));
    let Ok(Some(pipeline)) = made.await else {
        return (StatusCode::BAD_REQUEST, "The element draws nothing of that name.\n").into_response();
    };
    match kind.as_str() {
        "gst-launch" => script::launch(&pipeline).into_response(),
        "python" => script::python(&pipeline).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The file of an export, by its number.
async fn export(
    State(studio): State<Arc<Studio>>,
    Extension(admission): Extension<Arc<Admission>>,
    Path(id): Path<u64>,
) -> Response {
    match studio.exporter.finished(id) {
        Some(finished) => studio.downloads.answer(&finished, admission),
        None => (StatusCode::NOT_FOUND, "That export is gone; start another.\n").into_response(),
    }
}
