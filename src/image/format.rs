// SPDX-License-Identifier: MPL-2.0
//! Pixel formats: one row of a table per format describes the layout of its samples, and the code that reads and draws
//! follows it.

use super::Geometry;

/// Color family of a format's channels; kernels/frame.cuh numbers them in the same order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// R', G', B'.
    Rgb,
    /// Y', Cb, Cr.
    Yuv,
    /// Y' alone.
    Gray,
}

/// Representation of a sample in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of the word that holds it: 1, 2 or 4.
    pub bytes: usize,
    /// Significant bits: 8, 10, 12 or 16; alpha may have 2.
    pub bits: u32,
    /// Bits of the word below the significant ones.
    pub shift: u32,
    /// True if the word's upper byte comes first.
    pub big_endian: bool,
}

impl Sample {
    /// Reads the code of the sample at the front of `bytes`.
    #[inline(always)]
    pub fn code(self, bytes: &[u8]) -> u16 {
        let mask = (1u32 << self.bits) - 1;
        let word = match self.bytes {
            1 => return u16::from(bytes[0]),
            2 if self.big_endian => u32::from(u16::from_be_bytes([bytes[0], bytes[1]])),
            2 => u32::from(u16::from_le_bytes([bytes[0], bytes[1]])),
            _ => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
        };
        (word >> self.shift & mask) as u16
    }

    /// Writes a code to the front of `bytes`. Words of four bytes hold other samples, which do not change; in words of
    /// two, the bits around the code become zero.
    #[inline(always)]
    pub fn set(self, bytes: &mut [u8], code: u16) {
        match self.bytes {
            1 => bytes[0] = code as u8,
            2 if self.big_endian => bytes[..2].copy_from_slice(&(code << self.shift).to_be_bytes()),
            2 => bytes[..2].copy_from_slice(&(code << self.shift).to_le_bytes()),
            _ => {
                let old = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                let mask = ((1u32 << self.bits) - 1) << self.shift;
                let new = old & !mask | u32::from(code) << self.shift;
                bytes[..4].copy_from_slice(&new.to_le_bytes());
            }
        }
    }
}

/// Layout of a channel's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Channel {
    /// Plane of the samples.
    pub plane: usize,
    /// Bytes from the start of a row to the first sample.
    pub offset: usize,
    /// Bytes from one sample to the next.
    pub step: usize,
    /// Representation of each sample.
    pub sample: Sample,
}

/// Byte layout of a packed RGB format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedRgb {
    /// Bytes from one pixel to the next.
    pub bytes: usize,
    /// Byte offset of red, green, blue.
    pub offsets: [usize; 3],
}

/// A row of the table of formats. Alpha and padding are no channels: they are not drawn, and alpha is read only as a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// GStreamer's name; formats that GStreamer lacks have a name in its manner.
    pub name: &'static str,
    /// Color family of the channels.
    pub family: Family,
    /// Number of planes, those of alpha included.
    pub planes: usize,
    /// R, G, B or Y, Cb, Cr; gray has luma three times.
    pub channels: [Channel; 3],
    /// Alpha, which has a sample for each pixel; `None` for formats without.
    pub alpha: Option<Channel>,
    /// log2 of the columns and rows that share a sample of the second and third channel.
    pub subsampling: [u32; 2],
}

impl Layout {
    /// Columns and rows that share a sample of a channel, as log2.
    #[inline(always)]
    pub fn shared(&self, channel: usize) -> [u32; 2] {
        if channel == 0 { [0, 0] } else { self.subsampling }
    }

    /// Returns true if every channel has a sample for each pixel.
    pub fn is_whole(&self) -> bool {
        self.subsampling == [0, 0]
    }

    /// Channels that have a sample of their own for each pixel.
    pub fn own_channels(&self) -> usize {
        if self.family == Family::Gray || !self.is_whole() { 1 } else { 3 }
    }

