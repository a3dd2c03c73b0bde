// SPDX-License-Identifier: MPL-2.0
//! Reads labels, region table and neighbors of every frame from the metadata, as an application does.
//!
//! `cargo run --release --example read_labels -- [FILE [FRAMES]]` runs the pipeline of `pipelines/label-branch.launch`
//! and prints a line a frame.

#[cfg(feature = "gst")]
mod reader {
    use std::error::Error;
    use std::path::{Path, PathBuf};

    use gst::prelude::*;
    use gstsuperpixel::meta::SuperpixelMeta;

    const PIPELINE: &str = include_str!("../pipelines/label-branch.launch");
    const CLIP: &str = "media/bigbuckbunny.mp4";

    /// A line about a frame; an error where labels, table and pairs contradict each other.
    fn summarize(number: u64, buffer: &gst::BufferRef) -> Result<String, Box<dyn Error>> {
        let meta = SuperpixelMeta::from_buffer(buffer).ok_or("the buffer carries no superpixels")?;
        let (labels, table, neighbors) = (meta.labels()?, meta.table()?, meta.neighbors()?);
        let mut areas = vec![0u32; table.len()];
        for &label in labels.as_slice() {
            *areas.get_mut(usize::from(label)).ok_or("a label beyond the table")? += 1;
        }
        if !areas.iter().eq(table.iter().map(|region| &region.area)) {
            return Err("the areas of the table are not those of the label map".into());
        }
        if neighbors.iter().any(|pair| pair.a >= pair.b || pair.b >= meta.regions()) {
            return Err("a pair of neighbors names a region that is not there".into());
        }
        let largest = table.iter().max_by_key(|region| region.area).ok_or("no region")?;
        Ok(format!(
            "frame {number}: {}x{}, {} regions, {} pairs, largest {} px at ({:.0}, {:.0}) in rgb{:?}",
            meta.width(),
            meta.height(),
            meta.regions(),
            neighbors.len(),
            largest.area,
            largest.centroid[0],
            largest.centroid[1],
            &largest.mean_rgb[..3]
        ))
    }

    /// Runs the pipeline and prints.
    pub fn main() -> Result<(), Box<dyn Error>> {
        let mut arguments = std::env::args_os().skip(1);
        let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join(CLIP);
        let file = arguments.next().map_or_else(default, PathBuf::from);
        let frames = arguments.next().map_or(Ok(25), |n| n.to_string_lossy().parse::<u64>())?;

        gst::init()?;
        gstsuperpixel::plugin_register_static()?;
        let lines = PIPELINE.lines().filter(|line| !line.starts_with('#'));
        let text = lines.collect::<Vec<_>>().join(" ");
        // The labels are what counts here: no window, and no frame is dropped.
        let text = text.replace("autovideosink", "fakesink").replace("drop=true", "drop=false");
        let text = text.replace(&format!("location={CLIP}"), "name=file");
        let pipeline =
            gst::parse::launch(&text)?.downcast::<gst::Pipeline>().map_err(|_| "not a pipeline")?;
        // A name in the description would be parsed with it.
        pipeline.by_name("file").ok_or("no source of files")?.set_property("location", file);
        let sink = pipeline.by_name("labels").and_downcast::<gst_app::AppSink>().ok_or("no appsink")?;
        // If this fails, the bus has the reason.
        let _ = pipeline.set_state(gst::State::Playing);
        let mut seen = 0;
        while seen < frames {
            let Some(sample) = sink.try_pull_sample(gst::ClockTime::from_seconds(30)) else { break };
            println!("{}", summarize(seen, sample.buffer().ok_or("a sample without a buffer")?)?);
            seen += 1;
        }
        let error = pipeline.bus().and_then(|bus| bus.pop_filtered(&[gst::MessageType::Error]));
        pipeline.set_state(gst::State::Null)?;
        if let Some(gst::MessageView::Error(error)) = error.as_ref().map(|message| message.view()) {
            return Err(error.error().to_string().into());
        }
        if seen == 0 { Err("no frame arrived".into()) } else { Ok(()) }
    }
}

fn main() -> std::process::ExitCode {
    #[cfg(feature = "gst")]
    if let Err(error) = reader::main() {
        eprintln!("error: {error}");
        return std::process::ExitCode::FAILURE;
    }
    #[cfg(not(feature = "gst"))]
    eprintln!("built without the feature gst");
    std::process::ExitCode::SUCCESS
}
