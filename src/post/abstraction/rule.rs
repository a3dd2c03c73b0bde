// SPDX-License-Identifier: MPL-2.0
//! Tables and constants of the abstraction, made once for its parameters.

use super::Params;
use crate::color::Yuv;
use crate::image::FrameInfo;
use crate::post::overlay::native;

/// Pixels on either side that the widest Gaussian reaches.
pub(crate) const MOST_RADIUS: usize = 15;
/// Weights of the widest Gaussian.
pub(crate) const MOST_WEIGHTS: usize = 2 * MOST_RADIUS + 1;
/// Sum of the weights of a Gaussian in one direction.
pub(crate) const WEIGHT_SUM: u8 = 128;
/// Steps of a relative difference between two regions' weights, from 0 to all.
pub(crate) const DIFFERENCES: usize = 1024;
/// One px, where distances from an outline are meant.
pub(crate) const PX: i32 = 256;
/// A weight of 1 of a region, and the largest.
pub(crate) const BOOST_ONE: u32 = 4096;
const MOST_BOOST: f64 = 32_767.0;
/// What a region of weight 1 weighs where it is alone, at the wide and at the narrow scale.
pub(crate) const WIDE_WHOLE: u32 = 2048;
pub(crate) const NARROW_WHOLE: u32 = 4096;
/// Widths in 1/64 standard deviation that raise a region's weight.
const WIDTHS: usize = 4 * NORMAL_STEPS;
/// Reach of the narrow Gaussian's distances, in px.
const NEAR_REACH: f64 = 3.0;
/// Samples of the normal distribution per standard deviation, and standard deviations.
const NORMAL_STEPS: usize = 64;
const NORMAL_REACH: usize = 6;

/// Contrasts in 1/8 Delta E: from where on corners are kept and ink is drawn, and from where on wholly.
pub(crate) const SHARP: [u32; 2] = [160, 320];
pub(crate) const INKED: [u32; 2] = [64, 320];
/// Distance between the outlines of both scales in 1/256 px: a stair of one pixel is hardly above it, a corner is well above.
pub(crate) const APART: [u32; 2] = [96, 192];
/// Weight at the narrow scale of a region that is 1.7 px wide, and 1.2 px.
pub(crate) const THIN: [u32; 2] = [4500, 6500];
/// Frames that drawn pixels of still parts take for each frame that paints take.
const PIXEL_STEADINESS: f32 = 10.0;
/// Weights of the narrow Gaussian.
pub(crate) const NARROW: [u32; 5] = [1, 4, 6, 4, 1];

/// What one set of parameters gives.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Rule {
    pub radius: usize,
    /// Weights from `-radius` on.
    pub weights: [u8; MOST_WEIGHTS],
    /// Distance from the outline in 1/256 px by relative difference, at the wide and at the narrow scale.
    pub far: Box<[u16; DIFFERENCES + 1]>,
    pub near: Box<[u16; DIFFERENCES + 1]>,
    /// Weight of a region by its width in 1/64 standard deviation; the last holds for all that are wider.
    pub boosts: [u16; WIDTHS + 1],
    /// Standard deviation in 1/256 px.
    pub deviation: u32,
    /// False if the wide Gaussian is no wider than the narrow one.
    pub keeps_corners: bool,
    pub shading: bool,
    /// Colors of the palette; 0 without one.
    pub palette: usize,
    /// Part of 256 that a paint goes to its new values in a frame.
    pub share: u32,
    /// Least part of 256 that a drawn pixel does.
    pub least_share: u32,
    /// Width of lines in 1/256 px, their opacity and their color in the frame's channels.
    pub ink: u32,
    pub ink_alpha: u32,
    pub ink_color: [u16; 3],
}

/// A Gaussian without its factor, by squaring alone, so that every machine has the same bits.
fn gaussian(x: f64) -> f64 {
    let mut power = 1.0 - x * x / 2.0 / 4096.0;
    for _ in 0..12 {
        power *= power;
    }
    power
}

/// The share of a normal distribution between 0 and each multiple of 1/64 standard deviation.
fn normal() -> [f64; NORMAL_STEPS * NORMAL_REACH + 1] {
    let mut sums = [0.0; NORMAL_STEPS * NORMAL_REACH + 1];
    for i in 1..sums.len() {
        let at = |half: usize| gaussian((2 * i - 2 + half) as f64 / (2 * NORMAL_STEPS) as f64);
        sums[i] = sums[i - 1] + at(0) + 4.0 * at(1) + at(2);
    }
    let whole = sums[sums.len() - 1];
    sums.map(|sum| sum / whole / 2.0)
}

/// Distances in 1/256 px from a straight border, by the relative difference of what a Gaussian shows of either side.
fn distances(normal: &[f64], deviation: f64, reach: f64) -> Box<[u16; DIFFERENCES + 1]> {
    let mut distances = Box::new([0; DIFFERENCES + 1]);
    let mut i = 0;
    for (difference, distance) in distances.iter_mut().enumerate() {
        let share = difference as f64 / (2 * DIFFERENCES) as f64;
        while i + 2 < normal.len() && normal[i + 1] < share {
            i += 1;
        }
        let part = ((share - normal[i]) / (normal[i + 1] - normal[i])).min(1.0);
        let px = deviation * (i as f64 + part) / NORMAL_STEPS as f64;
        *distance = (px.min(reach) * f64::from(PX) + 0.5) as u16;
    }
    distances
}

