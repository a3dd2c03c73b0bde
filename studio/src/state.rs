// SPDX-License-Identifier: MPL-2.0
//! What viewers see of the player beside its frames, and what they may ask of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::problem::Problem;

/// One of two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The one that is always there.
    A,
    /// The one of a comparison.
    B,
}

impl Side {
    /// Both, in their order.
    pub const ALL: [Self; 2] = [Self::A, Self::B];
}

/// Sent whole whenever something of it changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct State {
    /// Name of the source.
    pub source: String,
    /// Whether frames come when they come.
    pub live: bool,
    /// Whether a viewer may choose the position.
    pub seekable: bool,
    /// Length of the source in seconds, where it is known.
    pub duration: Option<f64>,
    /// Whether frames wait.
    pub paused: bool,
    /// Speed against the clock of the source.
    pub speed: f64,
    /// Whether side b takes part.
    pub compare: bool,
    /// Backend in use, once it is.
    pub backend: String,
    /// Values by name, of side a and side b.
    pub values: [Map<String, Json>; 2],
    /// What went wrong last.
    pub problem: Option<Problem>,
    /// The export that runs or ran last.
    pub export: Option<Export>,
}

/// An export as far as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Export {
    /// Number that names its file.
    pub id: u64,
    /// 0 to 1.
    pub progress: f64,
    /// Whether the file is there.
    pub done: bool,
    /// Name for the file.
    pub name: String,
    /// Why there is none.
    pub problem: Option<String>,
}

/// What a viewer asks for; nothing else is understood.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A frame was drawn.
    Seen {
        /// Its number.
        number: u64,
    },
    /// Sets a property of the element.
    Set {
        /// Of which element.
        side: Side,
        /// Name.
        name: String,
        /// Value.
        value: Json,
    },
    /// Sets all properties: those that are not named to their defaults.
    Apply {
        /// Of which element.
        side: Side,
        /// By name.
        values: Map<String, Json>,
    },
    /// Pauses or goes on.
    Pause {
        /// Whether frames wait.
        on: bool,
    },
    /// One frame on.
    Step {},
    /// Speed against the clock of the source.
    Speed {
        /// Within the gate's range.
        factor: f64,
    },
    /// Goes to a position.
    Seek {
        /// Seconds from the start.
        to: f64,
    },
    /// Adds or removes side b.
    Compare {
        /// Whether it takes part.
        on: bool,
    },
    /// Starts the pipeline again.
    Restart {},
    /// Writes the whole source as a video.
    Export {
        /// With the settings of which element.
        side: Side,
        /// What is drawn: a value of the property `overlay`.
        overlay: String,
    },
    /// Gives up the export.
    Cancel {},
}
