// SPDX-License-Identifier: MPL-2.0
//! Name, range and default of a number that a user may set.

use crate::error::{Error, Result};

/// A number a user may set: its name, range and default stand here once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range<T> {
    /// Name of the parameter and of the element's property.
    pub name: &'static str,
    /// Smallest value.
    pub min: T,
    /// Largest value.
    pub max: T,
    /// Default.
    pub default: T,
    /// The range in words, for errors.
    pub allowed: &'static str,
}

impl<T: Copy + PartialOrd + Into<f64>> Range<T> {
    /// Returns the value if it is in range; NaN is not.
    ///
    /// # Errors
    ///
    /// [`Error::Param`].
    pub fn check(&self, value: T) -> Result<T> {
        if value >= self.min && value <= self.max {
            Ok(value)
        } else {
            Err(Error::Param { name: self.name, value: value.into(), allowed: self.allowed })
        }
    }
}
