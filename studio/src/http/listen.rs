// SPDX-License-Identifier: MPL-2.0
//! Takes connections: each gets a place, a time for its request and a least rate for its answer, before anybody is
//! asked who it is.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::connections::{Admission, Counted, MOST_CONNECTIONS, PACE};
use super::{Studio, router, stopped};

/// How long a request may take to come, the first and those after it.
pub const HEAD: Duration = Duration::from_secs(5);
/// Bytes that the head of a request may have.
const LONGEST_HEAD: usize = 16 * 1024;
/// How long answers go on after a stop.
const GRACE: Duration = Duration::from_millis(300);
/// Connections that had to go and may be open still.
const ENDING: usize = 32;
/// Until the next try, where no connection can be taken.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves until [`Studio::stop`] is set and all connections have ended.
pub async fn serve(listener: TcpListener, studio: Arc<Studio>) {
    let app = router(studio.clone());
    let mut stop = studio.stop.subscribe();
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            Some(_) = open.join_next() => continue,
            // Evicted connections count until they have ended.
            accepted = listener.accept(), if open.len() < MOST_CONNECTIONS + ENDING => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            // A peer that has gone again, or no file for it: both pass.
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        if let Some(admission) = studio.connections.admit(peer.ip()) {
            open.spawn(talk(stream, Arc::new(admission), app.clone(), studio.stop.subscribe()));
        }
    }
    drop(listener);
    let all = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        open.shutdown().await;
    }
}

/// Answers one connection until it ends, or becomes a socket.
async fn talk(stream: TcpStream, admission: Arc<Admission>, app: Router, mut stop: watch::Receiver<bool>) {
    let own = admission.clone();
    let answer = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(own.clone());
        app.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(LONGEST_HEAD)
        .serve_connection(TokioIo::new(Counted::new(stream, admission.clone())), answer)
        .with_upgrades();
    let mut connection = pin!(connection);
    let mut pace = tokio::time::interval(PACE);
    let mut stopping = false;
    loop {
        tokio::select! {
            // Errors are those of the peer.
            _ = connection.as_mut() => return,
            () = admission.evicted() => return,
            () = stopped(&mut stop), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
            _ = pace.tick() => if admission.is_too_slow() { return },
        }
    }
}
