// SPDX-License-Identifier: MPL-2.0
//! The pipeline that gives what a viewer sees, as a line for `gst-launch-1.0` and as a program in Python.

use crate::source::{Source, shown};

/// A pipeline as text: what comes before the element's name, and what after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pipeline {
    before: String,
    after: String,
}

impl Pipeline {
    /// Source, element with what was changed, window. An address is [`shown`]: who copies the text puts its password
    /// in.
    pub fn new(source: &Source, changed: &[String], overlay: &str) -> Self {
        let direction = source.direction();
        let source = match source {
            Source::Camera => "v4l2src".to_owned(),
            Source::File(path) => match path.to_str() {
                Some(path) => format!("filesrc location={} ! decodebin", quote(path)),
                // Only an address has all bytes of such a name.
                None => {
                    format!("uridecodebin uri={}", quote(&source.uri().ok().flatten().unwrap_or_default()))
                }
            },
            Source::Uri(uri) => format!("uridecodebin uri={}", quote(&shown(uri))),
        };
        let mut after = String::new();
        for property in changed {
            after = format!("{after} {property}");
        }
        Self {
            before: format!("{source} ! videoconvert ! videoflip video-direction={direction} ! superpixel"),
            after: format!("{after} overlay={overlay} ! videoconvert ! autovideosink"),
        }
    }

    /// In GStreamer's own notation, quoted for its parser.
    pub fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    /// The script's pipeline, with a name for the element `superpixel`.
    fn named(&self, name: &str) -> String {
        format!("{} name={name}{}", self.before, self.after)
    }
}

/// A line that a shell runs as it stands.
pub fn launch(pipeline: &Pipeline) -> String {
    // Each word once more, for the shell: it takes the parser's quotes away from nobody.
    let text = pipeline.text();
    let words = split(&text).into_iter().map(shell_word);
    format!("gst-launch-1.0 {}\n", words.collect::<Vec<_>>().join(" "))
}

/// A program that plays the pipeline and prints the number of regions of every frame.
pub fn python(pipeline: &Pipeline) -> String {
    let text = serde_json::Value::String(pipeline.named("superpixel")).to_string();
    format!(
        r#"import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst

Gst.init(None)
pipeline = Gst.parse_launch({text})


def show(pad, info):
    meta = info.get_buffer().get_custom_meta("GstSuperpixelMeta")
    if meta:
        print(meta.get_structure().get_value("regions"), "regions", flush=True)
    return Gst.PadProbeReturn.OK


pad = pipeline.get_by_name("superpixel").get_static_pad("src")
pad.add_probe(Gst.PadProbeType.BUFFER, show)
pipeline.set_state(Gst.State.PLAYING)
message = pipeline.get_bus().timed_pop_filtered(
    Gst.CLOCK_TIME_NONE, Gst.MessageType.EOS | Gst.MessageType.ERROR
)
pipeline.set_state(Gst.State.NULL)
if message.type == Gst.MessageType.ERROR:
    raise SystemExit(message.parse_error()[0].message)
"#
    )
}

/// Returns true if a character has no special meaning in a shell or in GStreamer's parser.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+=./:,%@".contains(c)
}

/// A value as GStreamer's parser reads it: within double quotes where it has to be.
fn quote(text: &str) -> String {
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// Words of a pipeline, at spaces outside of quotes.
fn split(pipeline: &str) -> Vec<String> {
    let (mut words, mut quoted, mut escaped) = (vec![String::new()], false, false);
    for c in pipeline.chars() {
        if c == ' ' && !quoted {
            words.push(String::new());
            continue;
        }
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    words
}

/// A word as a shell reads it.
fn shell_word(word: String) -> String {
    if word == "!" || !word.is_empty() && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}
