// SPDX-License-Identifier: MPL-2.0
//! Page, socket, texts to copy and exported files over HTTP.

mod assets;
mod guard;
pub mod socket;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Query, Request, State, WebSocketUpgrade};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::watch;

pub use guard::Guard;

use crate::export::Exporter;
use crate::hub::Hub;
use crate::player::Player;
use crate::script;
use crate::state::Side;

/// Everything that a connection uses.
pub struct Studio {
    /// Frames and states.
    pub hub: Arc<Hub>,
    /// What requests go to.
    pub player: Player,
    /// Files to fetch.
    pub exporter: Arc<Exporter>,
    /// The first message of every socket.
    pub hello: String,
    /// Who may ask.
    pub guard: Guard,
    /// Set once: connections end.
    pub stop: watch::Sender<bool>,
}

/// Only what this server has itself, in no frame of another page.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Serves until [`Studio::stop`] is set and all connections have ended.
///
/// # Errors
///
/// A listener that breaks.
pub async fn serve(listener: TcpListener, studio: Arc<Studio>) -> std::io::Result<()> {
    let mut stop = studio.stop.subscribe();
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
    let app = open
        .merge(guarded)
        .layer(middleware::from_fn_with_state(studio.clone(), check_host))
        .layer(middleware::from_fn(harden))
        .with_state(studio);
    let stopped = async move {
        // Gone with the studio: the same.
        let _ = stop.wait_for(|stop| *stop).await;
    };
    axum::serve(listener, app).with_graceful_shutdown(stopped).await
}

async fn check_host(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    match studio.guard.check_host(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

async fn check_caller(State(studio): State<Arc<Studio>>, request: Request, next: Next) -> Response {
    match studio.guard.check_caller(request.headers(), request.uri()) {
        Ok(()) => next.run(request).await,
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
    response
}

async fn page() -> Html<&'static str> {
    Html(include_str!("../../page/index.html"))
}

/// A browser always says which page opens a socket, so who does not say it is refused.
async fn open_socket(
    State(studio): State<Arc<Studio>>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if !headers.contains_key(header::ORIGIN) {
        return (StatusCode::FORBIDDEN, "The socket is for pages of the studio.\n").into_response();
    }
    upgrade
        .max_message_size(socket::LONGEST_REQUEST)
        .max_frame_size(socket::LONGEST_REQUEST)
        .on_upgrade(async move |socket| socket::serve(socket, &studio).await)
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
    let Some(pipeline) = studio.player.pipeline_text(copied.side, &copied.overlay) else {
        return (StatusCode::BAD_REQUEST, "The element draws nothing of that name.\n").into_response();
    };
    match kind.as_str() {
        "gst-launch" => script::launch(&pipeline).into_response(),
        "python" => script::python(&pipeline).into_response(),
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The file of an export, by its number.
async fn export(State(studio): State<Arc<Studio>>, Path(id): Path<u64>, _: Uri) -> Response {
    let Some((path, name)) = studio.exporter.finished(id) else {
        return (StatusCode::NOT_FOUND, "That export is gone; start another.\n").into_response();
    };
    match tokio::fs::read(path).await {
        Ok(bytes) => {
            let disposition = format!("attachment; filename=\"{name}\"");
            let kind = if name.ends_with(".mp4") { "video/mp4" } else { "video/webm" };
            ([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)], bytes)
                .into_response()
        }
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}
