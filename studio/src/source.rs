// SPDX-License-Identifier: MPL-2.0
//! What is played: a file, a URI or a camera, named on the command line and nowhere else.

use std::path::{Path, PathBuf};

use gst::glib;
use gst::prelude::*;

use crate::problem::Problem;

/// Where the video comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file, by its absolute path.
    File(PathBuf),
    /// Anything that GStreamer opens by an address.
    Uri(String),
    /// The first camera.
    Camera,
}

/// The device of [`Source::Camera`].
const CAMERA: &str = "/dev/video0";

impl Source {
    /// Reads an argument: `camera`, an address or a path.
    pub fn parse(text: &std::ffi::OsStr) -> Self {
        match text.to_str() {
            Some("camera") => Self::Camera,
            Some(uri) if uri.split_once("://").is_some_and(|(scheme, _)| is_scheme(scheme)) => {
                Self::Uri(uri.to_owned())
            }
            _ => {
                let path = PathBuf::from(text);
                Self::File(
                    std::fs::canonicalize(&path).or_else(|_| std::path::absolute(&path)).unwrap_or(path),
                )
            }
        }
    }

    /// What viewers read: a file's name without its folders.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Uri(uri) => uri.clone(),
            Self::Camera => "camera".into(),
        }
    }

    /// Whether frames come when they come, and are lost where nobody takes them.
    pub fn is_live(&self) -> bool {
        match self {
            Self::Camera => true,
            Self::Uri(uri) => ["rtsp://", "rtmp://", "udp://", "srt://"].iter().any(|s| uri.starts_with(s)),
            Self::File(_) => false,
        }
    }

    /// The address that GStreamer opens; none for a camera.
    ///
    /// # Errors
    ///
    /// A path that is no file name.
    pub fn uri(&self) -> Result<Option<String>, glib::Error> {
        match self {
            Self::File(path) => Ok(Some(glib::filename_to_uri(path, None)?.into())),
            Self::Uri(uri) => Ok(Some(uri.clone())),
            Self::Camera => Ok(None),
        }
    }

    /// Adds elements to a pipeline; the last of them gives raw video.
    ///
    /// # Errors
    ///
    /// What is missing, in words.
    pub fn add_to(&self, pipeline: &gst::Pipeline) -> Result<gst::Element, Problem> {
        let convert = make("videoconvert")?;
        pipeline.add(&convert).map_err(Problem::internal)?;
        let decode = match self {
            Self::Camera => {
                if !Path::new(CAMERA).exists() {
                    return Err(Problem::new(
                        format!("No camera: there is no {CAMERA}."),
                        "Connect a camera and press “Try again”, or start the studio with a file.",
                    ));
                }
                let camera = make("v4l2src")?;
                camera.set_property("device", CAMERA);
                let decode = make("decodebin")?;
                pipeline.add_many([&camera, &decode]).map_err(Problem::internal)?;
                camera.link(&decode).map_err(Problem::internal)?;
                decode
            }
            _ => {
                if let Self::File(path) = self
                    && let Err(error) = std::fs::File::open(path)
                {
                    return Err(Problem::new(
                        format!("The file {} cannot be read: {error}.", self.name()),
                        "Check that it is there and that you may read it, then press “Try again”.",
                    ));
                }
                let uri = self.uri().map_err(Problem::internal)?;
                let decode = make("uridecodebin")?;
                decode.set_property("uri", uri);
                pipeline.add(&decode).map_err(Problem::internal)?;
                decode
            }
        };
        link_video(&decode, &convert);
        Ok(convert)
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
}

/// Makes an element.
///
/// # Errors
///
/// Which package is missing.
pub fn make(factory: &str) -> Result<gst::Element, Problem> {
    gst::ElementFactory::make(factory).build().map_err(|_| {
        Problem::new(
            format!("GStreamer has no element {factory}."),
            "A package of plugins is missing: pipelines/studio.sh installs it on Debian and Ubuntu.",
        )
    })
}

/// Links the first video pad that appears.
fn link_video(decode: &gst::Element, next: &gst::Element) {
    // Weak, because the element belongs to the same pipeline as the one that holds this closure.
    let next = next.downgrade();
    decode.connect_pad_added(move |_, pad| {
        let video = pad.current_caps().and_then(|caps| Some(caps.structure(0)?.name().starts_with("video/")));
        let Some(sink) = next.upgrade().and_then(|next| next.static_pad("sink")) else { return };
        if video == Some(true) && !sink.is_linked() {
            // A pad that does not fit makes the source post an error of its own.
            let _ = pad.link(&sink);
        }
    });
}
