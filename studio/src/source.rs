// SPDX-License-Identifier: MPL-2.0
//! The video to play: a file, a URI or a camera. Only the command line names it.

use std::path::{Path, PathBuf};

use gst::glib;
use gst::prelude::*;
use rustix::fs::{FileType, Mode, OFlags};

use crate::orientation;
use crate::problem::Problem;

/// Source of the video.
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
    /// Reads an argument: `camera`, an address or a path. The address of a file is its path.
    pub fn parse(text: &std::ffi::OsStr) -> Self {
        match text.to_str() {
            Some("camera") => Self::Camera,
            Some(uri) if scheme(uri).is_some() => match glib::filename_from_uri(uri) {
                Ok((path, None)) => Self::File(path),
                _ => Self::Uri(uri.to_owned()),
            },
            _ => {
                let path = PathBuf::from(text);
                Self::File(
                    std::fs::canonicalize(&path).or_else(|_| std::path::absolute(&path)).unwrap_or(path),
                )
            }
        }
    }

    /// The name that viewers see: a file's name without its folders, an address as [`shown`].
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            Self::Uri(uri) => shown(uri),
            Self::Camera => "camera".into(),
        }
    }

    /// GStreamer's words about the source, for viewers: other words where they have something of the address that only
    /// the person knows who started the studio.
    pub fn censored<'a>(&self, text: &'a str) -> &'a str {
        let secrets = match self {
            Self::Uri(uri) => secrets(uri),
            Self::File(_) | Self::Camera => Vec::new(),
        };
        let told = secrets.iter().any(|secret| text.contains(secret.as_str()));
        if told {
            "it does not open or does not play, and the reason names what is not shown here"
        } else {
            text
        }
    }

    /// Returns true if the source does not wait: frames are lost if nobody takes them.
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

    /// `video-direction` of the `videoflip` that makes frames upright. Reads a file's headers.
    pub fn direction(&self) -> &'static str {
        match self {
            Self::File(path) if check_file(path, "").is_ok() => orientation::direction(path),
            _ => "auto",
        }
    }

    /// Adds elements to a pipeline; the last of them gives raw video, upright.
    ///
    /// # Errors
    ///
    /// If an element is missing; the message names it.
    pub fn add_to(&self, pipeline: &gst::Pipeline) -> Result<gst::Element, Problem> {
        let (convert, upright) = (make("videoconvert")?, make("videoflip")?);
        upright.set_property_from_str("video-direction", self.direction());
        pipeline.add_many([&convert, &upright]).map_err(Problem::internal)?;
        convert.link(&upright).map_err(Problem::internal)?;
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
                if let Self::File(path) = self {
                    check_file(path, &self.name())?;
                }
                let uri = self.uri().map_err(Problem::internal)?;
                let decode = make("uridecodebin")?;
                decode.set_property("uri", uri);
                pipeline.add(&decode).map_err(Problem::internal)?;
                decode
            }
        };
        link_video(&decode, &convert);
        Ok(upright)
    }
}

/// The scheme of an address; none where a text is not one.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c));
    fits.then_some(scheme)
}

/// An address in parts.
struct Address {
    shown: String,
    secrets: Vec<String>,
}

impl Address {
    /// `None` where it is not known where its parts begin, as of one with a `/` in its password.
    fn parse(uri: &str) -> Option<Self> {
        let (rest, fragment) = uri.split_once('#').unwrap_or((uri, ""));
        let parsed: http::Uri = rest.parse().ok()?;
        let authority = parsed.authority()?;
        // An `@` in a password is no end of it.
        let (userinfo, place) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
        let port = place.strip_prefix(authority.host())?;
        if !(port.is_empty() || authority.port_u16().is_some()) {
            return None;
        }
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let parts = [userinfo, user, password, parsed.query().unwrap_or_default(), fragment];
        let decoded =
            |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let secrets = parts.flat_map(|part| [decoded(part), part.to_owned()]).collect();
        Some(Self { shown: format!("{}://{place}{}", scheme(uri)?, parsed.path()), secrets })
    }
}

/// An address without user, password, query and fragment: cameras and signed addresses have passwords in all of them.
pub fn shown(uri: &str) -> String {
    if !uri.contains(['@', '?', '#']) {
        return uri.to_owned();
    }
    Address::parse(uri)
        .map_or_else(|| format!("{}://", scheme(uri).unwrap_or_default()), |address| address.shown)
}

/// Texts of an address that nobody else may read, as they stand and decoded.
fn secrets(uri: &str) -> Vec<String> {
    if !uri.contains(['@', '?', '#']) {
        return Vec::new();
    }
    let whole = || vec![uri.trim_start_matches(scheme(uri).unwrap_or_default()).to_owned()];
    Address::parse(uri).map_or_else(whole, |address| address.secrets)
}

/// Opens a file as it will be played.
///
/// # Errors
///
/// A file that is not there or not to be read, in words; or one that is none: a named pipe would keep whoever opens it
/// waiting for a writer.
fn check_file(path: &Path, name: &str) -> Result<(), Problem> {
    let kind = rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
        .and_then(rustix::fs::fstat)
        .map(|stat| FileType::from_raw_mode(stat.st_mode));
    match kind {
        Ok(FileType::RegularFile) => Ok(()),
        Ok(_) => Err(Problem::new(
            format!("{name} is a folder, a pipe or a device, and no regular file."),
            "Start the studio with a file of video, the address of a stream, or camera.",
        )),
        Err(error) => Err(Problem::new(
            format!("The file {name} cannot be read: {}.", std::io::Error::from(error)),
            "Check that it is there and that you may read it, then press “Try again”.",
        )),
    }
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
