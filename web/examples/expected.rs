// SPDX-License-Identifier: MPL-2.0
//! Hashes of what the library gives, for tests of the web package: a job a line, `WIDTH HEIGHT FILE FRAMES NAME=VALUE ...`, from the
//! standard input. FILE has RGBA frames one after another. Each frame gives a line: regions, and hashes of labels, table, neighbors.

use std::error::Error;
use std::io::BufRead;

use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::cpu::level::{self, Level};
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, ParamSet, Params};
use gstsuperpixel::picture_params::with_enough_superpixels;
use gstsuperpixel::plan::Plan;
use gstsuperpixel::record::{Record, Value};

/// FNV-1a of 32 bits.
fn hash(numbers: impl IntoIterator<Item = u32>) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(16_777_619);
    numbers.into_iter().flat_map(u32::to_le_bytes).fold(2_166_136_261, step)
}

/// Every number of a table in 32 bits, column by column.
fn table<R: Record>(records: &[R]) -> u32 {
    let count = R::LAYOUT.columns().count();
    let bits = |value: Value| match value {
        Value::Int(number) => number,
        Value::Float(number) => number.to_bits(),
    };
    let rows: Vec<Vec<u32>> = records.iter().map(|record| record.values().map(bits).collect()).collect();
    hash((0..count).flat_map(|column| rows.iter().map(move |row| row[column])))
}

fn job(line: &str) -> Result<(), Box<dyn Error>> {
    let words: Vec<_> = line.split_whitespace().collect();
    let [width, height, file, frames, ref assigned @ ..] = words[..] else {
        return Err("too few words".into());
    };
    let geometry = Geometry::new(width.parse()?, height.parse()?)?;
    let info = FrameInfo::new(geometry, PixelFormat::Rgba);
    let mut set = ParamSet::from(Params { superpixels: 100, holds_count: true, ..Params::default() });
    for text in assigned {
        match text.strip_prefix("algo=") {
            Some(nick) => set.algorithm = nick.parse()?,
            None => set.assign(text)?,
        }
    }
    let plan = Plan::new(&with_enough_superpixels(&set.params()), info)?;
    let mut engine = Engine::new(Cpu::new(1)?, plan)?;
    let (stride, mut map) = (4 * geometry.width() as usize, vec![0; geometry.pixels()]);
    let bytes = std::fs::read(file)?;
    let outputs = Outputs { table: true, neighbors: true, ..Outputs::default() };
    for frame in bytes.chunks_exact(4 * geometry.pixels()).take(frames.parse()?) {
        let mut labels = Labels::new(geometry, &mut map, geometry.width() as usize)?;
        let start = std::time::Instant::now();
        let regions = engine.segment(&Frame::new(info, &[frame], &[stride])?, &mut labels, outputs)?;
        let (count, time) = (regions.count, start.elapsed().as_secs_f64());
        let tables = [table(&regions.table), table(&regions.neighbors), table(&regions.merges)];
        let labels = hash(map.iter().map(|&label| label.into()));
        println!("{count} {labels} {} {} {} {time}", tables[0], tables[1], tables[2]);
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    level::set(Level::Baseline);
    std::io::stdin().lock().lines().try_for_each(|line| job(&line?))
}
