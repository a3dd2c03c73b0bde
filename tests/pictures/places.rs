// SPDX-License-Identifier: MPL-2.0
//! Layout of the samples in each format: the table of formats written a second time, from GStreamer's documents.

use gstsuperpixel::image::PixelFormat;

/// A sample in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub plane: usize,
    /// Row of the plane, and byte in it.
    pub row: usize,
    pub byte: usize,
    /// Bytes of the word, bits that count, bits below them.
    pub bytes: usize,
    pub bits: u32,
    pub shift: u32,
    pub big_endian: bool,
}

/// Depth, bits below it, whether the upper byte comes first: of a name that ends in it.
fn depth(name: &str) -> (u32, u32, bool) {
    match name {
        "P010_10LE" => (10, 6, false),
        "P012_LE" => (12, 4, false),
        "P016_LE" | "GRAY16_LE" => (16, 0, false),
        "GRAY16_BE" => (16, 0, true),
        _ if name.contains("64") || name.contains("48") || name.ends_with("16LE") => (16, 0, false),
        _ if name.ends_with("_12LE") => (12, 0, false),
        _ if name.contains("10") => (10, 0, false),
        _ => (8, 0, false),
    }
}

/// The letters of a packed format's channels, in their order in memory.
fn letters(name: &str) -> Option<&str> {
    let letters: &str = name.split(|c: char| c.is_ascii_digit()).next().unwrap();
    let packed = ["RGBA", "BGRA", "RGBx", "BGRx", "ARGB", "ABGR", "xRGB", "xBGR", "RGB", "BGR", "AYUV"];
    packed.contains(&letters).then_some(letters)
}

/// Position of channel `c` of a pixel: R, G, B or Y, U, V.
pub fn place(format: PixelFormat, c: usize, x: usize, y: usize) -> Place {
    let name = format.name();
    let (bits, shift, big_endian) = depth(name);
    let bytes = bits.div_ceil(8) as usize;
    let at = |plane: usize, row: usize, sample: usize| Place {
        plane,
        row,
        byte: sample * bytes,
        bytes,
        bits,
        shift,
        big_endian,
    };
    if let Some(shifts) = match name {
        "RGB10A2_LE" => Some([0, 10, 20]),
        "BGR10A2_LE" => Some([20, 10, 0]),
        _ => None,
    } {
        return Place { byte: 4 * x, bytes: 4, shift: shifts[c], ..at(0, y, 0) };
    }
    if let Some(letters) = letters(name) {
        let own = if letters == "AYUV" { "YUV" } else { "RGB" };
        let wanted = own.chars().nth(c).unwrap();
        return at(0, y, x * letters.len() + letters.find(wanted).unwrap());
    }
    let pair = x / 2 * 4;
    match (name, c) {
        _ if name.starts_with("GRAY") => at(0, y, x),
        ("YUY2", _) => at(0, y, [2 * x, pair + 1, pair + 3][c]),
        ("YVYU", _) => at(0, y, [2 * x, pair + 3, pair + 1][c]),
        ("UYVY", _) => at(0, y, [2 * x + 1, pair, pair + 2][c]),
        ("RGBP", c) => at(c, y, x),
        ("GBR", c) => at([2, 0, 1][c], y, x),
        (_, 0) => at(0, y, x),
        ("NV12" | "P010_10LE" | "P012_LE" | "P016_LE", c) => at(1, y / 2, x / 2 * 2 + c - 1),
        ("NV21", c) => at(1, y / 2, x / 2 * 2 + 2 - c),
        ("NV16", c) => at(1, y, x / 2 * 2 + c - 1),
        ("NV61", c) => at(1, y, x / 2 * 2 + 2 - c),
        ("YV12", c) => at(3 - c, y / 2, x / 2),
        ("Y42B" | "I422_10LE" | "I422_12LE", c) => at(c, y, x / 2),
        _ if name.starts_with("Y444") => at(c, y, x),
        ("I420" | "A420" | "I420_10LE" | "I420_12LE", c) => at(c, y / 2, x / 2),
        (name, _) => panic!("{name}: say here where its samples stand"),
    }
}

impl Place {
    fn word(&self, planes: &[Vec<u8>], strides: &[usize]) -> u32 {
        let bytes = &planes[self.plane][self.row * strides[self.plane] + self.byte..][..self.bytes];
        let upper_first = |word: u32, byte: &u8| word << 8 | u32::from(*byte);
        if self.big_endian {
            bytes.iter().fold(0, upper_first)
        } else {
            bytes.iter().rev().fold(0, upper_first)
        }
    }

    /// The code there.
    pub fn get(&self, planes: &[Vec<u8>], strides: &[usize]) -> u16 {
        (self.word(planes, strides) >> self.shift & ((1 << self.bits) - 1)) as u16
    }

    /// Writes a code, and `rest` into the bits of the word that no channel counts.
    pub fn put(&self, planes: &mut [Vec<u8>], strides: &[usize], code: u16, rest: u32) {
        let mask = ((1u32 << self.bits) - 1) << self.shift;
        let others = if self.bytes == 4 { self.word(planes, strides) } else { rest };
        let word = others & !mask | u32::from(code) << self.shift;
        let start = self.row * strides[self.plane] + self.byte;
        for i in 0..self.bytes {
            let at = if self.big_endian { self.bytes - 1 - i } else { i };
            planes[self.plane][start + at] = (word >> (8 * i)) as u8;
        }
    }
}

/// How many columns and rows share a sample of the second channel.
pub fn sharing(format: PixelFormat) -> [usize; 2] {
    let alike = |x: usize, y: usize| place(format, 1, x, y) == place(format, 1, 0, 0);
    let gray = format.name().starts_with("GRAY");
    [1 + usize::from(!gray && alike(1, 0)), 1 + usize::from(!gray && alike(0, 1))]
}
