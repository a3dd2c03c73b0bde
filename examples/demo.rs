// SPDX-License-Identifier: MPL-2.0
//! Segments a video, shows progress, and writes a video and a contact sheet: the application behind `pipelines/demo.sh`.
//!
//! ```text
//! GST_PLUGIN_PATH=<folder of the plugin> demo FILE|URI|camera [PROPERTY=VALUE ...] [--force]
//! ```
//!
//! Its files go into the current folder, where they replace those of an earlier demo, and others of these names with `--force`.

#[cfg(feature = "gst")]
mod demo {
    use std::error::Error;
    use std::ffi::OsStr;
    use std::fs::File;
    use std::io::{self, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
    use std::path::{Path, PathBuf};
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use gst::glib::{ParamSpecFloat, ParamSpecUInt};
    use gst::prelude::*;
    use gst_video::prelude::*;
    use superpixel_output::{NewFile, Request};

    type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

    /// Default of the demo: larger than the element's, so that regions can be seen on a contact sheet.
    const SUPERPIXEL_SIZE: &str = "superpixel-size=32";
    /// Overlays of the contact sheet, one a column.
    const COLUMNS: [&str; 5] = ["none", "boundaries", "mean-color", "abstraction", "labels"];
    /// Regions of the abstraction there, unless the command line merges: more look nearly like the original.
    const ABSTRACTION_REGIONS: u32 = 300;
    /// Moments of the contact sheet, one a row.
    const ROWS: usize = 3;
    /// Width of a picture of the contact sheet in px.
    const TILE_WIDTH: i32 = 480;
    /// The text in every file of the demo by which a later one knows it.
    const MARK: &str = "made by the demo of superpixel";
    /// Bytes at the start and at the end of a file in which it stands.
    const MARKED: u64 = 1 << 20;
    /// How long a camera is recorded.
    const CAMERA_TIME: Duration = Duration::from_secs(15);

    /// A property of the element with its value.
    type Property = (String, gst::glib::Value);

    /// Reads `NAME=VALUE` against the properties that the element has.
    fn parse_property(element: &gst::Element, text: &str) -> Result<Property> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("{text} is not PROPERTY=VALUE"))?;
        let writable: Vec<_> = element
            .list_properties()
            .iter()
            .filter(|p| {
                p.flags().contains(gst::glib::ParamFlags::WRITABLE) && p.owner_type() == element.type_()
            })
            .map(|p| p.name().to_owned())
            .collect();
        let spec =
            element.find_property(name).filter(|_| writable.iter().any(|w| w == name)).ok_or_else(|| {
                format!("superpixel has no property {name} to set; it has {}", writable.join(", "))
            })?;
        let wrong = || {
            let about = spec.blurb().unwrap_or_default();
            format!("{value} is no value for {name} ({about}); see gst-inspect-1.0 superpixel")
        };
        let parsed = gst::glib::Value::deserialize_with_pspec(value, &spec).map_err(|_| wrong())?;
        let in_range = match (spec.downcast_ref::<ParamSpecUInt>(), spec.downcast_ref::<ParamSpecFloat>()) {
            (Some(spec), _) => (spec.minimum()..=spec.maximum()).contains(&parsed.get::<u32>()?),
            (_, Some(spec)) => (spec.minimum()..=spec.maximum()).contains(&parsed.get::<f32>()?),
            _ => true,
        };
        if !in_range {
            return Err(wrong().into());
        }
        Ok((name.to_owned(), parsed))
    }

    fn make(factory: &str) -> Result<gst::Element> {
        Ok(gst::ElementFactory::make(factory)
            .build()
            .map_err(|_| format!("GStreamer has no element {factory}; a plugin package is missing"))?)
    }

    fn make_superpixel(properties: &[Property]) -> Result<gst::Element> {
        let element = make("superpixel")?;
        for (name, value) in properties {
            element.set_property_from_value(name, value);
        }
        Ok(element)
    }

    /// Adds elements to a pipeline and links them one after the other.
    fn chain(pipeline: &gst::Pipeline, elements: &[&gst::Element]) -> Result<()> {
        pipeline.add_many(elements)?;
        gst::Element::link_many(elements)?;
        Ok(())
    }

    /// The first encoder that is there, with the muxer and the file that go with it.
    fn make_encoder() -> Result<(Vec<gst::Element>, &'static str)> {
        for name in ["x264enc", "openh264enc"] {
            if let (Ok(encoder), Ok(parser), Ok(muxer)) = (make(name), make("h264parse"), make("mp4mux")) {
                if name == "x264enc" {
                    encoder.set_property_from_str("speed-preset", "veryfast");
                }
                return Ok((vec![encoder, parser, muxer], "superpixel-demo.mp4"));
            }
        }
        for name in ["vp8enc", "theoraenc", "jpegenc"] {
            if let (Ok(encoder), Ok(muxer)) = (make(name), make("matroskamux")) {
                if name == "vp8enc" {
                    encoder.set_property("deadline", 1i64);
                    encoder.set_property("target-bitrate", 4_000_000i32);
                }
                return Ok((vec![encoder, muxer], "superpixel-demo.mkv"));
            }
        }
        Err("no video encoder found: x264enc, openh264enc, vp8enc, theoraenc, jpegenc".into())
    }

    /// Returns true if a file has the mark of a demo.
    fn is_own(file: &mut File) -> io::Result<bool> {
        let mut bytes = Vec::new();
        Read::by_ref(file).take(MARKED).read_to_end(&mut bytes)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(MARKED).max(bytes.len() as u64)))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes.windows(MARK.len()).any(|text| text == MARK.as_bytes()))
    }

    /// The file that a source reads, if it reads one.
    fn file_of(source: &OsStr) -> Option<PathBuf> {
        if source == "camera" {
            return None;
        }
        match source.to_str() {
            Some(uri) if is_uri(uri) => Some(gst::glib::filename_from_uri(uri).ok()?.0),
            _ => Some(source.into()),
        }
    }

    fn is_uri(source: &str) -> bool {
        source.contains("://") && !source.starts_with('/')
    }

    /// Adds the source and returns the element whose source pad gives the video.
    fn add_source(pipeline: &gst::Pipeline, source: &OsStr) -> Result<gst::Element> {
        let convert = make("videoconvert")?;
        if source == "camera" {
            if !Path::new("/dev/video0").exists() {
                return Err("no camera: there is no /dev/video0".into());
            }
            let camera = make("v4l2src")?;
            let decode = make("decodebin")?;
            chain(pipeline, &[&camera, &decode])?;
            pipeline.add(&convert)?;
            link_video(&decode, &convert);
        } else {
            let uri = match source.to_str() {
                Some(uri) if is_uri(uri) => uri.to_owned(),
                _ => gst::glib::filename_to_uri(std::fs::canonicalize(source)?, None)?.to_string(),
            };
            let decode = make("uridecodebin")?;
            decode.set_property("uri", uri);
            pipeline.add_many([&decode, &convert])?;
            link_video(&decode, &convert);
        }
        Ok(convert)
    }

    /// Links the first video pad that appears.
    fn link_video(decode: &gst::Element, next: &gst::Element) {
        let sink = next.static_pad("sink").expect("videoconvert has a sink pad");
        decode.connect_pad_added(move |_, pad| {
            let video = pad.current_caps().and_then(|c| Some(c.structure(0)?.name().starts_with("video/")));
            if video == Some(true) && !sink.is_linked() {
                // A pad that does not fit makes the source post an error of its own.
                let _ = pad.link(&sink);
            }
        });
    }

    /// Some frames spread evenly over a stream whose length is not known before its end.
    #[derive(Default)]
    struct Moments {
        frames: Vec<gst::Sample>,
        every: u64,
        seen: u64,
    }

    impl Moments {
        /// Keeps the frame, by a deep copy, where it is its turn.
        fn offer(&mut self, buffer: &gst::BufferRef, caps: &gst::Caps) {
            self.every = self.every.max(1);
            if self.seen.is_multiple_of(self.every)
                && let Ok(copy) = buffer.copy_deep()
            {
                if self.frames.len() == 4 * ROWS {
                    let mut index = 0;
                    self.frames.retain(|_| {
                        index += 1;
                        index % 2 == 1
                    });
                    self.every *= 2;
                }
                self.frames.push(gst::Sample::builder().buffer(&copy).caps(caps).build());
            }
            self.seen += 1;
        }

        /// At most [`ROWS`] of the kept frames, the first and the last not among them where there are enough.
        fn rows(&self) -> Vec<gst::Sample> {
            let n = self.frames.len();
            let rows = ROWS.min(n);
            (0..rows).map(|i| self.frames[(2 * i + 1) * n / (2 * rows)].clone()).collect()
        }
    }

    /// Results of the run.
    struct Run {
        frames: u64,
        time: Duration,
        backend: String,
        stats: Option<gst::Structure>,
        moments: Vec<gst::Sample>,
        windowed: bool,
    }

    /// A window where a display is there and answers.
    fn make_window() -> Option<gst::Element> {
        if std::env::var_os("DISPLAY").is_none() && std::env::var_os("WAYLAND_DISPLAY").is_none() {
            return None;
        }
        let window = make("autovideosink").ok()?;
        let opens = window.set_state(gst::State::Ready).is_ok();
        window.set_state(gst::State::Null).ok()?;
        if !opens {
            eprintln!("no window: the display does not answer");
        }
        opens.then_some(window)
    }

    fn show_progress(frames: u64, since: Instant, done: Option<f64>, last: bool) {
        let fps = frames as f64 / since.elapsed().as_secs_f64().max(1e-3);
        let done = done.map_or_else(String::new, |d| format!("{:3.0} %  ", 100.0 * d));
        let (before, after) = match std::io::stdout().is_terminal() {
            true => ("\r", if last { "\n" } else { "" }),
            false => ("", "\n"),
        };
        print!("{before}{done}frame {frames}, {fps:.1} frames/s  {after}");
        let _ = std::io::stdout().flush();
    }

    fn run(source: &OsStr, properties: &[Property], file: &Path, encoder: &[gst::Element]) -> Result<Run> {
        let pipeline = gst::Pipeline::new();
        let convert = add_source(&pipeline, source)?;
        let superpixel = make_superpixel(properties)?;
        let tee = make("tee")?;
        let queue = make("queue")?;
        chain(&pipeline, &[&queue, &superpixel, &tee])?;
        convert.link(&queue)?;
        let sink = make("filesink")?;
        sink.set_property("location", file);
        let mut branch = vec![make("queue")?, make("videoconvert")?];
        branch.extend_from_slice(encoder);
        if let Some(tags) = encoder.last().and_then(|muxer| muxer.dynamic_cast_ref::<gst::TagSetter>()) {
            tags.add_tag::<gst::tags::Comment>(&MARK, gst::TagMergeMode::Replace);
        }
        branch.push(sink);
        chain(&pipeline, &branch.iter().collect::<Vec<_>>())?;
        tee.link(&branch[0])?;
        let window = make_window();
        if let Some(window) = &window {
            let branch = [make("queue")?, make("videoconvert")?, window.clone()];
            chain(&pipeline, &branch.iter().collect::<Vec<_>>())?;
            tee.link(&branch[0])?;
        }

        let moments = Arc::new(Mutex::new(Moments::default()));
        let pad = superpixel.static_pad("sink").ok_or("superpixel has no sink pad")?;
        let kept = moments.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            if let (Some(buffer), Some(caps)) = (info.buffer(), pad.current_caps()) {
                kept.lock().unwrap().offer(buffer, &caps);
            }
            gst::PadProbeReturn::Ok
        });

        let bus = pipeline.bus().ok_or("a pipeline without a bus")?;
        let result = play(&pipeline, &bus, source == "camera", &moments);
        let backend = superpixel.property::<Option<String>>("active-backend").unwrap_or_default();
        let stats = superpixel
            .find_property("stats")
            .and_then(|_| superpixel.property::<Option<gst::Structure>>("stats"));
        pipeline.set_state(gst::State::Null)?;
        let time = result?;
        let moments = moments.lock().unwrap();
        Ok(Run {
            frames: moments.seen,
            time,
            backend,
            stats,
            moments: moments.rows(),
            windowed: window.is_some(),
        })
    }

    /// Plays to the end and shows progress; returns the time from the first frame on.
    fn play(
        pipeline: &gst::Pipeline,
        bus: &gst::Bus,
        camera: bool,
        moments: &Mutex<Moments>,
    ) -> Result<Duration> {
        // If this fails, the bus has the reason.
        let _ = pipeline.set_state(gst::State::Playing);
        let on_terminal = std::io::stdout().is_terminal();
        let mut since = Instant::now();
        let mut shown = Instant::now();
        let mut ending = false;
        loop {
            use gst::MessageView as View;
            let message = bus.timed_pop_filtered(
                gst::ClockTime::from_mseconds(100),
                &[gst::MessageType::Eos, gst::MessageType::Error],
            );
            match message.as_ref().map(|m| m.view()) {
                Some(View::Eos(_)) => break,
                Some(View::Error(error)) => {
                    let from = error.src().map_or_else(String::new, |s| format!("{}: ", s.name()));
                    return Err(format!("{from}{}", error.error()).into());
                }
                _ => {}
            }
            let frames = moments.lock().unwrap().seen;
            if frames == 0 {
                since = Instant::now();
            } else if shown.elapsed() >= Duration::from_millis(if on_terminal { 200 } else { 2000 }) {
                shown = Instant::now();
                let position = pipeline.query_position::<gst::ClockTime>();
                let duration = pipeline.query_duration::<gst::ClockTime>().filter(|d| !d.is_zero());
                let done = position.zip(duration).map(|(p, d)| p.nseconds() as f64 / d.nseconds() as f64);
                show_progress(frames, since, done, false);
            }
            if camera && !ending && frames > 0 && since.elapsed() >= CAMERA_TIME {
                ending = true;
                pipeline.send_event(gst::event::Eos::new());
            }
        }
        let frames = moments.lock().unwrap().seen;
        if frames == 0 {
            return Err("the source gave no video frame".into());
        }
        show_progress(frames, since, Some(1.0), true);
        Ok(since.elapsed())
    }

    /// Draws one frame with one overlay, scaled to a tile.
    fn draw_tile(frame: &gst::Sample, overlay: &str, properties: &[Property]) -> Result<image::RgbImage> {
        let caps = frame.caps_owned().ok_or("a frame without caps")?;
        let info = gst_video::VideoInfo::from_caps(&caps)?;
        let par = info.par();
        let shown_width = f64::from(info.width()) * f64::from(par.numer()) / f64::from(par.denom().max(1));
        let height = (f64::from(info.height()) * f64::from(TILE_WIDTH) / shown_width).round().max(1.0) as i32;

        let pipeline = gst::Pipeline::new();
        let source = gst_app::AppSrc::builder().caps(&caps).format(gst::Format::Time).build();
        let superpixel = make_superpixel(properties)?;
        superpixel.set_property_from_str("overlay", overlay);
        let is_set = |names: &[&str]| properties.iter().any(|(name, _)| names.contains(&name.as_str()));
        if overlay == "abstraction" && !is_set(&["regions", "merge"]) {
            superpixel.set_property("regions", ABSTRACTION_REGIONS);
        }
        if !is_set(&["boundary-width"]) {
            // As wide as a pixel of the tile, or it fades away.
            let width = f64::from(info.width()) / f64::from(TILE_WIDTH);
            superpixel.set_property("boundary-width", (width.round() as u32).clamp(1, 8));
        }
        let scale = make("videoscale")?;
        scale.set_property_from_str("method", "lanczos");
        let tile_caps = gst_video::VideoCapsBuilder::new()
            .format(gst_video::VideoFormat::Rgb)
            .width(TILE_WIDTH)
            .height(height)
            .pixel_aspect_ratio(gst::Fraction::new(1, 1))
            .build();
        let sink = gst_app::AppSink::builder().caps(&tile_caps).sync(false).build();
        chain(
            &pipeline,
            &[
                source.upcast_ref(),
                &superpixel,
                &make("videoconvert")?,
                &scale,
                &make("videoconvert")?,
                sink.upcast_ref(),
            ],
        )?;
        pipeline.set_state(gst::State::Playing)?;
        source.push_buffer(frame.buffer_owned().ok_or("a sample without a buffer")?)?;
        source.end_of_stream()?;
        let tile = sink.pull_sample();
        pipeline.set_state(gst::State::Null)?;
        let tile = tile.map_err(|_| format!("the contact sheet's picture with overlay={overlay} failed"))?;
        let info = gst_video::VideoInfo::from_caps(tile.caps().ok_or("a tile without caps")?)?;
        let buffer = tile.buffer().ok_or("a tile without a buffer")?;
        let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info)?;
        let (stride, data) = (frame.plane_stride()[0] as usize, frame.plane_data(0)?);
        Ok(image::RgbImage::from_fn(info.width(), info.height(), |x, y| {
            let at = y as usize * stride + 3 * x as usize;
            image::Rgb([data[at], data[at + 1], data[at + 2]])
        }))
    }

    /// Writes the moments of the run, each in every overlay, into one picture.
    fn write_contact_sheet(moments: &[gst::Sample], properties: &[Property], file: &Path) -> Result<()> {
        let properties: Vec<_> = properties.iter().filter(|(name, _)| name != "overlay").cloned().collect();
        let mut sheet: Option<image::RgbImage> = None;
        for (row, moment) in moments.iter().enumerate() {
            for (column, overlay) in COLUMNS.iter().enumerate() {
                let tile = draw_tile(moment, overlay, &properties)?;
                let (width, height) = tile.dimensions();
                let sheet = sheet.get_or_insert_with(|| {
                    image::RgbImage::new(width * COLUMNS.len() as u32, height * moments.len() as u32)
                });
                let at = (column as u32 * width, row as u32 * height);
                image::imageops::replace(sheet, &tile, i64::from(at.0), i64::from(at.1));
            }
        }
        let sheet = sheet.ok_or("no frame for the contact sheet")?;
        let mut encoder =
            png::Encoder::new(BufWriter::new(File::create(file)?), sheet.width(), sheet.height());
        encoder.set_color(png::ColorType::Rgb);
        encoder.add_text_chunk("Comment".to_owned(), MARK.to_owned())?;
        let mut writer = encoder.write_header()?;
        writer.write_image_data(sheet.as_raw())?;
        Ok(writer.finish()?)
    }

    /// Does what the command line asks.
    pub fn main() -> Result<()> {
        // A file's name need not be UTF-8.
        let mut arguments = std::env::args_os().skip(1);
        let source = arguments.next().ok_or("usage: demo FILE|URI|camera [PROPERTY=VALUE ...] [--force]")?;
        let (options, arguments): (Vec<_>, Vec<_>) = arguments.partition(|argument| argument == "--force");
        gst::init()?;
        let superpixel = make("superpixel")?;
        let mut properties = arguments
            .iter()
            .map(|text| parse_property(&superpixel, &text.to_string_lossy()))
            .collect::<Result<Vec<Property>>>()?;
        if !properties.iter().any(|(name, _)| name == "superpixel-size" || name == "superpixels") {
            properties.push(parse_property(&superpixel, SUPERPIXEL_SIZE)?);
        }
        let (encoder, video) = make_encoder()?;
        let sheet = "superpixel-demo.png";
        let input = file_of(&source);
        let begin = |name: &str| {
            let inputs: Vec<_> = input.iter().map(PathBuf::as_path).collect();
            let request = Request { path: Path::new(name), inputs: &inputs, force: !options.is_empty() };
            NewFile::begin(&request, is_own)
                .map_err(|error| format!("{error}; the demo writes to the current folder"))
        };
        let (video_file, sheet_file) = (begin(video)?, begin(sheet)?);
        println!("segmenting {}", source.display());
        let run = run(&source, &properties, video_file.path(), &encoder)?;
        video_file.finish()?;
        let encoder = encoder[0].factory().map_or_else(Default::default, |f| f.name().to_string());
        let fps = run.frames as f64 / run.time.as_secs_f64();
        let paced = if run.windowed { ", paced by the window" } else { ", decoding and encoding included" };
        println!("backend: {}", run.backend);
        println!("{} frames in {:.1} s: {fps:.1} fps{paced}", run.frames, run.time.as_secs_f64());
        if let Some(mean) = run.stats.and_then(|s| s.get::<u64>("frame-time-us-mean").ok()) {
            println!("superpixel alone: {:.1} ms a frame", mean as f64 / 1000.0);
        }
        println!("wrote {video} ({encoder})");
        write_contact_sheet(&run.moments, &properties, sheet_file.path())?;
        sheet_file.finish()?;
        println!("wrote {sheet}: columns {}", COLUMNS.join(", ").replace("none", "original"));
        Ok(())
    }
}

fn main() -> std::process::ExitCode {
    #[cfg(feature = "gst")]
    if let Err(error) = demo::main() {
        eprintln!("error: {error}");
        return std::process::ExitCode::FAILURE;
    }
    #[cfg(not(feature = "gst"))]
    eprintln!("built without the feature gst");
    std::process::ExitCode::SUCCESS
}