    /// Bytes of a row without padding and number of rows of a plane.
    fn plane(&self, plane: usize, geometry: Geometry) -> (usize, usize) {
        let (w, h) = (geometry.width as usize, geometry.height as usize);
        let shared = |v: usize, log2: u32| v.div_ceil(1 << log2);
        let of = (0..3).filter(|&c| self.channels[c].plane == plane).map(|c| {
            let [x, y] = self.shared(c);
            (shared(w, x) * self.channels[c].step, shared(h, y))
        });
        // A plane without a channel holds alpha, a sample per pixel.
        of.reduce(|a, b| (a.0.max(b.0), a.1.max(b.1))).unwrap_or((w * self.channels[0].sample.bytes, h))
    }
}

/// Samples in words of `bytes`, little endian, with `bits` significant bits above `shift` others.
const fn sample(bytes: usize, bits: u32, shift: u32) -> Sample {
    Sample { bytes, bits, shift, big_endian: false }
}

const BYTE: Sample = sample(1, 8, 0);
const WORD: Sample = sample(2, 16, 0);

const fn layout(
    name: &'static str,
    family: Family,
    planes: usize,
    channels: [Channel; 3],
    subsampling: [u32; 2],
) -> Layout {
    Layout { name, family, planes, channels, alpha: None, subsampling }
}

/// Adds alpha of the channels' samples, `offset` bytes from the start of a pixel.
const fn with_alpha(offset: usize, layout: Layout) -> Layout {
    let Channel { plane, step, sample, .. } = layout.channels[0];
    Layout { alpha: Some(Channel { plane, offset, step, sample }), ..layout }
}

const fn channel(plane: usize, offset: usize, step: usize, sample: Sample) -> Channel {
    Channel { plane, offset, step, sample }
}

/// Pixels of `step` bytes with channels at `offsets`.
const fn packed(
    name: &'static str,
    family: Family,
    sample: Sample,
    step: usize,
    offsets: [usize; 3],
) -> Layout {
    let [a, b, c] = offsets;
    let channels = [channel(0, a, step, sample), channel(0, b, step, sample), channel(0, c, step, sample)];
    layout(name, family, 1, channels, [0, 0])
}

/// R, G, B of 8 bits in pixels of `step` bytes.
const fn rgb(name: &'static str, step: usize, offsets: [usize; 3]) -> Layout {
    packed(name, Family::Rgb, BYTE, step, offsets)
}

/// R, G, B of 16 bits; `offsets` count bytes.
const fn rgb16(name: &'static str, step: usize, offsets: [usize; 3]) -> Layout {
    packed(name, Family::Rgb, WORD, step, offsets)
}

/// R, G, B of 10 bits in words of 32, from bit `shifts` on, with alpha in the upper two.
const fn rgb10(name: &'static str, shifts: [u32; 3]) -> Layout {
    let [r, g, b] = shifts;
    let channels = [
        channel(0, 0, 4, sample(4, 10, r)),
        channel(0, 0, 4, sample(4, 10, g)),
        channel(0, 0, 4, sample(4, 10, b)),
    ];
    Layout {
        alpha: Some(channel(0, 0, 4, sample(4, 2, 30))),
        ..layout(name, Family::Rgb, 1, channels, [0, 0])
    }
}

const fn gray(name: &'static str, sample: Sample) -> Layout {
    packed(name, Family::Gray, sample, sample.bytes, [0; 3])
}

/// 4:2:2 in one plane: two pixels in four bytes, the first luma at `luma`, Cb and Cr at `chroma`.
const fn yuv422(name: &'static str, luma: usize, chroma: [usize; 2]) -> Layout {
    let [u, v] = chroma;
    let channels = [channel(0, luma, 2, BYTE), channel(0, u, 4, BYTE), channel(0, v, 4, BYTE)];
    layout(name, Family::Yuv, 1, channels, [1, 0])
}

