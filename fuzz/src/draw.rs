// SPDX-License-Identifier: MPL-2.0
//! Frames, parameters and drawings from the fuzzer's bytes. Values near the ends of ranges, odd sizes and tiny frames are
//! more likely than others. Costs are bounded, so that a run takes milliseconds.

use arbitrary::{Result, Unstructured};
use gstsuperpixel::algo::Algorithm;
use gstsuperpixel::algo::quickshift::{SIGMA, TAU};
use gstsuperpixel::image::{FrameInfo, Geometry, PixelFormat, Prior, PriorSamples, YuvMatrix};
use gstsuperpixel::parameter::{Kind, Value};
use gstsuperpixel::params::{
    self, BOUNDARY_WIDTH, Boundaries, Drawing, Fill, Outputs, ParamSet, Params, Range,
};

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
fn real(u: &mut Unstructured<'_>, range: &Range<f32>) -> Result<f32> {
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
fn whole(u: &mut Unstructured<'_>, range: &Range<u32>) -> Result<u32> {
    Ok(match u.int_in_range(0..=7)? {
        0 => range.min,
        1 => range.max,
        2 => range.default,
        3..=6 => u.int_in_range(range.min..=range.max.min(range.min + 40))?,
        _ => u.int_in_range(range.min..=range.max)?,
    })
}

/// Any value of a parameter.
fn value(u: &mut Unstructured<'_>, kind: &Kind) -> Result<Value> {
    Ok(match kind {
        Kind::Whole(range) => Value::Whole(whole(u, range)?),
        Kind::Signed(range) => Value::Signed(u.int_in_range(range.min..=range.max)?),
        Kind::Real(range) => Value::Real(real(u, range)?),
        Kind::Switch(_) => Value::Switch(u.arbitrary()?),
        Kind::Choice(_, choices) => Value::Choice(u.choose_index(choices.all.len())?),
    })
}

/// A value of the parameter of that name that is affordable for so many pixels, and more often one that streams have.
fn affordable(u: &mut Unstructured<'_>, kind: &Kind, pixels: usize) -> Result<Value> {
    let most = (MOST_WORK / pixels as f32).max(1.0);
    let drawn = value(u, kind)?;
    Ok(match (kind.about().name, drawn) {
        ("iterations", Value::Whole(rounds)) => Value::Whole(rounds.min(most as u32)),
        // A window of 6 sigma a side, and links up to tau.
        ("sigma", Value::Real(sigma)) => Value::Real(sigma.min(most.sqrt() / 6.0).max(SIGMA.min)),
        ("tau", Value::Real(tau)) => Value::Real(tau.min(most.sqrt() / 2.0).max(TAU.min)),
        ("superpixels", _) => Value::Whole(superpixels(u)?),
        ("regions", _) => Value::Whole(if u.arbitrary()? { 0 } else { u.int_in_range(1..=300)? }),
        ("connectivity", _) => Value::Switch(!rarely(u, 4)?),
        // What a stage does costs time in every frame, and hides what is below it.
        ("merge" | "refine" | "hierarchy", _) if u.arbitrary()? => default_of(kind),
        _ => drawn,
    })
}

/// The default of a parameter.
fn default_of(kind: &Kind) -> Value {
    ParamSet::default().get(kind.about().name).expect("listed parameters have values")
}

fn superpixels(u: &mut Unstructured<'_>) -> Result<u32> {
    Ok(match u.int_in_range(0..=5)? {
        0..=3 => 0,
        4 => u.int_in_range(1..=300)?,
        _ => u.arbitrary()?,
    })
}

/// Draws a parameter anew. Of two that exclude each other the drawn one stays.
fn draw(u: &mut Unstructured<'_>, set: &mut ParamSet, kind: &Kind, pixels: usize) -> Result<()> {
    let value = affordable(u, kind, pixels)?;
    set.set(kind.about().name, value).expect("the parameter is listed").expect("the value is in its range");
    if set.params().validate().is_err() {
        let merges = kind.about().name == "merge";
        let other = params::list()
            .into_iter()
            .find(|one| one.about().name == if merges { "regions" } else { "merge" });
        let other = other.expect("both are listed").kind;
        set.set(other.about().name, default_of(&other)).expect("listed").expect("a default is in its range");
    }
    Ok(())
}

/// An algorithm; SLIC and LSC are more likely than others.
fn algorithm(u: &mut Unstructured<'_>) -> Result<Algorithm> {
    let often = [Algorithm::Slic, Algorithm::Lsc];
    if u.arbitrary()? { Ok(*u.choose(&often)?) } else { Ok(*u.choose(Algorithm::ALL)?) }
}

/// Valid parameters for frames of so many pixels.
pub fn params(u: &mut Unstructured<'_>, pixels: usize) -> Result<Params> {
    let mut set = ParamSet { algorithm: algorithm(u)?, ..ParamSet::default() };
    for listed in params::list() {
        draw(u, &mut set, &listed.kind, pixels)?;
    }
    Ok(set.params())
}

/// Draws one of the parameters anew, now and then the algorithm.
pub fn change(u: &mut Unstructured<'_>, params: &mut Params, pixels: usize) -> Result<()> {
    let mut set = ParamSet::from(params.clone());
    if rarely(u, 8)? {
        set.algorithm = algorithm(u)?;
    }
    let list = params::list();
    let kind = &u.choose(&list)?.kind;
    draw(u, &mut set, kind, pixels)?;
    *params = set.params();
    Ok(())
}

/// Puts any number into one of the parameters; it is for the library to refuse it.
pub fn spoil(u: &mut Unstructured<'_>, params: &mut Params) -> Result<()> {
    let number =
        *u.choose(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, -1.0, f32::MIN_POSITIVE, 1e30])?;
    let count = *u.choose(&[0, 1, 3, 1025, u32::MAX])?;
    let list = params::list();
    let name = u.choose(&list)?.about().name;
    let value = match params.value(name) {
        Some(Value::Whole(_)) => Value::Whole(count),
        Some(Value::Real(_)) => Value::Real(number),
        _ => return Ok(()),
    };
    params.set_unchecked(name, value);
    Ok(())
}

