// SPDX-License-Identifier: MPL-2.0
//! Problems, in words that tell the viewer what to do.

use std::io::Write;

use gst::glib;
use serde::Serialize;

use crate::source::Source;

/// Shown in the page until something works again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{what} {advice}")]
pub struct Problem {
    /// A sentence about what happened.
    pub what: String,
    /// A sentence about what to do.
    pub advice: String,
}

impl Problem {
    /// Both sentences.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), advice: advice.into() }
    }

    /// A problem that no viewer can solve.
    pub fn internal(error: impl std::fmt::Display) -> Self {
        Self::new(
            format!("{error}."),
            "Press “Try again”; if it stays, the terminal of the studio may say more.",
        )
    }

    /// From an error on the bus of the pipeline that plays `source`.
    pub fn of_error(
        error: &glib::Error,
        debug: Option<&str>,
        from_superpixel: bool,
        source: &Source,
    ) -> Self {
        let text = source.censored(error.message()).trim_end_matches('.');
        let source = source.name();
        if from_superpixel {
            return Self::new(
                format!("The element superpixel refused: {text}."),
                "The settings before are back; choose backend auto or cpu where a device is missing.",
            );
        }
        if error.matches(gst::CoreError::MissingPlugin) || error.matches(gst::StreamError::CodecNotFound) {
            return Self::new(
                format!("No decoder for {source}: {text}."),
                "Install the decoder (on Debian and Ubuntu gstreamer1.0-libav has most), then start the studio again.",
            );
        }
        if error.matches(gst::ResourceError::Busy) {
            return Self::new(
                format!("{source} is in use by another program."),
                "Close that program, then press “Try again”.",
            );
        }
        if error.domain() == glib::Quark::from_str("gst-stream-error-quark") {
            let not_linked = debug.is_some_and(|debug| debug.contains("not-linked"));
            let what =
                if not_linked { "holds no video".to_owned() } else { format!("cannot be played: {text}") };
            return Self::new(format!("{source} {what}."), "Start the studio with a file that holds video.");
        }
        Self::new(format!("{source}: {text}."), "Check that the source is there, then press “Try again”.")
    }
}

/// Writes a line to the terminal of the studio, which may be gone: `eprintln!` panics then.
pub fn report(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
