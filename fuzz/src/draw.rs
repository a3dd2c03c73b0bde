// SPDX-License-Identifier: MPL-2.0
//! Frames, parameters and drawings from the fuzzer's bytes. Values near the ends of ranges, odd sizes and tiny frames are
//! more likely than others. Costs are bounded, so that a run takes milliseconds.

use arbitrary::{Result, Unstructured};
use gstsuperpixel::algo::{AlgorithmParams, lsc, quickshift, slic, snic};
use gstsuperpixel::color::ColorSpace;
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat, YuvMatrix};
use gstsuperpixel::params::{
    BOUNDARY_WIDTH, Boundaries, Drawing, Fill, ITERATIONS, MIN_REGION, Outputs, Params, Range,
    SUPERPIXEL_SIZE,
};
use gstsuperpixel::post::{hierarchy, merge, refine};
use gstsuperpixel::temporal;

use crate::pictures::{Buffer, PICTURES};

/// Most pixels of a frame; the larger ones are drawn rarely.
pub fn most_pixels(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(if rarely(u, 8)? { 10_000 } else { 3000 })
}

/// Most pixels times rounds, or times the area of a quick shift window.
const MOST_WORK: f32 = 400_000.0;

/// True once in `one_in` draws.
pub fn rarely(u: &mut Unstructured<'_>, one_in: u8) -> Result<bool> {
    u.ratio(1, one_in)
}

/// A side in px: tiny, small or some hundred.
fn side(u: &mut Unstructured<'_>) -> Result<u32> {
    match u.int_in_range(0..=3)? {
        0 => u.int_in_range(1..=5),
        1 | 2 => u.int_in_range(1..=67),
        _ => u.int_in_range(1..=401),
    }
}

/// A frame size of at most `most` pixels.
pub fn geometry(u: &mut Unstructured<'_>, most: u32) -> Result<Geometry> {
    let (width, height) = (side(u)?, side(u)?);
    let height = height.min(most / width).max(1);
    Ok(Geometry::new(width, height).expect("a side is 1 to 401"))
}

/// A kind of frame of at most `most` pixels.
pub fn frame_info(u: &mut Unstructured<'_>, most: u32) -> Result<FrameInfo> {
    let geometry = geometry(u, most)?;
    let format = *u.choose(&PixelFormat::ALL)?;
    let matrices =
        [YuvMatrix::Bt601, YuvMatrix::Bt709, YuvMatrix::Bt2020, YuvMatrix::Fcc, YuvMatrix::Smpte240m];
    Ok(FrameInfo { geometry, format, matrix: *u.choose(&matrices)?, full_range: u.arbitrary()? })
}

/// A number within a range, its ends and default more likely than others.
fn within(u: &mut Unstructured<'_>, range: Range<f32>) -> Result<f32> {
    Ok(match u.int_in_range(0..=7)? {
        0 => range.min,
        1 => range.max,
        2 => range.default,
        // Evenly in the logarithm, where the range has one.
        3..=5 if range.min > 0.0 => {
            let part = f32::from(u.arbitrary::<u16>()?) / 65535.0;
            (range.min * (range.max / range.min).powf(part)).clamp(range.min, range.max)
        }
        _ => range.min + (range.max - range.min) * f32::from(u.arbitrary::<u16>()?) / 65535.0,
    })
}

/// A number within a range of integers.
fn whole(u: &mut Unstructured<'_>, range: Range<u32>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7)? {
        0 => range.min,
        1 => range.max,
        2 => range.default,
        3..=6 => u.int_in_range(range.min..=range.max.min(range.min + 40))?,
        _ => u.int_in_range(range.min..=range.max)?,
    })
}

/// An algorithm with valid parameters that is affordable for so many pixels.
pub fn algorithm(u: &mut Unstructured<'_>, pixels: usize) -> Result<AlgorithmParams> {
    let most = (MOST_WORK / pixels as f32).max(1.0);
    let space = *u.choose(&ColorSpace::ALL)?;
    Ok(match u.int_in_range(0..=5)? {
        5 => AlgorithmParams::Snic(snic::Params {
            compactness: within(u, slic::COMPACTNESS)?,
            color_space: space,
        }),
        0 | 1 => AlgorithmParams::Slic(slic::Params {
            iterations: whole(u, ITERATIONS)?.min(most as u32),
            compactness: within(u, slic::COMPACTNESS)?,
            color_space: space,
            adaptive_compactness: u.arbitrary()?,
        }),
        2 | 3 => AlgorithmParams::Lsc(lsc::Params {
            iterations: whole(u, ITERATIONS)?.min(most as u32),
            ratio: within(u, lsc::RATIO)?,
        }),
        _ => AlgorithmParams::QuickShift(quickshift::Params {
            // A window of 6 sigma a side, and links up to tau.
            sigma: within(u, quickshift::SIGMA)?.min(most.sqrt() / 6.0).max(quickshift::SIGMA.min),
            tau: within(u, quickshift::TAU)?.min(most.sqrt() / 2.0).max(quickshift::TAU.min),
            color_scale: within(u, quickshift::COLOR_SCALE)?,
            color_space: space,
        }),
    })
}

fn merging(u: &mut Unstructured<'_>) -> Result<merge::Params> {
    if u.arbitrary()? {
        return Ok(merge::Params::default());
    }
    Ok(merge::Params {
        ratio: within(u, merge::MERGE)?,
        rule: if u.arbitrary()? { merge::Rule::Either } else { merge::Rule::Mutual },
        max_distance: within(u, merge::MAX_DISTANCE)?,
        passes: whole(u, merge::PASSES)?,
    })
}