/// A plane of luma and one of chroma, in which Cb and Cr are the `chroma`-th of a pair.
const fn two_planes(name: &'static str, sample: Sample, chroma: [usize; 2], subsampling: [u32; 2]) -> Layout {
    let bytes = sample.bytes;
    let [u, v] = chroma;
    let channels = [
        channel(0, 0, bytes, sample),
        channel(1, u * bytes, 2 * bytes, sample),
        channel(1, v * bytes, 2 * bytes, sample),
    ];
    layout(name, Family::Yuv, 2, channels, subsampling)
}

/// One plane per channel, given by its number.
const fn three_planes(
    name: &'static str,
    family: Family,
    sample: Sample,
    planes: [usize; 3],
    subsampling: [u32; 2],
) -> Layout {
    let (bytes, [a, b, c]) = (sample.bytes, planes);
    let channels = [channel(a, 0, bytes, sample), channel(b, 0, bytes, sample), channel(c, 0, bytes, sample)];
    layout(name, family, 3, channels, subsampling)
}

/// Y, Cb and Cr in planes of this order.
const fn yuv(name: &'static str, sample: Sample, subsampling: [u32; 2]) -> Layout {
    three_planes(name, Family::Yuv, sample, [0, 1, 2], subsampling)
}

macro_rules! formats {
    ($($format:ident = $layout:expr,)*) => {
        /// Pixel formats, named as GStreamer names them: bytes in memory order; `P010Le` is P010_10LE. The elements offer all
        /// that GStreamer has.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[allow(missing_docs)]
        pub enum PixelFormat {
            $($format,)*
        }

        const COUNT: usize = [$(stringify!($format)),*].len();

        impl PixelFormat {
            /// Every format, in the order in which the elements offer them.
            pub const ALL: [Self; COUNT] = [$(Self::$format),*];
        }

        static LAYOUTS: [Layout; COUNT] = [$($layout),*];
    };
}

const WHOLE: [u32; 2] = [0, 0];
const COLUMNS: [u32; 2] = [1, 0];
const BOTH: [u32; 2] = [1, 1];

