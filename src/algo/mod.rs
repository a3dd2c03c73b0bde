// SPDX-License-Identifier: MPL-2.0
//! The algorithms, each in its folder, and the one list of them.

pub use crate::grid;

mod clustering;
pub mod lsc;
pub mod method;
pub mod quickshift;
pub mod slic;
pub mod snic;

use std::str::FromStr;

use crate::color::ColorSpace;
use crate::error::Result;
use crate::grid::Grid;
use crate::image::Geometry;
use method::{Capabilities, Method};

/// The list: variant, folder, nick, where it runs (`cuda` means both) and what it is. It gives the enums below, the stages of both
/// backends, the values of the element's property `algo`, and through [`Algorithm::ALL`] what programs and tests go through.
macro_rules! algorithms {
    ($with:ident) => {
        $with! {
            Slic, slic, "slic", cuda, "SLIC: simple linear iterative clustering on a grid of centers";
            Lsc, lsc, "lsc", cuda, "LSC: linear spectral clustering, weighted, on a grid of centers";
            QuickShift, quickshift, "quickshift", cuda,
                "Quick shift: every pixel climbs to the nearest of higher density";
            Snic, snic, "snic", cpu, "SNIC: clusters grow pixel by pixel from seeds, in one pass; on the CPU only";
        }
    };
}
pub(crate) use algorithms;

macro_rules! define {
    ($($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
        /// Which algorithm.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $(#[doc = $about] $variant,)*
        }

        /// Which algorithm, with the parameters that are its own.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AlgorithmParams {
            $(#[doc = $about] $variant($module::Params),)*
        }

        /// What follows from an algorithm's parameters and the frame size. To be read: nothing takes one but inside a
        /// [`Plan`](crate::plan::Plan), which nobody edits.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AlgorithmPlan {
            $(#[doc = $about] $variant($module::Plan),)*
        }

        /// The parameters of every algorithm, one of which is chosen.
        #[derive(Debug, Clone, PartialEq, Default)]
        #[allow(missing_docs)]
        pub struct AllParams {
            $(pub $module: $module::Params,)*
        }

        impl Algorithm {
            /// Each once, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name in properties, metadata and programs.
            pub fn nick(self) -> &'static str {
                match self {
                    $(Self::$variant => $nick,)*
                }
            }

            /// What it can do.
            pub fn capabilities(self) -> Capabilities {
                match self {
                    $(Self::$variant => <$module::Params as Method>::CAPABILITIES,)*
                }
            }
        }

        impl AllParams {
            /// Those of one algorithm.
            pub fn of(&self, algorithm: Algorithm) -> AlgorithmParams {
                match algorithm {
                    $(Algorithm::$variant => AlgorithmParams::$variant(self.$module.clone()),)*
                }
            }
        }

        impl AlgorithmParams {
            /// Which algorithm.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Self::$variant(_) => Algorithm::$variant,)*
                }
            }

            /// Checks every value.
            ///
            /// # Errors
            /// [`Error::Param`](crate::error::Error::Param) for the first value outside its range.
            pub fn validate(&self) -> Result<()> {
                match self {
                    $(Self::$variant(params) => params.validate(),)*
                }
            }

            /// The color space that ingest has to deliver.
            pub fn color_space(&self) -> ColorSpace {
                match self {
                    $(Self::$variant(params) => params.color_space(),)*
                }
            }

            /// See [`Method::region_side`].
            pub(crate) fn region_side(&self, grid: &Grid) -> f32 {
                match self {
                    $(Self::$variant(params) => params.region_side(grid),)*
                }
            }

            /// See [`Method::claim_reach`].
            pub(crate) fn claim_reach(&self, grid: &Grid) -> u32 {
                match self {
                    $(Self::$variant(params) => params.claim_reach(grid),)*
                }
            }

            /// See [`Method::plan`].
            pub(crate) fn plan(&self, geometry: Geometry, grid: &Grid, temporal: bool) -> AlgorithmPlan {
                match self {
                    $(Self::$variant(params) => AlgorithmPlan::$variant(params.plan(geometry, grid, temporal)),)*
                }
            }
        }

        impl AlgorithmPlan {
            /// Which algorithm.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Self::$variant(_) => Algorithm::$variant,)*
                }
            }

            /// See [`Method::growth`]; nothing between two algorithms.
            pub(crate) fn growth(&self, from: &Self) -> Option<f64> {
                match (self, from) {
                    $((Self::$variant(plan), Self::$variant(from)) => <$module::Params as Method>::growth(plan, from),)*
                    _ => None,
                }
            }
        }
    };
}
algorithms!(define);

impl AlgorithmParams {
    /// Name of the algorithm, as property and metadata show it.
    pub fn nick(&self) -> &'static str {
        self.algorithm().nick()
    }
}

impl FromStr for Algorithm {
    type Err = String;

    /// The algorithm of that nick.
    fn from_str(nick: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.nick() == nick).ok_or_else(|| {
            let nicks: Vec<_> = Self::ALL.iter().map(|algorithm| algorithm.nick()).collect();
            format!("there is no algorithm `{nick}`; choose one of {}", nicks.join(", "))
        })
    }
}
