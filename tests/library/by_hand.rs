// SPDX-License-Identifier: MPL-2.0
//! SLIC's compactness by arithmetic on paper: rows of pixels in which one pixel goes from one cluster to the other where `m` says so.
//!
//! All rows are alike. Two cells of S pixels, the left one of color A, the right one of color B, but for the pixel `p` near the left end
//! of the right cell, whose color is nearer to A. Rounds look at every second column from S = 8 on and at every fourth from S = 16 on;
//! `p` is at an odd one, so it moves no center:
//!
//! ```text
//! S = 8   columns 0..8   sampled 0 2 4 6     center 3      p at 9: 6 px from the left center, 2 from the right
//!         columns 8..16  sampled 8 10 12 14  center 11
//! S = 16  columns 0..16  sampled 0 4 8 12    center 6      p at 17: 11 px and 5 px
//!         columns 16..32 sampled 16 20 24 28 center 22
//! ```
//!
//! The first assignment already puts every sampled pixel into its cell: the seeds, at 4 and 12 or 8 and 24, are equally far from the
//! first pixel of the right cell, where color decides, and no pixel of the left cell is nearer to the right seed. So more rounds change
//! nothing.
//!
//! With color distances `a` to A and `b` to B in units of m, `p` goes to the right where
//!
//! ```text
//! b² + (m/S)² near²  <  a² + (m/S)² far²        that is        m² > S² (b² - a²) / (far² - near²)
//! S = 8:  m² > 2 (b² - a²)                      S = 16: m² > (8/3) (b² - a²)
//! ```

