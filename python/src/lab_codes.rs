// SPDX-License-Identifier: MPL-2.0
//! Colors of Lab as codes of 16 bits, which the library makes the same colors of, up to the rounding of both.

use gstsuperpixel::color::LinearLight;
use gstsuperpixel::error::Error;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::exception;

const BITS: u32 = 16;
const WHITE: f64 = 65_535.0;
/// X, Y and Z as parts of white's to red, green and blue light: the inverse of the library's matrix, whose rows are divided by white.
const LIGHT: [[f64; 3]; 3] = [
    [3.07993494, -1.53715152, -0.54278342],
    [-0.92123418, 1.87599, 0.04524418],
    [0.05288968, -0.20404134, 1.15115166],
];

/// From light to the codes of sRGB.
#[derive(Clone, Copy)]
pub struct LabCodes(&'static [u16]);

impl LabCodes {
    /// Computed once per process. A fork holds the interpreter's lock, so that no child waits for one that is gone.
    pub fn new(py: Python<'_>) -> PyResult<Self> {
        static CODES: PyOnceLock<Vec<u16>> = PyOnceLock::new();
        let all = || {
            let light = LinearLight::new(BITS)?;
            let (count, mut codes) = (1 << BITS, Vec::new());
            codes
                .try_reserve_exact(count)
                .map_err(|_| Error::Memory { what: "codes of light", bytes: count * size_of::<u16>() })?;
            codes.extend((0..=u16::MAX).map(|of| light.code(of)));
            Ok(codes)
        };
        CODES.get_or_try_init(py, all).map(|codes| Self(codes)).map_err(exception)
    }

    /// The color of the nearest light that there is in each primary: of a color outside of the gamut another.
    ///
    /// Source: CIE 15 with the sRGB primaries, with the constants of the library.
    #[inline(always)]
    pub fn of(self, [l, a, b]: [f64; 3]) -> [u16; 3] {
        let y = (l + 16.0) / 116.0;
        let [x, y, z] = [y + a / 500.0, y, y - b / 200.0].map(|f| {
            let cube = f * f * f;
            if cube > 0.008856 { cube } else { (116.0 * f - 16.0) / 903.3 }
        });
        LIGHT.map(|row| {
            let light = WHITE * (row[0] * x + row[1] * y + row[2] * z);
            self.0[usize::from((light + 0.5) as u16)]
        })
    }
}
