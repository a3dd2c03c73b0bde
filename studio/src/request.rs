// SPDX-License-Identifier: MPL-2.0
//! Messages of viewers: what they may ask for, read from text, and how many a second.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

/// Bytes of the longest request.
pub const LONGEST: usize = 8192;
/// Requests that a viewer may send at once.
pub const BURST: f64 = 200.0;
/// Requests a second that a viewer may send from then on.
const RATE: f64 = 100.0;

/// What an export writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// A video that the element has drawn on.
    Video,
    /// A zip archive with the regions of each frame as an SVG drawing.
    Svg,
    /// A zip archive with the objects that are marked: masks, run lengths, tracks.
    Objects,
}

/// A place in a frame that says where an object is, in px.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// It is in a box: x, y, width, height.
    Box([i32; 4]),
    /// A pixel is in it: x, y.
    Inside([i32; 2]),
    /// A pixel is not in it: x, y.
    Outside([i32; 2]),
}

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

/// Requests of a viewer. Any other message is refused.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// A frame was drawn.
    Seen {
        /// Its number.
        number: u64,
    },
    /// The view on show has changed.
    Look {
        /// True if it needs the element's own drawing.
        abstraction: bool,
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
        /// True to pause.
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
        /// True to show side b.
        on: bool,
    },
    /// Starts the pipeline again.
    Restart {},
    /// Writes the whole source into a file.
    Export {
        /// With the settings of which element.
        side: Side,
        /// Value of the property `overlay`.
        overlay: String,
        /// Which file.
        kind: FileKind,
    },
    /// Gives up the export.
    Cancel {},
    /// Says where an object is.
    Mark {
        /// Which one; none for a new one.
        object: Option<u8>,
        /// Seconds of the frame, as its head has them.
        time: f64,
        /// Where it is in that frame.
        place: Place,
    },
    /// Lets an object go.
    Forget {
        /// Which one.
        object: u8,
    },
}

impl Request {
    /// Reads a message.
    ///
    /// # Errors
    ///
    /// Words for the viewer about a text that is too long or no request.
    pub fn read(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("A request has at most {LONGEST} bytes."));
        }
        serde_json::from_str(text).map_err(|error| format!("Not understood: {error}."))
    }
}

/// Messages that a viewer may send: [`BURST`] at once, and from then on so many a second.
pub struct Allowance {
    left: f64,
    at: Instant,
}

impl Allowance {
    /// For a viewer that comes at `now`.
    pub fn new(now: Instant) -> Self {
        Self { left: BURST, at: now }
    }

    /// Counts a message that came at `now`; `false` where it is one too many.
    pub fn take(&mut self, now: Instant) -> bool {
        let earned = RATE * now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + earned).min(BURST) - 1.0;
        self.at = self.at.max(now);
        let taken = self.left >= 0.0;
        self.left = self.left.max(0.0);
        taken
    }
}