/// Weights of regions by their width. A straight strip as wide as `z` standard deviations keeps its width if at its border it
/// weighs as much as both sides together.
fn boosts(normal: &[f64]) -> [u16; WIDTHS + 1] {
    std::array::from_fn(|width| {
        let share = normal[width];
        let boost = if share > 0.0 { (1.0 - share) / share } else { f64::INFINITY };
        let boost = if width == WIDTHS { 1.0 } else { boost };
        (boost * f64::from(BOOST_ONE) + 0.5).min(MOST_BOOST) as u16
    })
}

impl Rule {
    pub fn new(params: &Params, info: &FrameInfo, yuv: &Yuv) -> Self {
        let deviation = f64::from(params.outline_smoothness);
        let radius = ((2.5 * deviation).ceil() as usize).min(MOST_RADIUS);
        let weight = |i: usize| gaussian((i as f64 - radius as f64) / deviation);
        let whole: f64 = (0..=2 * radius).map(weight).sum();
        let mut weights = [0; MOST_WEIGHTS];
        for (i, of) in weights.iter_mut().enumerate().take(2 * radius + 1) {
            *of = (f64::from(WEIGHT_SUM) * weight(i) / whole + 0.5) as u8;
        }
        weights[radius] = 0;
        weights[radius] = WEIGHT_SUM - weights.iter().sum::<u8>();
        let normal = normal();
        let [alpha, r, g, b] = params.ink_color.to_be_bytes();
        let ink = params.ink.min(4.0 * params.outline_smoothness);
        Self {
            radius,
            weights,
            far: distances(&normal, deviation, radius as f64),
            near: distances(&normal, 1.0, NEAR_REACH),
            boosts: boosts(&normal),
            deviation: (deviation * 256.0 + 0.5) as u32,
            keeps_corners: deviation > 1.0,
            shading: params.shading && params.palette == 0,
            palette: params.palette as usize,
            share: (256.0 / (1.0 + params.steadiness) + 0.5) as u32,
            least_share: ((256.0 / (1.0 + PIXEL_STEADINESS * params.steadiness) + 0.5) as u32).max(1),
            ink: (ink * PX as f32 + 0.5) as u32,
            ink_alpha: u32::from(alpha),
            ink_color: native(info, yuv, [r, g, b]),
        }
    }

    /// Weights of a region at the wide and at the narrow scale. A boundary pixel side counts where another region is behind it.
    pub fn boost(&self, area: u32, sides: u32) -> [u16; 2] {
        [self.deviation, PX as u32].map(|deviation| {
            let widths = 2 * NORMAL_STEPS as u64 * u64::from(PX as u32) * u64::from(area);
            let width = widths / (u64::from(sides) * u64::from(deviation)).max(1);
            self.boosts[width.min(WIDTHS as u64) as usize]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Geometry, PixelFormat};

    fn rule(outline_smoothness: f32) -> Rule {
        let info = FrameInfo::new(Geometry::new(8, 8).unwrap(), PixelFormat::Rgb);
        Rule::new(&Params { outline_smoothness, ..Params::default() }, &info, &Yuv::new(&info))
    }

    #[test]
    fn weights_are_a_gaussian_of_the_wanted_width() {
        for tenths in 5..=60 {
            let wanted = f64::from(tenths) / 10.0;
            let rule = rule(wanted as f32);
            let used = &rule.weights[..2 * rule.radius + 1];
            assert_eq!(used.iter().map(|&w| u32::from(w)).sum::<u32>(), 128, "{wanted}");
            assert!(rule.weights[used.len()..].iter().all(|&w| w == 0));
            assert!(used.iter().eq(used.iter().rev()), "{wanted}: {used:?}");
            let square = |(i, &w): (usize, &u8)| f64::from(w) * (i as f64 - rule.radius as f64).powi(2);
            let deviation = (used.iter().enumerate().map(square).sum::<f64>() / 128.0).sqrt();
            assert!((deviation - wanted).abs() < 0.1 * wanted + 0.05, "{wanted}: {deviation}");
        }
    }

    #[test]
    fn distances_are_those_of_a_straight_border() {
        // The normal distribution has 0.68269 within one standard deviation, 0.95450 within two.
        for deviation in [0.5, 1.0, 2.0, 6.0] {
            let rule = rule(deviation);
            assert_eq!(rule.far[0], 0);
            for (share, times) in [(0.38292, 0.5), (0.68269, 1.0), (0.95450, 2.0)] {
                let at = (share * DIFFERENCES as f64).round() as usize;
                let px = f64::from(rule.far[at]) / 256.0;
                assert!(
                    (px - f64::from(deviation) * times).abs() < 0.02 * f64::from(deviation),
                    "{deviation} {times}: {px}"
                );
            }
            assert!(rule.far.is_sorted() && rule.near.is_sorted());
            assert!(usize::from(rule.far[DIFFERENCES]) <= 256 * rule.radius);
        }
    }

    #[test]
    fn thin_regions_weigh_more_and_wide_ones_one() {
        let rule = rule(2.0);
        assert!(rule.boosts.is_sorted_by(|a, b| a >= b));
        // A square of 40 px, and a line of 1 px and 100.
        assert_eq!(rule.boost(1600, 160), [4096, 4096]);
        let [wide, narrow] = rule.boost(100, 202);
        assert!(wide > 3 * 4096 && narrow > 4096 && narrow < 9000, "{wide} {narrow}");
        assert_eq!(rule.boost(5, 0), [4096, 4096]);
    }
}
