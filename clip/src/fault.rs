// SPDX-License-Identifier: MPL-2.0
//! Causes of a failure: the command line or the clip, which fail again, or the machine, where another try may succeed.

use gst::glib;
use gst::prelude::*;

/// Cause of a failure; decides the exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Exit status 2: the command line asks for something that cannot be.
    Usage,
    /// Exit status 65: the same on any machine.
    Clip,
    /// Exit status 74: worth another try.
    Machine,
}

/// A failure, for the last line of the output.
#[derive(Debug)]
pub struct Failure {
    /// Cause of the failure.
    pub fault: Fault,
    /// True if no frame arrived within the stall limit.
    pub stalled: bool,
    /// Description of the failure.
    pub message: String,
}

/// The result of everything that may fail.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The command line is wrong.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { fault: Fault::Usage, stalled: false, message: message.into() }
    }

    /// The clip cannot be worked on.
    pub fn clip(message: impl Into<String>) -> Self {
        Self { fault: Fault::Clip, stalled: false, message: message.into() }
    }

    /// Something of this machine failed.
    pub fn machine(message: impl Into<String>) -> Self {
        Self { fault: Fault::Machine, stalled: false, message: message.into() }
    }

    /// No frame came. A slow disk looks the same, so the machine gets the blame and the clip another try.
    pub fn stall(seconds: f64) -> Self {
        let message = format!("no frame for {seconds} s; --stall sets the limit");
        Self { fault: Fault::Machine, stalled: true, message }
    }

    /// The pipeline does not stop once all is done.
    pub fn hang(seconds: f64) -> Self {
        let message = format!("the pipeline does not stop within {seconds} s");
        Self { fault: Fault::Machine, stalled: true, message }
    }

    /// An error message of the pipeline: errors of the domain STREAM are the clip's, those of LIBRARY, RESOURCE and CORE the machine's.
    pub fn of_pipeline(message: &gst::message::Error) -> Self {
        let error = message.error();
        let source = message.src().map(|source| source.name().to_string()).unwrap_or_default();
        let fault =
            if error.is::<gst::StreamError>() && !is_missing(&error) { Fault::Clip } else { Fault::Machine };
        let details = message.debug().and_then(|debug| details(&debug).map(|line| format!(" ({line})")));
        let details = details.unwrap_or_default();
        Self { fault, stalled: false, message: format!("{source}: {error}{details}") }
    }

    /// The exit status: that of a wrong command line as clap has it, the others as in `sysexits.h`.
    pub fn status(&self) -> u8 {
        match self.fault {
            Fault::Usage => 2,
            Fault::Clip => 65,
            Fault::Machine => 74,
        }
    }

    /// The last line of the output.
    pub fn to_json(&self) -> serde_json::Value {
        let fault = match self.fault {
            Fault::Usage => "usage",
            Fault::Clip => "clip",
            Fault::Machine => "machine",
        };
        serde_json::json!({"event": "failed", "fault": fault, "stalled": self.stalled, "error": self.message})
    }
}

/// Returns true if a decoder is missing, which elements may also report in the domain STREAM.
fn is_missing(error: &glib::Error) -> bool {
    error.matches(gst::StreamError::CodecNotFound)
}

/// An element's own explanation. The first line of its debug text only names a place in its source.
fn details(debug: &str) -> Option<&str> {
    debug.trim_end().lines().skip(1).last().map(str::trim)
}

impl From<superpixel_output::Error> for Failure {
    fn from(error: superpixel_output::Error) -> Self {
        match error {
            superpixel_output::Error::Refused(message) => Self::usage(message),
            other => Self::machine(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::machine(error.to_string())
    }
}

impl From<parquet::errors::ParquetError> for Failure {
    fn from(error: parquet::errors::ParquetError) -> Self {
        Self::machine(error.to_string())
    }
}

impl From<glib::BoolError> for Failure {
    fn from(error: glib::BoolError) -> Self {
        Self::machine(error.to_string())
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::machine(error.to_string())
    }
}
