// SPDX-License-Identifier: MPL-2.0
//! Arrays of integers as priors, which say what areas no region leaves.

use gstsuperpixel::image::{Frame, Geometry, Prior, PriorSamples};
use gstsuperpixel::params::{PRIOR_PRICE, Params};
use numpy::{PyArrayDescrMethods, PyArrayDyn, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arrays::{Images, as_numpy, is_host_array, refuse_masked};
use crate::error::exception;
use crate::foreign::is_on_device;
use crate::memory;

/// How the priors of a call count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PriorRule {
    /// True if superpixels end where areas do.
    cuts: bool,
    /// What merging across their borders costs; 0 is never.
    price: f32,
}

impl PriorRule {
    /// Checks the price.
    pub fn new(cuts: bool, price: f32) -> PyResult<Self> {
        PRIOR_PRICE.check(price).map_err(exception)?;
        Ok(Self { cuts, price })
    }

    /// Asks for priors that count so.
    pub fn set(self, params: &mut Params) {
        (params.prior, params.prior_cuts, params.prior_price) = (true, self.cuts, self.price);
    }

    /// Returns true if an engine for `params` can take up this rule without starting anew.
    pub fn follows(self, params: &Params) -> bool {
        params.prior && params.prior_cuts == self.cuts
    }

    /// Returns true if that is the price already.
    pub fn costs_the_same(self, params: &Params) -> bool {
        params.prior_price.to_bits() == self.price.to_bits()
    }
}

const DTYPE: &str = "prior must be an array of integers or bool";

/// Copies of priors: nobody can write to them meanwhile.
pub struct Priors {
    samples: Vec<u32>,
    geometry: Geometry,
}

impl Priors {
    /// Takes (h, w) for one image or all of a batch, or (N, h, w) for a batch, of any size, type of integers and layout.
    pub fn new(prior: &Bound<'_, PyAny>, images: &Images<'_>) -> PyResult<Self> {
        refuse_masked("prior", prior)?;
        if is_on_device(prior)? {
            return Err(PyTypeError::new_err(
                "prior is on a device and image is not; they must be on one device, or both in the host's memory",
            ));
        }
        let seen = if is_host_array(prior)? { as_numpy(prior)? } else { prior.clone() };
        let Ok(untyped) = seen.cast::<PyUntypedArray>() else {
            let name = prior.get_type().name()?;
            return Err(PyTypeError::new_err(format!("{DTYPE}, got {name}; np.asarray(prior) may make one")));
        };
        if !b"iub".contains(&untyped.dtype().kind()) {
            let dtype = untyped.dtype();
            return Err(PyTypeError::new_err(format!(
                "{DTYPE}, got {dtype}; only whether two numbers are equal counts"
            )));
        }
        let shape = untyped.shape();
        let is_taken = match images.count() {
            (count, true) => shape.len() == 2 || shape.len() == 3 && shape[0] == count,
            (_, false) => shape.len() == 2,
        };
        let side = |i: usize| u32::try_from(shape[shape.len() - i]).ok();
        let geometry = match is_taken {
            true => side(2).zip(side(1)).and_then(|(height, width)| Geometry::new(width, height).ok()),
            false => None,
        };
        let Some(geometry) = geometry else {
            let batch = if images.count().1 { " or, for a batch, (N, h, w)" } else { "" };
            return Err(PyValueError::new_err(format!(
                "prior must be of shape (h, w){batch}, with 1 to 16384 rows and columns; got {shape:?}"
            )));
        };
        let wide = seen.call_method1("astype", ("int64",))?;
        let array = wide.cast::<PyArrayDyn<i64>>()?;
        let array = array
            .try_readonly()
            .map_err(|_| PyRuntimeError::new_err("prior is the `out` of a call in another thread"))?;
        let mut samples = Vec::new();
        memory::reserve("prior", &mut samples, array.len()).map_err(exception)?;
        for &number in array.as_array() {
            let Ok(number) = i32::try_from(number) else {
                return Err(PyValueError::new_err(format!(
                    "prior has the number {number}; they must be of 32 bits with a sign"
                )));
            };
            // Two numbers are equal if these are.
            samples.push(number as u32);
        }
        Ok(Self { samples, geometry })
    }

    /// Number of priors.
    pub fn count(&self) -> usize {
        self.samples.len() / self.geometry.pixels()
    }

    /// The frame of image `i` with its prior.
    ///
    /// # Errors
    ///
    /// As [`Prior::new`]; the shape has been checked.
    pub fn on<'a>(&'a self, frame: Frame<'a>, i: usize) -> gstsuperpixel::error::Result<Frame<'a>> {
        let pixels = self.geometry.pixels();
        let first = i % self.count().max(1) * pixels;
        let samples = PriorSamples::U32(&self.samples[first..][..pixels]);
        Ok(frame.with_prior(Prior::new(samples, self.geometry, self.geometry.width() as usize)?))
    }
}

/// The prior of an image: those of a call, and its number among these.
pub type PriorOf<'a> = Option<(&'a Priors, usize)>;

/// The frame with its prior, if there is one.
pub fn with_prior<'a>(frame: &Frame<'a>, prior: PriorOf<'a>) -> gstsuperpixel::error::Result<Frame<'a>> {
    prior.map_or(Ok(*frame), |(priors, i)| priors.on(*frame, i))
}
