// SPDX-License-Identifier: MPL-2.0
//! Streams of cameras and decoders reach the element without conversion: tiny files of each kind are encoded here, or
//! kept in tests/streams, and played.

use crate::common;
use std::path::{Path, PathBuf};

use crate::common::{launch, play_to_end, samples};
use gstsuperpixel::meta::SuperpixelMeta;

const FRAMES: usize = 3;

/// A kind of stream: how a file of it is made, how it is played, and the format that arrives.
struct Kind {
    name: &'static str,
    /// From raw frames to the file's container, without source and sink; [`KEPT`] for a file in tests/streams.
    encode: &'static str,
    /// From the file's bytes to raw frames.
    decode: &'static str,
    caps: &'static str,
    format: &'static [&'static str],
}

/// Made elsewhere, as not every version has an encoder for it. Encoders of AV1 take 8 bits only in older ones:
/// `ffmpeg -f lavfi -i testsrc2=size=64x48:rate=25 -frames:v 3 -pix_fmt yuv420p10le -c:v libaom-av1 -crf 30 av1-10-bit.mkv`.
/// `avenc_dvvideo` of GStreamer 1.26 finds no caps for what it would give (its own ask for a frame rate, and its codec's context has
/// none), so this was made by 1.22: `videotestsrc num-buffers=3 pattern=smpte75 ! video/x-raw,framerate=25/1,` and the caps below
/// `! avenc_dvvideo ! avimux ! filesink location=dv-interlaced.avi`.
const KEPT: &str = "kept";

const KINDS: [Kind; 8] = [
    Kind {
        name: "webcam-yuy2",
        encode: "avimux",
        decode: "avidemux",
        caps: "format=YUY2,width=64,height=48",
        format: &["YUY2"],
    },
    Kind {
        name: "webcam-mjpeg",
        encode: "jpegenc ! avimux",
        decode: "avidemux ! jpegdec",
        caps: "format=Y42B,width=64,height=48",
        // Some versions of jpegdec give the one, some the other.
        format: &["I420", "Y42B"],
    },
    Kind {
        name: "prores",
        encode: "avenc_prores_ks ! qtmux",
        decode: "qtdemux ! avdec_prores",
        caps: "format=I422_10LE,width=64,height=48",
        format: &["I422_10LE"],
    },
    Kind {
        name: "h265-10-bit",
        encode: "x265enc speed-preset=ultrafast ! h265parse ! matroskamux",
        decode: "matroskademux ! h265parse ! avdec_h265",
        caps: "format=I420_10LE,width=64,height=48",
        format: &["I420_10LE"],
    },
    Kind {
        name: "av1-10-bit.mkv",
        encode: KEPT,
        decode: "matroskademux ! av1dec",
        caps: "format=I420_10LE,width=64,height=48",
        format: &["I420_10LE"],
    },
    Kind {
        name: "gray16-png",
        encode: "pngenc",
        decode: "pngdec",
        caps: "format=GRAY16_BE,width=64,height=48",
        format: &["GRAY16_BE"],
    },
    Kind {
        name: "dv-interlaced.avi",
        encode: KEPT,
        decode: "avidemux ! avdec_dvvideo",
        caps: "format=I420,width=720,height=576,pixel-aspect-ratio=16/15,interlace-mode=interleaved",
        format: &["I420"],
    },
    // Coded in 1088 lines.
    Kind {
        name: "cropped",
        encode: "x264enc speed-preset=ultrafast ! h264parse ! matroskamux",
        decode: "matroskademux ! h264parse ! avdec_h264",
        caps: "format=I420,width=1920,height=1080",
        format: &["I420"],
    },
];

/// Elements of a description that are not installed.
fn missing(description: &str) -> Vec<&str> {
    common::init();
    let names = description.split('!').filter_map(|part| part.split_whitespace().next());
    names.filter(|name| gst::ElementFactory::find(name).is_none()).collect()
}

/// Returns true if this version's encoder takes the frames.
fn takes(kind: &Kind) -> bool {
    let encoder = kind.encode.split_whitespace().next().unwrap();
    let caps: gst::Caps = format!("video/x-raw,framerate=25/1,{}", kind.caps).parse().unwrap();
    let templates = gst::ElementFactory::find(encoder).unwrap().static_pad_templates();
    templates.iter().any(|t| t.direction() == gst::PadDirection::Sink && t.caps().can_intersect(&caps))
}

/// Makes the file of a kind; `None`, with words, where its encoder is not there.
fn make(kind: &Kind, folder: &Path) -> Option<PathBuf> {
    let kept = kind.encode == KEPT;
    let needed = if kept { kind.decode.into() } else { format!("{} ! {}", kind.encode, kind.decode) };
    let missing = missing(&needed);
    if !missing.is_empty() {
        println!("skipped {}: no {}", kind.name, missing.join(", "));
        return None;
    }
    if kept {
        return Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(kind.name));
    }
    if !takes(kind) {
        println!("skipped {}: the encoder does not take {}", kind.name, kind.caps);
        return None;
    }
    let path = folder.join(kind.name);
    let line = format!(
        "videotestsrc num-buffers={FRAMES} pattern=smpte ! video/x-raw,framerate=25/1,{} ! {} ! filesink location=\"{}\"",
        kind.caps,
        kind.encode,
        path.display()
    );
    play_to_end(&launch(&line)).unwrap_or_else(|error| panic!("{line}: {error}"));
    Some(path)
}

#[test]
fn streams_of_cameras_and_decoders_are_segmented_and_drawn_on() {
    let folder = std::env::temp_dir().join(format!("superpixel-streams-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for kind in &KINDS {
        let Some(path) = make(kind, &folder) else { continue };
        for overlay in ["none", "boundaries", "mean-color"] {
            let line = format!(
                "filesrc location=\"{}\" ! {} ! superpixel superpixel-size=8 backend=cpu overlay={overlay} ! appsink name=out",
                path.display(),
                kind.decode
            );
            let samples = samples(&line);
            assert_eq!(samples.len(), FRAMES, "{}: frames", kind.name);
            for sample in samples {
                let caps = sample.caps().expect("caps");
                let info = gst_video::VideoInfo::from_caps(caps).expect("video");
                let format = info.format().to_str().to_string();
                assert!(kind.format.contains(&format.as_str()), "{}: {caps}", kind.name);
                let meta = SuperpixelMeta::from_buffer(sample.buffer().unwrap()).expect("meta");
                let wanted = (kind.caps.split("width=").nth(1), kind.caps.split("height=").nth(1));
                let number = |text: Option<&str>| text.unwrap().split(',').next().unwrap().parse().unwrap();
                assert_eq!(
                    (meta.width(), meta.height()),
                    (number(wanted.0), number(wanted.1)),
                    "{}",
                    kind.name
                );
                // Bars are regions, whatever the format.
                assert!(meta.regions() > 8, "{}: {} regions", kind.name, meta.regions());
                assert!(
                    sample.buffer().unwrap().meta::<gst_video::VideoCropMeta>().is_none(),
                    "{}",
                    kind.name
                );
            }
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
