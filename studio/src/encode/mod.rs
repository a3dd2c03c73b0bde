// SPDX-License-Identifier: MPL-2.0
//! Turns a frame into one binary message: picture, label maps and records under one number.
//!
//! ```text
//! u32   length of the head
//! head  JSON (UTF-8), padded with spaces so that what follows starts at a multiple of 8
//! ...   sections, each at the offset from the end of the head, and of the length, that the head names; offsets are multiples of 8
//! ```
//!
//! Numbers are little endian. `picture` is a JPEG, `labels` are [`labels`], `table`, `motion`, `neighbors` and `events` the records
//! of `docs/metadata.md`. The server's first message, `hello`, has [`layouts`] of these, by which the page reads them.

pub mod labels;
pub mod picture;

use gstsuperpixel::record::RecordField;
use gstsuperpixel::regions::RECORDS;
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

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
    pub fn encode(&mut self, frame: &Frame) -> Result<Vec<u8>, Problem> {
        let start = std::time::Instant::now();
        let picture = self.pictures.encode(&frame.sample)?;
        let maps: Vec<_> = frame.sides.iter().map(|side| labels::encode(&side.labels)).collect();
        let mut body = Sections::default();
        let picture = body.add(&picture);
        let sides = frame.sides.iter().zip(&maps).map(|(side, map)| side_head(side, map, &mut body));
        let sides = sides.collect();
        let time = frame.sample.buffer().and_then(|buffer| buffer.pts());
        let head = Head {
            number: frame.number,
            time: time.map(|time| time.nseconds() as f64 / 1e9),
            encode_us: start.elapsed().as_micros() as u64,
            picture,
            sides,
        };
        let head = serde_json::to_vec(&head).map_err(Problem::internal)?;
        Ok(body.after(head))
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
    fn after(self, mut head: Vec<u8>) -> Vec<u8> {
        let length = (4 + head.len()).next_multiple_of(8) - 4;
        head.resize(length, b' ');
        let mut message = Vec::with_capacity(4 + length + self.0.len());
        message.extend_from_slice(&(length as u32).to_le_bytes());
        message.extend(head);
        message.extend(self.0);
        message
    }
}
