// SPDX-License-Identifier: MPL-2.0
//! Abstraction: draws regions as flat or shaded patches with smooth, anti-aliased outlines and lines of ink.
//!
//! Everything that decides a pixel is an integer; quotients are rounded down, tables are made once on the host (`rule.rs`).
//! Codes are those of the frame's own channels. `>>` keeps the sign.
//!
//! ```text
//! paint of region l (paint.rs): v_l(x, y), a plane of color for each channel, clamped to the region's own range; B_l and N_l, its weights
//!     at the wide and at the narrow scale; F_l, its mean color as a feature of `lab`
//! u_l(p) = the sum of g(i) g(j) over all pixels (i, j) from p with label l, at most r away in each direction; outside of the frame the
//!     nearest pixel counts; g is a Gaussian of `outline-smoothness`, whose 2r + 1 weights add up to 128
//! s_l = (2 u_l B_l) >> 16
//! a, b = the labels of largest and second largest s, the lower label first where two are equal
//! d = far[1024 (s_a - s_b) / (s_a + s_b)], the distance from the outline in 1/256 px; where one of both weighs more than 1 for its width,
//!     the heavier one is compared with all that it is not, 2048 - s / B, so d may be negative
//! e = sqrt |F_a - F_b|², the contrast, in 1/8 Delta E
//! where e > 20 Delta E, at 40 whole:
//!     m_l = (N_l n_l) >> 8, with n_l as u_l over 5 x 5 px with the weights 1 4 6 4 1
//!     d' = near[1024 (m_a - m_b) / (m_a + m_b)], which is negative where b is nearer, and at least d where there is no b
//!     d goes over to d' as e rises, and as |d - d'| rises from 3/8 to 3/4 px or one of both is thinner than 1.7 px
//! where d < 0, a and b change places, and d its sign
//! coverage of a = 1/2 + d, at most 1: the color is coverage v_a + (1 - coverage) v_b
//! ink: t rises from 0 at e = 8 Delta E to 1 at 40; a line of `ink` t px with its middle at d = 0, 3/8 + 5/8 t opaque, and paler where it
//!     is thinner than 1 px; its own edges are covered like those of regions
//! ```
//!
//! This is a step of threshold dynamics (Merriman, Bence and Osher 1992; for labels Esedoğlu and Otto 2015): a Gaussian of each
//! region, then the largest. Outlines move by their curvature, so that stairs and hairs of a few px go and straight borders stay.
//! The difference of the two largest says where between pixels the outline is, since a Gaussian of a straight border is its
//! distance: so coverage and ink cost no second pass.
//!
//! Two things that a Gaussian alone would take survive. A strip thinner than the Gaussian loses at its own place, so a region's weight
//! grows as much as a straight strip of its mean width, 2 area / boundary, needs to keep that width. And a corner
//! is rounded off by about the Gaussian's width, so where the contrast is high and the outline of a narrow one lies elsewhere, that one
//! counts: it takes half a px of a right angle. The stairs of a straight border are nearer to both than that, and go.
//!
//! In temporal mode paints ease (steady.rs): base, slopes, range and weights of a region go 1 / (1 + `steadiness`) of the way from the
//! last frame's paint of the same track to their new values, a new region's from the paint at its middle. Where both colors
//! differ by more than 20 Delta E they go further, at 40 all the way, and after a cut, when fewer than a quarter of the regions
//! continue a track, nothing eases.
//!
//! Then drawn pixels ease where the picture is still (still.rs), since borders between like colors tremble there. Colors are on a
//! scale of 16 bits:
//!
//! ```text
//! m = the mean color of a cell of 4 x 4 px in the frame, of the samples that planes are found by; c, the color that it has had
//! h = the largest difference of m and c among the channels; a cell moves if its h, or that of one of the 8 around it, is 16 codes of 8 bits or more
//! n = frames since the cell moved, 0 where it does now
//! share = the largest of 1024 / (n + 2)², 256 / (1 + 10 `steadiness`) and (h / 16)⁴ / 2^24; c goes share / 256 of the way to m
//! drawn pixel: goes share / 256 of the way to what the rule above gives; where that is at most 2 codes of 8 bits, it stays
//! ```
//!
//! So what moves is drawn as it is, as are the 4 px around it that its outline may reach; what has come to rest settles within about ten
//! frames; and a slow change of light is followed, since h grows until the share is large enough. Nothing is still at a cut or when a
//! parameter of the drawing has changed.
//!
//! With a `palette` regions have one of so many colors each (palette.rs). They are found where frames do not follow each other:
//! the color of the largest region first, then always that of the region with the largest product of area and squared
//! difference from the colors that are there; then 8 rounds in which regions take the nearest color and colors become the mean of their regions'
//! pixels (Lloyd 1982, from the start of Gonzalez 1985, weighted). In frames that follow a region keeps its track's color until another one's
//! squared difference is below 3/4 of that one's, and each color moves to the mean of its regions by at most one code of 8 bits.
//!
//! Pixels outside of a mask are not drawn and count for no region. Labels, the region table and the rest of the metadata are those of the
//! segmentation. Alpha and padding bytes do not change.

