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

/// Layout of one channel's samples: a plane, and how places follow from columns and rows.
#[derive(Debug, Clone, Copy)]
pub struct Channel {
    first: Place,
    /// Columns and rows that share a sample, and bytes from one sample to the next.
    shared: [usize; 2],
    stride: usize,
}

impl Channel {
    /// Channel `c`: R, G, B or Y, U, V.
    pub fn new(format: PixelFormat, c: usize) -> Self {
        let name = format.name();
        let (bits, shift, big_endian) = depth(name);
        let bytes = bits.div_ceil(8) as usize;
        // The first sample of the row, samples of the row from one to the next, columns and rows that share one.
        let of = |plane: usize, sample: usize, samples: usize, shared: [usize; 2]| Self {
            first: Place { plane, row: 0, byte: sample * bytes, bytes, bits, shift, big_endian },
            shared,
            stride: samples * bytes,
        };
        if let Some(shifts) = match name {
            "RGB10A2_LE" => Some([0, 10, 20]),
            "BGR10A2_LE" => Some([20, 10, 0]),
            _ => None,
        } {
            let first = Place { bytes: 4, shift: shifts[c], ..of(0, 0, 1, [1, 1]).first };
            return Self { first, shared: [1, 1], stride: 4 };
        }
        if let Some(letters) = letters(name) {
            let own = if letters == "AYUV" { "YUV" } else { "RGB" };
            let wanted = own.chars().nth(c).unwrap();
            return of(0, letters.find(wanted).unwrap(), letters.len(), [1, 1]);
        }
        match (name, c) {
            _ if name.starts_with("GRAY") => of(0, 0, 1, [1, 1]),
            ("YUY2" | "YVYU", 0) => of(0, 0, 2, [1, 1]),
            ("UYVY", 0) => of(0, 1, 2, [1, 1]),
            ("YUY2", c) => of(0, [1, 3][c - 1], 4, [2, 1]),
            ("YVYU", c) => of(0, [3, 1][c - 1], 4, [2, 1]),
            ("UYVY", c) => of(0, [0, 2][c - 1], 4, [2, 1]),
            ("RGBP", c) => of(c, 0, 1, [1, 1]),
            ("GBR", c) => of([2, 0, 1][c], 0, 1, [1, 1]),
            (_, 0) => of(0, 0, 1, [1, 1]),
            ("NV12" | "P010_10LE" | "P012_LE" | "P016_LE", c) => of(1, c - 1, 2, [2, 2]),
            ("NV21", c) => of(1, 2 - c, 2, [2, 2]),
            ("NV16", c) => of(1, c - 1, 2, [2, 1]),
            ("NV61", c) => of(1, 2 - c, 2, [2, 1]),
            ("YV12", c) => of(3 - c, 0, 1, [2, 2]),
            ("Y42B" | "I422_10LE" | "I422_12LE", c) => of(c, 0, 1, [2, 1]),
            _ if name.starts_with("Y444") => of(c, 0, 1, [1, 1]),
            ("I420" | "A420" | "I420_10LE" | "I420_12LE", c) => of(c, 0, 1, [2, 2]),
            (name, _) => panic!("{name}: say here where its samples stand"),
        }
    }

    /// Position of the channel of a pixel.
    pub fn at(&self, x: usize, y: usize) -> Place {
        let [columns, rows] = self.shared;
        Place { row: y / rows, byte: self.first.byte + x / columns * self.stride, ..self.first }
    }
}

/// Position of channel `c` of a pixel: R, G, B or Y, U, V.
pub fn place(format: PixelFormat, c: usize, x: usize, y: usize) -> Place {
    Channel::new(format, c).at(x, y)
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
