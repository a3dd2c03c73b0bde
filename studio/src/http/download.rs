// SPDX-License-Identifier: MPL-2.0
//! Files of exports as answers: read piece by piece as the peer takes them, and few at a time.

use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream;
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{Response, StatusCode};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connections::Admission;
use crate::export::Finished;

/// More at a time are refused.
pub const MOST_DOWNLOADS: usize = 8;
/// Bytes that are in memory for each of them.
const PIECE: u64 = 64 * 1024;

/// Places for downloads.
pub struct Downloads(Arc<Semaphore>);

impl Default for Downloads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_DOWNLOADS)))
    }
}

impl Downloads {
    /// The answer that has the file, or says that there are too many.
    pub fn answer(&self, finished: &Finished, admission: Arc<Admission>) -> Response<Body> {
        let Ok(permit) = self.0.clone().try_acquire_owned() else { return too_many() };
        if !admission.hold() {
            return too_many();
        }
        let kind = match finished.name.rsplit_once('.') {
            Some((_, "mp4")) => "video/mp4",
            Some((_, "zip")) => "application/zip",
            _ => "video/webm",
        };
        let disposition = format!("attachment; filename=\"{}\"", finished.name);
        let reading =
            Reading { file: finished.file.clone(), at: 0, end: finished.size, _permit: permit, admission };
        let response = Response::builder()
            .header(CONTENT_TYPE, kind)
            .header(CONTENT_DISPOSITION, disposition)
            .header(CONTENT_LENGTH, finished.size);
        response.body(Body::from_stream(stream::try_unfold(reading, Reading::next))).unwrap_or_default()
    }
}

fn too_many() -> Response<Body> {
    let text = format!(
        "{MOST_DOWNLOADS} downloads are under way, as many as the studio gives at a time. Try again later.\n"
    );
    let response = Response::builder().status(StatusCode::SERVICE_UNAVAILABLE).header(RETRY_AFTER, 10);
    response.body(text.into()).unwrap_or_default()
}

/// A download under way.
struct Reading {
    file: Arc<File>,
    at: u64,
    end: u64,
    _permit: OwnedSemaphorePermit,
    admission: Arc<Admission>,
}

impl Reading {
    /// The next piece. Every download has a position of its own in the one file that is open.
    async fn next(mut self) -> Result<Option<(Bytes, Self)>> {
        let size = PIECE.min(self.end - self.at);
        if size == 0 {
            return Ok(None);
        }
        let (file, at) = (self.file.clone(), self.at);
        let read = move || {
            let mut piece = vec![0; size as usize];
            file.read_exact_at(&mut piece, at)?;
            Ok::<_, Error>(Bytes::from(piece))
        };
        let piece = tokio::task::spawn_blocking(read).await.map_err(Error::other)??;
        self.at += size;
        Ok(Some((piece, self)))
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.admission.release();
    }
}