use crate::parameter::{About, Range, parameters};

pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub mod labels;
mod moments;
mod outline;
pub(crate) mod paint;
pub(crate) mod palette;
pub(crate) mod rule;
mod steady;
pub(crate) mod still;

/// Scale of smoothing.
pub const OUTLINE_SMOOTHNESS: Range<f32> = Range {
    about: About::new(
        "outline-smoothness",
        "Outline smoothness",
        "px",
        "With {overlay=abstraction}: scale at which outlines are smoothed, the standard deviation of a Gaussian; higher = rounder \
         outlines and fewer hairs",
    ),
    min: 0.5,
    max: 6.0,
    default: 2.0,
};
const SHADING: About = About::new(
    "shading",
    "Shading",
    "",
    "With {overlay=abstraction}: shade every region as a plane of color fits it best, instead of its mean color",
);
/// Width of lines.
pub const INK: Range<f32> = Range {
    about: About::new(
        "ink",
        "Ink",
        "px",
        "With {overlay=abstraction}: width of lines between regions that differ most; thinner and paler between others, none between \
         like colors (0 = off); at most 4 times {outline-smoothness}",
    ),
    min: 0.0,
    max: 8.0,
    default: 1.5,
};
const INK_COLOR: Range<u32> = Range {
    about: About::new(
        "ink-color",
        "Ink color",
        "",
        "With {overlay=abstraction}: color of lines as 0xAARRGGBB, blended by alpha",
    ),
    min: 0,
    max: u32::MAX,
    default: 0xff10_1018,
};

/// Colors of the drawing.
pub const PALETTE: Range<u32> = Range {
    about: About::new(
        "palette",
        "Palette",
        "",
        "With {overlay=abstraction}: colors that all regions are painted with, without {shading}; over a stream each moves by at most a \
         code a frame, while {steadiness} is not 0 (0 = any number)",
    ),
    min: 0,
    max: palette::MOST_COLORS as u32,
    default: 0,
};

/// Frames that colors take.
pub const STEADINESS: Range<f32> = Range {
    about: About::new(
        "steadiness",
        "Steadiness",
        "frames",
        "With {overlay=abstraction} and {temporal=true}: frames over which color, shading and ink of a region ease to their new values, \
         and a new region from the color at its place; drawn pixels of still parts take ten times as long (0 = at once)",
    ),
    min: 0.0,
    max: 100.0,
    default: 6.0,
};

/// Parameters of the drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Params {
    /// Standard deviation of the Gaussian that smooths outlines, 0.5 to 6 px.
    pub outline_smoothness: f32,
    /// Whether regions are planes of color; else they have one color.
    pub shading: bool,
    /// Width of lines at full contrast, 0 to 8 px; 0 = none.
    pub ink: f32,
    /// Color of lines: 0xAARRGGBB.
    pub ink_color: u32,
    /// Colors of all regions together, up to 64; 0 = any number.
    pub palette: u32,
    /// Frames over which colors ease in temporal mode, 0 to 100; 0 = none.
    pub steadiness: f32,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            outline_smoothness: OUTLINE_SMOOTHNESS.default,
            shading: true,
            ink: INK.default,
            ink_color: INK_COLOR.default,
            palette: PALETTE.default,
            steadiness: STEADINESS.default,
        }
    }
}

parameters!(Params {
    real OUTLINE_SMOOTHNESS => outline_smoothness;
    switch SHADING => shading;
    real INK => ink;
    whole INK_COLOR => ink_color;
    whole PALETTE => palette;
    real STEADINESS => steadiness;
});
