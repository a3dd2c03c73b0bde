// SPDX-License-Identifier: MPL-2.0
//! State of the player as viewers see it, beside its frames.

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::objects::Listed;
use crate::problem::Problem;

/// Sent whole whenever something of it changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// Name of the source.
    pub source: String,
    /// True if the source does not wait for viewers.
    pub live: bool,
    /// True if a viewer may choose the position.
    pub seekable: bool,
    /// Length of the source in seconds, where it is known.
    pub duration: Option<f64>,
    /// True while paused.
    pub paused: bool,
    /// Speed against the clock of the source.
    pub speed: f64,
    /// True if side b is shown.
    pub compare: bool,
    /// Backend in use, once it is.
    pub backend: String,
    /// Values by name, of side a and side b.
    pub values: [Map<String, Json>; 2],
    /// The last problem.
    pub problem: Option<Problem>,
    /// The export that runs or ran last.
    pub export: Option<Export>,
    /// Objects that are marked.
    pub objects: Vec<Listed>,
}

/// An export as far as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Export {
    /// Number that names its file.
    pub id: u64,
    /// 0 to 1.
    pub progress: f64,
    /// True once the file is complete.
    pub done: bool,
    /// Name for the file.
    pub name: String,
    /// Why there is none.
    pub problem: Option<String>,
}