use gstsuperpixel::algo::{AlgorithmParams, slic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::cpu::Cpu;
use gstsuperpixel::engine::Engine;
use gstsuperpixel::image::{Frame, FrameInfo, Geometry, Labels, PixelFormat};
use gstsuperpixel::params::{Outputs, Params};
use gstsuperpixel::plan::Plan;

/// The colors A, of `p`, and B, and what the distance is measured in.
struct Row {
    step: usize,
    colors: [[u16; 3]; 3],
    /// Of 8 bits or of 16.
    format: PixelFormat,
    color_space: ColorSpace,
    adaptive_compactness: bool,
}

impl Row {
    /// The label map for some compactness, with one round and with five.
    fn labels(&self, compactness: f32) -> Vec<u16> {
        let (step, width, [a, p, b]) = (self.step, 2 * self.step, self.colors);
        let color = |x: usize| match x {
            _ if x == step + 1 => p,
            _ if x < step => a,
            _ => b,
        };
        let sample = self.format.sample();
        let mut pixels = vec![0; 3 * width * sample.bytes];
        let codes = (0..width).flat_map(color);
        pixels.chunks_exact_mut(sample.bytes).zip(codes).for_each(|(bytes, code)| sample.set(bytes, code));
        let geometry = Geometry::new(width as u32, 1).unwrap();
        let info = FrameInfo::new(geometry, self.format);
        let [one, five] = [1, 5].map(|iterations| {
            let Self { color_space, adaptive_compactness, .. } = *self;
            let slic = slic::Params { iterations, compactness, color_space, adaptive_compactness };
            let params = Params {
                superpixel_size: step as u32,
                connectivity: false,
                algorithm: AlgorithmParams::Slic(slic),
                ..Params::default()
            };
            let mut engine = Engine::new(Cpu::new(1).unwrap(), Plan::new(&params, info).unwrap()).unwrap();
            let mut map = vec![0; width];
            let mut labels = Labels::new(geometry, &mut map, width).unwrap();
            let frame = Frame::new(info, &[&pixels], &[pixels.len()]).unwrap();
            engine.segment(&frame, &mut labels, Outputs::default()).unwrap();
            map
        });
        assert_eq!(one, five, "more rounds change something");
        one
    }

    /// `p` belongs to the left cluster with `below` and to the right one with `above`; nothing else changes.
    fn changes_between(&self, below: f32, above: f32) {
        let cells: Vec<u16> = (0..2 * self.step).map(|x| u16::from(x >= self.step)).collect();
        let mut left = cells.clone();
        left[self.step + 1] = 0;
        assert_eq!(self.labels(below), left, "m = {below}");
        assert_eq!(self.labels(above), cells, "m = {above}");
    }
}

/// In `rgb` a unit is two code values, and the distance of colors is the sum over the channels.
///
/// a = 16 codes = 8 units, b = 33 codes = 16.5 units: m² > 2 (272.25 - 64) = 416.5, which is 20.41². Once in one channel, once over
/// all: 8 + 4 + 4 and 25 + 4 + 4 codes.
#[test]
fn a_step_weighs_as_much_as_m_units_of_color() {
    for colors in [
        [[100, 50, 50], [116, 50, 50], [149, 50, 50]],
        [[100, 50, 50], [108, 54, 54], [133, 58, 58]],
        [[58, 100, 58], [54, 92, 54], [50, 67, 50]],
    ] {
        let row = Row {
            step: 8,
            colors,
            format: PixelFormat::Rgb,
            color_space: ColorSpace::Rgb,
            adaptive_compactness: false,
        };
        row.changes_between(20.0, 21.0);
    }
}

/// Codes of 16 bits have what lies between those of 8, 257 for each: p is 116.75, so that a = 16.75 codes of 8 bits = 8.375 units,
/// b = 32.25 codes = 16.125 units and m² > 2 (260.0 - 70.1), which is 19.49². As 117 it would be 19.17, as 116 20.41.
#[test]
fn codes_of_sixteen_bits_count_as_what_they_are() {
    let colors = [[25_700, 9, 9], [30_005, 9, 9], [38_293, 9, 9]];
    let row = Row {
        step: 8,
        colors,
        format: PixelFormat::Rgb48Le,
        color_space: ColorSpace::Rgb,
        adaptive_compactness: false,
    };
    row.changes_between(19.3, 19.7);
    let colors = colors.map(|[r, g, b]| [b, g, r]);
    Row { colors, format: PixelFormat::Bgr48Le, ..row }.changes_between(19.3, 19.7);
}

/// Above m = 22 quanta are halved, and with S = 16 the same m is half as much a pixel.
///
/// a = 16 codes = 8 units, b = 54 codes = 27 units: m² > 8/3 (729 - 64) = 1773.3, which is 42.11².
#[test]
fn a_longer_step_and_coarser_quanta_weigh_the_same() {
    let colors = [[100, 50, 50], [116, 50, 50], [170, 50, 50]];
    let row = Row {
        step: 16,
        colors,
        format: PixelFormat::Rgb,
        color_space: ColorSpace::Rgb,
        adaptive_compactness: false,
    };
    row.changes_between(40.0, 44.0);
    // The first row of the test before, twice as far apart: a = 16, b = 33, m² > 2 (1089 - 256), which is 40.82².
    let colors = [[100, 50, 50], [132, 50, 50], [198, 50, 50]];
    let row = Row {
        step: 8,
        colors,
        format: PixelFormat::Rgb,
        color_space: ColorSpace::Rgb,
        adaptive_compactness: false,
    };
    row.changes_between(40.0, 42.0);
}

/// SLICO: `D² = dc² / M + ds² / S²`, and M stays what it begins with, m², as the sampled members have their center's color. That is
/// the same inequality, with squares of channels instead of their sum.
///
/// The first row has one channel: 20.41 as above. The second: a² = (64 + 16 + 16) / 4 = 24, b² = (625 + 16 + 16) / 4 = 164.25, m² > 280.5,
/// which is 16.75².
#[test]
fn slico_begins_with_m_and_squares_each_channel() {
    for (colors, below, above) in [
        ([[100, 50, 50], [116, 50, 50], [149, 50, 50]], 20.0, 21.0),
        ([[100, 50, 50], [108, 54, 54], [133, 58, 58]], 16.0, 17.0),
    ] {
        let row = Row {
            step: 8,
            colors,
            format: PixelFormat::Rgb,
            color_space: ColorSpace::Rgb,
            adaptive_compactness: true,
        };
        row.changes_between(below, above);
    }
}

/// In Lab a unit is one of L, which of grays follows from CIE's formulas: gray 100 has 42.37, 119 50.03 and 160 65.87, so that
/// a = 7.66, b = 15.83 and m² > 2 (250.7 - 58.6), which is 19.6². L is rounded to 1/8, a distance thus by 1/8 at most, m by 2 percent.
#[test]
fn in_lab_the_unit_is_one_of_lightness() {
    let lightness = |code: u8| {
        let light = ((f64::from(code) / 255.0 + 0.055) / 1.055).powf(2.4);
        116.0 * light.cbrt() - 16.0
    };
    let [a, p, b] = [100, 119, 160].map(lightness);
    let m = (2.0 * ((b - p).powi(2) - (p - a).powi(2))).sqrt();
    assert!((m - 19.6).abs() < 0.1, "the comment is wrong: {a} {p} {b} {m}");
    let colors = [[100; 3], [119; 3], [160; 3]];
    let row = Row {
        step: 8,
        colors,
        format: PixelFormat::Rgb,
        color_space: ColorSpace::Lab,
        adaptive_compactness: false,
    };
    row.changes_between(0.975 * m as f32, 1.025 * m as f32);
}