/// Off, or a number of regions; not beside `merge`.
fn regions(u: &mut Unstructured<'_>, params: &mut Params) -> Result<()> {
    params.hierarchy.compactness = within(u, hierarchy::COMPACTNESS)?;
    params.hierarchy.regions =
        if params.merge.ratio > 0.0 || u.arbitrary()? { 0 } else { u.int_in_range(1..=300)? };
    Ok(())
}

fn refining(u: &mut Unstructured<'_>) -> Result<refine::Params> {
    if u.arbitrary()? {
        return Ok(refine::Params::default());
    }
    Ok(refine::Params { sweeps: whole(u, refine::REFINE)?, smoothness: within(u, refine::SMOOTHNESS)? })
}

fn superpixels(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=5)? {
        0..=3 => 0,
        4 => u.int_in_range(1..=300)?,
        _ => u.arbitrary()?,
    })
}

/// Valid parameters for frames of so many pixels.
pub fn params(u: &mut Unstructured<'_>, pixels: usize) -> Result<Params> {
    let mut params = Params::default();
    for part in 0..PARTS {
        change(u, &mut params, pixels, part)?;
    }
    Ok(params)
}

/// Number of parts of the parameters that change by themselves.
pub const PARTS: u8 = 9;

/// Draws one part of the parameters anew.
pub fn change(u: &mut Unstructured<'_>, params: &mut Params, pixels: usize, part: u8) -> Result<()> {
    match part {
        0 => params.superpixel_size = whole(u, SUPERPIXEL_SIZE)?,
        1 => params.superpixels = superpixels(u)?,
        2 => params.connectivity = !rarely(u, 4)?,
        3 => params.min_region = within(u, MIN_REGION)?,
        4 => {
            params.merge = merging(u)?;
            regions(u, params)?;
        }
        5 => params.temporal = u.arbitrary()?,
        6 => params.temporal_inertia = within(u, temporal::INERTIA)?,
        7 => params.refine = refining(u)?,
        _ => params.algorithm = algorithm(u, pixels)?,
    }
    Ok(())
}

/// Puts any number into one of the parameters; it is for the library to refuse it.
pub fn spoil(u: &mut Unstructured<'_>, params: &mut Params) -> Result<()> {
    let number =
        *u.choose(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, -1.0, f32::MIN_POSITIVE, 1e30])?;
    let count = *u.choose(&[0, 1, 3, 1025, u32::MAX])?;
    match (u.int_in_range(0..=6)?, &mut params.algorithm) {
        (0, _) => params.superpixel_size = count,
        (1, _) => params.min_region = number,
        (2, _) => params.merge.ratio = number,
        (3, _) => params.merge.passes = count,
        (4, _) => params.temporal_inertia = number,
        (5, _) => params.refine.smoothness = number,
        (_, AlgorithmParams::Slic(slic)) => slic.compactness = number,
        (_, AlgorithmParams::Lsc(lsc)) => lsc.ratio = number,
        (_, AlgorithmParams::QuickShift(quickshift)) => quickshift.tau = number,
        (_, AlgorithmParams::Snic(snic)) => snic.compactness = number,
    }
    Ok(())
}

/// A picture of some kind, with rows of its own length, a few of its bytes from the fuzzer.
pub fn picture(u: &mut Unstructured<'_>, info: FrameInfo, padding: usize) -> Result<Buffer> {
    let mut buffer = Buffer::new(info, *u.choose(&PICTURES)?, u.arbitrary::<u32>()?.into(), padding);
    scribble(u, &mut buffer)?;
    Ok(buffer)
}

/// Writes runs of the fuzzer's bytes into the planes.
pub fn scribble(u: &mut Unstructured<'_>, buffer: &mut Buffer) -> Result<()> {
    for _ in 0..u.int_in_range(0..=3)? {
        let plane = u.choose_index(buffer.planes.len())?;
        let plane = &mut buffer.planes[plane];
        let start = u.choose_index(plane.len())?;
        let length = u.int_in_range(1..=plane.len() - start)?;
        let value: [u8; 3] = u.arbitrary()?;
        for (i, byte) in plane[start..start + length].iter_mut().enumerate() {
            *byte = value[i % 3];
        }
    }
    Ok(())
}

/// Moves a picture by some pixels along its rows and by some rows, the rest around its edge.
pub fn shift(u: &mut Unstructured<'_>, buffer: &mut Buffer) -> Result<()> {
    let (dx, dy) = (u.int_in_range(0..=8)?, u.int_in_range(0..=8usize)?);
    for (plane, stride) in buffer.planes.iter_mut().zip(&buffer.strides) {
        let length = plane.len();
        plane.rotate_right((dy * stride + 4 * dx) % length);
    }
    Ok(())
}

/// What is measured.
pub fn outputs(u: &mut Unstructured<'_>) -> Result<Outputs> {
    Ok(Outputs {
        table: !rarely(u, 5)?,
        neighbors: u.arbitrary()?,
        mean_color: u.arbitrary()?,
        linear_light: rarely(u, 4)?,
    })
}

/// What is drawn.
pub fn drawing(u: &mut Unstructured<'_>) -> Result<Drawing> {
    let fill = *u.choose(&[Fill::None, Fill::MeanColor, Fill::Labels])?;
    let boundaries = if u.arbitrary()? {
        let width = if rarely(u, 30)? { u.arbitrary()? } else { whole(u, BOUNDARY_WIDTH)? };
        Some(Boundaries { color: u.arbitrary()?, width })
    } else {
        None
    };
    Ok(Drawing { fill, boundaries })
}