formats! {
    Rgba = with_alpha(3, rgb("RGBA", 4, [0, 1, 2])),
    Bgra = with_alpha(3, rgb("BGRA", 4, [2, 1, 0])),
    Rgbx = rgb("RGBx", 4, [0, 1, 2]),
    Bgrx = rgb("BGRx", 4, [2, 1, 0]),
    Argb = with_alpha(0, rgb("ARGB", 4, [1, 2, 3])),
    Abgr = with_alpha(0, rgb("ABGR", 4, [3, 2, 1])),
    Xrgb = rgb("xRGB", 4, [1, 2, 3]),
    Xbgr = rgb("xBGR", 4, [3, 2, 1]),
    Rgb = rgb("RGB", 3, [0, 1, 2]),
    Bgr = rgb("BGR", 3, [2, 1, 0]),
    Gray8 = gray("GRAY8", BYTE),
    Nv12 = two_planes("NV12", BYTE, [0, 1], BOTH),
    I420 = yuv("I420", BYTE, BOTH),
    P010Le = two_planes("P010_10LE", sample(2, 10, 6), [0, 1], BOTH),
    Yuy2 = yuv422("YUY2", 0, [1, 3]),
    Uyvy = yuv422("UYVY", 1, [0, 2]),
    Yvyu = yuv422("YVYU", 0, [3, 1]),
    Nv21 = two_planes("NV21", BYTE, [1, 0], BOTH),
    Yv12 = three_planes("YV12", Family::Yuv, BYTE, [0, 2, 1], BOTH),
    Nv16 = two_planes("NV16", BYTE, [0, 1], COLUMNS),
    Nv61 = two_planes("NV61", BYTE, [1, 0], COLUMNS),
    Y42b = yuv("Y42B", BYTE, COLUMNS),
    Y444 = yuv("Y444", BYTE, WHOLE),
    Ayuv = with_alpha(0, packed("AYUV", Family::Yuv, BYTE, 4, [1, 2, 3])),
    A420 = Layout { planes: 4, alpha: Some(channel(3, 0, 1, BYTE)), ..yuv("A420", BYTE, BOTH) },
    Gbr = three_planes("GBR", Family::Rgb, BYTE, [2, 0, 1], WHOLE),
    Rgbp = three_planes("RGBP", Family::Rgb, BYTE, [0, 1, 2], WHOLE),
    Gray16Le = gray("GRAY16_LE", WORD),
    Gray16Be = gray("GRAY16_BE", Sample { big_endian: true, ..WORD }),
    P012Le = two_planes("P012_LE", sample(2, 12, 4), [0, 1], BOTH),
    P016Le = two_planes("P016_LE", WORD, [0, 1], BOTH),
    I420p10Le = yuv("I420_10LE", sample(2, 10, 0), BOTH),
    I420p12Le = yuv("I420_12LE", sample(2, 12, 0), BOTH),
    I422p10Le = yuv("I422_10LE", sample(2, 10, 0), COLUMNS),
    I422p12Le = yuv("I422_12LE", sample(2, 12, 0), COLUMNS),
    Y444p10Le = yuv("Y444_10LE", sample(2, 10, 0), WHOLE),
    Y444p12Le = yuv("Y444_12LE", sample(2, 12, 0), WHOLE),
    Y444p16Le = yuv("Y444_16LE", WORD, WHOLE),
    Rgb10a2Le = rgb10("RGB10A2_LE", [0, 10, 20]),
    Bgr10a2Le = rgb10("BGR10A2_LE", [20, 10, 0]),
    Argb64Le = with_alpha(0, rgb16("ARGB64_LE", 8, [2, 4, 6])),
    Rgba64Le = with_alpha(6, rgb16("RGBA64_LE", 8, [0, 2, 4])),
    Bgra64Le = with_alpha(6, rgb16("BGRA64_LE", 8, [4, 2, 0])),
    Abgr64Le = with_alpha(0, rgb16("ABGR64_LE", 8, [6, 4, 2])),
    Rgb48Le = rgb16("RGB48_LE", 6, [0, 2, 4]),
    Bgr48Le = rgb16("BGR48_LE", 6, [4, 2, 0]),
}

impl PixelFormat {
    /// The format's row of the table.
    #[inline(always)]
    pub fn layout(self) -> &'static Layout {
        &LAYOUTS[self as usize]
    }

    /// GStreamer's name.
    pub fn name(self) -> &'static str {
        self.layout().name
    }

    /// Byte layout of a packed RGB format whose samples are bytes or words of two; `None` for others.
    pub fn packed_rgb(self) -> Option<PackedRgb> {
        let Layout { family, planes, channels: [r, g, b], .. } = self.layout();
        let is_packed = *family == Family::Rgb && *planes == 1 && r.sample.bytes < 4;
        is_packed.then_some(PackedRgb { bytes: r.step, offsets: [r.offset, g.offset, b.offset] })
    }

    /// Returns true if the channels are red, green and blue.
    pub fn is_rgb(self) -> bool {
        self.layout().family == Family::Rgb
    }

    /// Returns true if luma is the only channel.
    pub fn is_gray(self) -> bool {
        self.layout().family == Family::Gray
    }

    /// Representation of samples; of the first channel, where channels share a word.
    pub fn sample(self) -> Sample {
        self.layout().channels[0].sample
    }

    /// Significant bits of a sample: 8, 10, 12 or 16.
    pub fn bits(self) -> u32 {
        self.sample().bits
    }

    /// Bytes of a row without padding and number of rows, for each plane.
    pub fn planes(self, geometry: Geometry) -> impl ExactSizeIterator<Item = (usize, usize)> {
        let layout = self.layout();
        (0..layout.planes).map(move |plane| layout.plane(plane, geometry))
    }
}
