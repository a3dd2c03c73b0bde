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
use crate::parameter::{About, Choice, Choices, Choose, Kind, Parameters, Value};
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
        /// An algorithm.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Algorithm {
            $(#[doc = $about] $variant,)*
        }

        /// An algorithm with its own parameters.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AlgorithmParams {
            $(#[doc = $about] $variant($module::Params),)*
        }

        /// Tables and constants that follow from an algorithm's parameters and the frame size. Read-only: the library
        /// takes one only as a part of a [`Plan`](crate::plan::Plan), which nobody can edit.
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

        impl Choose for Algorithm {
            const ALL: &'static [Self] = Self::ALL;
            const CHOICES: Choices =
                Choices { name: "Algorithm", all: &[$(Choice { nick: $nick, text: $about }),*] };
        }

        impl Algorithm {
            /// All algorithms, in the order of the list.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name in properties, metadata and programs.
            pub fn nick(self) -> &'static str {
                match self {
                    $(Self::$variant => $nick,)*
                }
            }

            /// Capabilities of the algorithm.
            pub fn capabilities(self) -> Capabilities {
                match self {
                    $(Self::$variant => <$module::Params as Method>::CAPABILITIES,)*
                }
            }
        }

        impl AllParams {
            /// Parameters of the algorithms, each once, and who uses it.
            pub(crate) fn list() -> Vec<(Kind, Vec<Algorithm>)> {
                let mut list: Vec<(Kind, Vec<Algorithm>)> = Vec::new();
                $(for parameter in $module::Params::LIST {
                    match list.iter_mut().find(|(kind, _)| kind.about().name == parameter.name()) {
                        Some((_, users)) => users.push(Algorithm::$variant),
                        None => list.push((parameter.kind, vec![Algorithm::$variant])),
                    }
                })*
                list
            }

            /// Value of a parameter, which all algorithms that use it have in common; nothing where none does.
            pub fn get(&self, name: &str) -> Option<Value> {
                None$(.or_else(|| self.$module.get(name)))*
            }

            /// Sets a parameter of all algorithms that use it; nothing where none does.
            ///
            /// # Errors
            ///
            /// As [`Kind::check`]; the old value stays.
            pub fn set(&mut self, name: &str, value: Value) -> Option<Result<()>> {
                let results = [$(self.$module.set(name, value)),*];
                // One description serves all of them, so they agree.
                results.into_iter().flatten().next()
            }

            /// Replaces the parameters of one algorithm.
            pub fn replace(&mut self, params: AlgorithmParams) {
                match params {
                    $(AlgorithmParams::$variant(params) => self.$module = params,)*
                }
            }

            /// The parameters of one algorithm.
            pub fn of(&self, algorithm: Algorithm) -> AlgorithmParams {
                match algorithm {
                    $(Algorithm::$variant => AlgorithmParams::$variant(self.$module.clone()),)*
                }
            }
        }

        impl AlgorithmParams {
            /// The algorithm that the parameters are for.
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
                    $(Self::$variant(params) => params.check_each(),)*
                }
            }

            /// Parameters of this algorithm.
            pub fn kinds(&self) -> Vec<Kind> {
                match self {
                    $(Self::$variant(_) => $module::Params::LIST.iter().map(|parameter| parameter.kind).collect(),)*
                }
            }

            /// Value of a parameter; nothing where this algorithm has none of that name.
            pub fn get(&self, name: &str) -> Option<Value> {
                match self {
                    $(Self::$variant(params) => params.get(name),)*
                }
            }

            pub(crate) fn put(&mut self, name: &str, value: Value) -> bool {
                match self {
                    $(Self::$variant(params) => params.put(name, value),)*
                }
            }

            /// Sets a parameter; nothing where this algorithm has none of that name.
            ///
            /// # Errors
            ///
            /// As [`Kind::check`]; the old value stays.
            pub fn set(&mut self, name: &str, value: Value) -> Option<Result<()>> {
                match self {
                    $(Self::$variant(params) => params.set(name, value),)*
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
            /// The algorithm that the plan is for.
            pub fn algorithm(&self) -> Algorithm {
                match self {
                    $(Self::$variant(_) => Algorithm::$variant,)*
                }
            }

            /// See [`Method::growth`]; `None` between two algorithms.
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

impl Default for Algorithm {
    /// The first of the list.
    fn default() -> Self {
        Self::ALL[0]
    }
}

/// The algorithm as a parameter.
pub const ALGORITHM: About = About::new("algo", "Algorithm", "", "The segmentation algorithm");

impl Algorithm {
    /// Its name as people write it, such as "SLIC".
    pub fn title(self) -> &'static str {
        let text = Self::CHOICES.all[self.index()].text;
        text.split_once(':').map_or(text, |(title, _)| title)
    }
}

impl AlgorithmParams {
    /// Name of the algorithm in properties and metadata.
    pub fn nick(&self) -> &'static str {
        self.algorithm().nick()
    }
}

impl FromStr for Algorithm {
    type Err = String;

    /// Parses a nick.
    fn from_str(nick: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|algorithm| algorithm.nick() == nick).ok_or_else(|| {
            let nicks: Vec<_> = Self::ALL.iter().map(|algorithm| algorithm.nick()).collect();
            format!("there is no algorithm `{nick}`; choose one of {}", nicks.join(", "))
        })
    }
}
