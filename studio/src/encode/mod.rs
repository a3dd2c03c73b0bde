// SPDX-License-Identifier: MPL-2.0
//! Turns a frame into one binary message: pictures, label maps and records under one number.
//!
//! ```text
//! u32   length of the head
//! head  JSON (UTF-8), padded with spaces so that what follows starts at a multiple of 8
//! ...   sections, each at the offset from the end of the head, and of the length, that the head names; offsets are multiples of 8
//! ```
//!
//! Numbers are little endian. `picture` is a JPEG, `labels` are [`labels`], `table`, `motion`, `neighbors` and `events` the records
//! of `docs/metadata.md`. The server's first message, `hello`, has [`layouts`] of these, by which the page reads them. Viewers that
//! look at it also get `abstraction`, what the element of that side drew, as a PNG without loss. Where objects are seen, side a has
//! them in `objects`, and `owners`: for each label a byte with the id of its object, 0 for none.

mod convert;
pub mod labels;
pub mod picture;

use axum::body::Bytes;
use gstsuperpixel::record::RecordField;
use gstsuperpixel::regions::RECORDS;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::objects::Object;
use crate::player::Frame;
use crate::problem::Problem;
use crate::segmentation::Segmentation;
use picture::PictureEncoder;

/// Range of a section: offset from the end of the head, and bytes.
type Section = [usize; 2];

#[derive(Serialize)]
struct Head<'a> {
    number: u64,
    /// Seconds from the start of the source.
    time: Option<f64>,
    /// Microseconds that this message took to make.
    encode_us: u64,
    picture: Section,
    sides: Vec<SideHead<'a>>,
}

#[derive(Serialize)]
struct SideHead<'a> {
    width: u32,
    height: u32,
    regions: usize,
    algo: &'a str,
    time_us: u64,
    stages: &'a [(String, u64)],
    labels: Section,
    table: Section,
    motion: Section,
    neighbors: Section,
    events: Section,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    objects: &'a [Object],
    #[serde(skip_serializing_if = "Option::is_none")]
    owners: Option<Section>,
    #[serde(skip_serializing_if = "Option::is_none")]
    abstraction: Option<Section>,
}

/// A frame as viewers get it.
#[derive(Clone)]
pub struct Message {
    plain: Bytes,
    drawn: Option<Bytes>,
}

impl Message {
    /// The bytes for a viewer: with the element's drawing if it `looks` at that and the frame has one.
    pub fn bytes(&self, looks: bool) -> Bytes {
        self.drawn.as_ref().filter(|_| looks).unwrap_or(&self.plain).clone()
    }

    /// Returns true if the element drew on the frame.
    pub fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }
}

/// Layouts of the records by section: bytes of a record, and of each field its offset, the type and the number of its components
/// that mean something.
pub fn layouts() -> Json {
    let field = |field: &RecordField| {
        let layout =
            json!({ "offset": field.offset, "type": field.scalar.name(), "count": field.columns.len() });
        (field.name.to_owned(), layout)
    };
    let layouts = RECORDS.iter().map(|layout| {
        let fields: Map<_, _> = layout.fields.iter().map(field).collect();
        (layout.section.to_owned(), json!({ "bytes": layout.bytes, "fields": fields }))
    });
    Json::Object(layouts.collect())
}

/// Makes messages; keeps what the pictures of a stream share.
#[derive(Default)]
pub struct Encoder {
    pictures: PictureEncoder,
}

impl Encoder {
    /// The message of a frame.
    ///
    /// # Errors
    ///
    /// A picture that cannot be encoded.
    pub fn encode(&mut self, frame: &Frame) -> Result<Message, Problem> {
        let start = std::time::Instant::now();
        let picture = self.pictures.jpeg(&frame.sample)?;
        let maps: Vec<_> = frame.sides.iter().map(|side| labels::encode(&side.labels)).collect();
        let mut body = Sections::default();
        let picture = body.add(&picture);
        let sides = frame.sides.iter().zip(&maps).map(|(side, map)| side_head(side, map, &mut body));
        let sides = sides.collect();
        let time = frame.sample.buffer().and_then(|buffer| buffer.pts());
        let mut head = Head {
            number: frame.number,
            time: time.map(|time| time.nseconds() as f64 / 1e9),
            encode_us: start.elapsed().as_micros() as u64,
            picture,
            sides,
        };
        let plain = body.after(&head)?;
        if frame.sides.iter().all(|side| side.drawn.is_none()) {
            return Ok(Message { plain, drawn: None });
        }
        for (side, head) in frame.sides.iter().zip(&mut head.sides) {
            if let Some(drawn) = &side.drawn {
                let caps = frame.sample.caps_owned();
                let sample = gst::Sample::builder().buffer(drawn).caps_if_some(caps.as_ref()).build();
                head.abstraction = Some(body.add(&self.pictures.png(&sample)?));
            }
        }
        head.encode_us = start.elapsed().as_micros() as u64;
        Ok(Message { plain, drawn: Some(body.after(&head)?) })
    }
}

fn side_head<'a>(side: &'a Segmentation, map: &[u8], body: &mut Sections) -> SideHead<'a> {
    SideHead {
        width: side.labels.width(),
        height: side.labels.height(),
        regions: side.table.len(),
        algo: &side.algo,
        time_us: side.time_us,
        stages: &side.stages,
        labels: body.add(map),
        table: body.add(bytemuck::cast_slice(&side.table)),
        motion: body.add(bytemuck::cast_slice(&side.motion)),
        neighbors: body.add(bytemuck::cast_slice(&side.neighbors)),
        events: body.add(bytemuck::cast_slice(&side.events)),
        objects: &side.followed.objects,
        owners: (!side.followed.objects.is_empty()).then(|| body.add(&side.followed.owners)),
        abstraction: None,
    }
}

/// Sections one after the other; offsets count from the first.
#[derive(Default)]
struct Sections(Vec<u8>);

impl Sections {
    fn add(&mut self, bytes: &[u8]) -> Section {
        let start = self.0.len();
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(8), 0);
        [start, bytes.len()]
    }

    /// The whole message: length, head, sections.
    fn after(&self, head: &Head<'_>) -> Result<Bytes, Problem> {
        let mut head = serde_json::to_vec(head).map_err(Problem::internal)?;
        let length = (4 + head.len()).next_multiple_of(8) - 4;
        head.resize(length, b' ');
        let mut message = Vec::with_capacity(4 + length + self.0.len());
        message.extend_from_slice(&(length as u32).to_le_bytes());
        message.extend(head);
        message.extend(&self.0);
        Ok(message.into())
    }
}