/// A label map from elsewhere, of any small size.
pub struct Areas {
    numbers: Vec<u32>,
    geometry: Geometry,
    stride: usize,
}

impl Areas {
    /// It as a prior of frames.
    pub fn prior(&self) -> Prior<'_> {
        Prior::new(PriorSamples::U32(&self.numbers), self.geometry, self.stride).expect("a plane of its size")
    }

    /// The number of each pixel of a frame.
    pub fn of_pixels(&self, frame: Geometry) -> Vec<u32> {
        let (width, height) = (frame.width() as usize, frame.height() as usize);
        let sample = |at: usize, samples: u32, pixels: usize| (2 * at + 1) * samples as usize / (2 * pixels);
        let number = |x: usize, y: usize| {
            let row = sample(y, self.geometry.height(), height);
            self.numbers[row * self.stride + sample(x, self.geometry.width(), width)]
        };
        (0..width * height).map(|i| number(i % width, i / width)).collect()
    }
}

/// Blocks of a few numbers.
pub fn areas(u: &mut Unstructured<'_>) -> Result<Areas> {
    let geometry = geometry(u, 3000)?;
    let (stride, block) = (geometry.width() as usize + u.int_in_range(0..=3)?, u.int_in_range(1..=40)?);
    let numbers: [u8; 8] = u.arbitrary()?;
    let number = |i: usize| u32::from(numbers[(i % stride / block + i / stride / block * 3) % 8]);
    Ok(Areas { numbers: (0..stride * geometry.height() as usize).map(number).collect(), geometry, stride })
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
        let width = if rarely(u, 30)? { u.arbitrary()? } else { whole(u, &BOUNDARY_WIDTH)? };
        Some(Boundaries { color: u.arbitrary()?, width })
    } else {
        None
    };
    Ok(Drawing { fill, boundaries })
}
