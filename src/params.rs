// SPDX-License-Identifier: MPL-2.0
//! What a user wants. Ranges and defaults of an algorithm's own parameters are in its folder.

pub use crate::cpu::THREADS;
pub use crate::grid::ITERATIONS;
pub use crate::outputs::Outputs;
pub use crate::parameter::Range;

use crate::algo::method::ClusterLabels;
use crate::algo::{self, ALGORITHM, Algorithm, AlgorithmParams, AllParams};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::image::Geometry;
use crate::parameter::{About, Choose, Kind, Parameters, Value, as_typed, parameters};
use crate::post::{abstraction, hierarchy, merge, refine, stages};
use crate::temporal::INERTIA;

/// Grid step S in px.
pub const SUPERPIXEL_SIZE: Range<u32> = Range {
    about: About::new(
        "superpixel-size",
        "Superpixel size",
        "px",
        "Grid step in px, the distance between seeds; higher = fewer and larger superpixels",
    ),
    min: 4,
    max: 1024,
    default: 16,
};
/// Wanted number of superpixels; 0 leaves it to the grid step.
pub const SUPERPIXELS: Range<u32> = Range {
    about: About::new(
        "superpixels",
        "Superpixels",
        "",
        "Wanted number per frame, from which the grid step follows; approximate (0 = use {superpixel-size})",
    ),
    min: 0,
    max: u32::MAX,
    default: 0,
};
const CONNECTIVITY: About = About::new(
    "connectivity",
    "Connectivity",
    "",
    "Make every label one 4-connected region of at least {min-region}",
);
/// Smallest region, as a fraction of S², with quick shift of tau².
pub const MIN_REGION: Range<f32> = Range {
    about: About::new(
        "min-region",
        "Minimum region",
        "",
        "Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a \
         neighbor of near color, preferring other small regions; in temporal mode one that shrinks is kept down to 9/16 of it",
    ),
    min: 0.0,
    max: 4.0,
    default: 0.25,
};
const TEMPORAL: About = About::new(
    "temporal",
    "Temporal",
    "",
    "Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that \
     are no sequence",
);
/// What crossing a border of a prior costs; 0 is never.
pub const PRIOR_PRICE: Range<f32> = Range {
    about: About::new(
        "prior-price",
        "Price of a prior's border",
        "Delta E",
        "Merge across borders of the prior as if the colors there were so much further apart, in Delta E ({color-space=rgb}: code \
         values; 0 = never, but for {regions} below the number of areas)",
    ),
    min: 0.0,
    max: 300.0,
    default: 0.0,
};
const STRETCH_GRAY16: About = About::new(
    "stretch-gray16",
    "Stretch GRAY16",
    "",
    "GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels \
     of the frame stay",
);
/// Width of a drawn boundary in px.
pub const BOUNDARY_WIDTH: Range<u32> = Range {
    about: About::new("boundary-width", "Boundary width", "px", "Width of boundaries in px"),
    min: 1,
    max: 8,
    default: 1,
};

/// A number that is held is exceeded by at most one in so many.
const HELD_PART: u32 = 10;
/// Least side in px of frames whose number is held: in smaller ones merging takes longer than all else.
const LEAST_HELD: u32 = 24;

/// What is segmented and how; equal values give equal label maps.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Grid step S in px, used while `superpixels` is 0.
    pub superpixel_size: u32,
    /// Wanted number of superpixels a frame, or 0.
    pub superpixels: u32,
    /// Keep the number of regions near `superpixels`: at most a tenth more, since the most alike are merged where a picture has many
    /// fragments, and on nearly all photographs at most a tenth fewer, since the grid has at least 7/8 of it. For independent
    /// frames of 24 px and more a side, of an algorithm with a grid, with `connectivity` and without
    /// `merge`; an exact number of `regions` stands.
    pub holds_count: bool,
    /// Enforce that every label is one 4-connected region of at least `min_region`.
    pub connectivity: bool,
    /// Smallest region as a fraction of S², with quick shift of tau².
    pub min_region: f32,
    /// Which regions are merged.
    pub merge: merge::Params,
    /// How many regions superpixels are merged to; not together with `merge`.
    pub hierarchy: hierarchy::Params,
    /// How boundaries are refined.
    pub refine: refine::Params,
    /// Go on from the last frame and keep identities. Off, because pictures given one after another need not belong together;
    /// the element, which is given a stream, has it on.
    pub temporal: bool,
    /// How strongly a pixel keeps its region, 0 to 0.9.
    pub temporal_inertia: f32,
    /// Frames may have masks, see [`Frame::with_mask`](crate::image::Frame::with_mask): what is outside gets
    /// [`NO_LABEL`](crate::image::NO_LABEL). Takes time and memory also for frames without one, whose labels stay the same.
    pub masked: bool,
    /// Frames may have priors, see [`Frame::with_prior`](crate::image::Frame::with_prior): no region has pixels of two of its areas, but
    /// for an exact number of `regions` that is below the number of areas. Takes time and memory also for frames without one, whose
    /// labels stay the same. Needs `connectivity`.
    pub prior: bool,
    /// Regions end where areas of a prior do. Off, superpixels keep their outlines, each is of the area that most of its pixels have, and
    /// merging stays within areas: for priors that are coarser than the picture.
    pub prior_cuts: bool,
    /// Regions of two areas of a prior may be merged at this price: their colors count as so much further apart where they touch, in
    /// Delta E, in `rgb` in code values. 0 = never. A number of `superpixels` that is held does not cross at any price.
    pub prior_price: f32,
    /// Gray of 16 bits: the codes that a frame uses become black to white before anything is compared, with `temporal` those that
    /// the last frames used. What is drawn and measured are the frame's own codes; only the table's `mean_lab` is stretched too. Off,
    /// because a picture may mean its codes; the element has it on.
    pub stretch_gray16: bool,
    /// The algorithm and what is its own.
    pub algorithm: AlgorithmParams,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            superpixel_size: SUPERPIXEL_SIZE.default,
            superpixels: SUPERPIXELS.default,
            holds_count: false,
            connectivity: true,
            min_region: MIN_REGION.default,
            merge: merge::Params::default(),
            hierarchy: hierarchy::Params::default(),
            refine: refine::Params::default(),
            temporal: false,
            temporal_inertia: INERTIA.default,
            masked: false,
            prior: false,
            prior_cuts: true,
            prior_price: PRIOR_PRICE.default,
            stretch_gray16: false,
            algorithm: AlgorithmParams::Slic(algo::slic::Params::default()),
        }
    }
}

impl Params {
    /// The grid step that is wanted for frames of a size, and the most regions, where `superpixels` holds their number.
    pub(crate) fn wanted_step(&self, geometry: Geometry) -> (u32, Option<u32>) {
        match self.superpixels {
            0 => (self.hierarchy.finer_step(geometry, self.superpixel_size), None),
            count if self.holds_number(geometry) => {
                let most = count + count / HELD_PART;
                // An exact number stands, on the same grid: both are levels of one hierarchy.
                let most = Some(most).filter(|_| self.hierarchy.regions == 0);
                (Grid::step_for_held_count(geometry, count), most)
            }
            count => (Grid::step_for_count(geometry, count), None),
        }
    }

    fn holds_number(&self, geometry: Geometry) -> bool {
        let in_cells = self.algorithm.algorithm().capabilities().labels == ClusterLabels::Cells;
        // Regions are merged to as many as labels of 16 bits can name.
        let can_be_merged = self.superpixels <= hierarchy::REGIONS.max / (HELD_PART + 1) * HELD_PART;
        let has_room = geometry.width().min(geometry.height()) >= LEAST_HELD;
        let can_be_held = in_cells && has_room && can_be_merged;
        self.holds_count && can_be_held && self.connectivity && !self.temporal && self.merge.ratio == 0.0
    }

    /// True if both backends can do it; else only the CPU can.
    pub fn runs_on_cuda(&self) -> bool {
        self.algorithm.algorithm().capabilities().cuda
    }

    /// Checks every value.
    ///
    /// # Errors
    ///
    /// [`Error::Param`] for the first value outside its range, for `regions` beside `merge`, and for `prior` without `connectivity`.
    pub fn validate(&self) -> Result<()> {
        self.check_each()?;
        self.check_stages()?;
        PRIOR_PRICE.check(self.prior_price)?;
        if self.hierarchy.regions > 0 && self.merge.ratio > 0.0 {
            return Err(Error::Param {
                name: hierarchy::REGIONS.about.name,
                value: self.hierarchy.regions.into(),
                allowed: "0 while merge is above 0".into(),
            });
        }
        if self.prior && !self.connectivity {
            return Err(Error::Param {
                name: CONNECTIVITY.name,
                value: 0.0,
                allowed: "1 with a prior, whose areas cut regions".into(),
            });
        }
        self.algorithm.validate()
    }

    /// Value of a parameter of the frame, a stage or the algorithm; nothing where there is none of that name.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.get(name).or_else(|| self.stage_value(name)).or_else(|| self.algorithm.get(name))
    }

    /// Sets a parameter of the frame, a stage or the algorithm; nothing where there is none of that name.
    ///
    /// # Errors
    ///
    /// As [`Kind::check`]; the old value stays. Values are checked against each other by [`Params::validate`] alone.
    pub fn set_value(&mut self, name: &str, value: Value) -> Option<Result<()>> {
        let own = self.set(name, value).or_else(|| self.set_stage_value(name, value));
        own.or_else(|| self.algorithm.set(name, value))
    }
}

impl Params {
    /// Writes a value unchecked, for tests of [`Params::validate`]; false where there is no parameter of that name.
    #[doc(hidden)]
    pub fn set_unchecked(&mut self, name: &str, value: Value) -> bool {
        self.put(name, value) || self.put_in_stage(name, value) || self.algorithm.put(name, value)
    }
}

parameters!(Params {
    whole SUPERPIXELS => superpixels;
    whole SUPERPIXEL_SIZE => superpixel_size;
    switch CONNECTIVITY => connectivity;
    real MIN_REGION => min_region;
    switch TEMPORAL => temporal;
    real INERTIA => temporal_inertia;
    switch STRETCH_GRAY16 => stretch_gray16;
});

/// What the stages of the list have in common, by their fields in [`Params`].
macro_rules! of_stages {
    ($($stage:ident, $type:ident;)*) => {
        impl Params {
            fn check_stages(&self) -> Result<()> {
                $(self.$stage.check_each()?;)*
                Ok(())
            }

            fn stage_value(&self, name: &str) -> Option<Value> {
                None$(.or_else(|| self.$stage.get(name)))*
            }

            fn put_in_stage(&mut self, name: &str, value: Value) -> bool {
                false$(|| self.$stage.put(name, value))*
            }

            fn set_stage_value(&mut self, name: &str, value: Value) -> Option<Result<()>> {
                None$(.or_else(|| self.$stage.set(name, value)))*
            }
        }

        fn kinds_of_stages() -> Vec<Kind> {
            let mut kinds = Vec::new();
            $(kinds.extend($stage::Params::LIST.iter().map(|parameter| parameter.kind));)*
            kinds
        }
    };
}
stages!(of_stages);

/// A parameter, and the algorithms that use it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// What it takes.
    pub kind: Kind,
    /// Empty where all do.
    pub users: Vec<Algorithm>,
}

impl Listed {
    /// Name and texts.
    pub fn about(&self) -> &About {
        self.kind.about()
    }

    /// Its text with the algorithms that use it before it, where not all do; other parameters as `render` writes them, see
    /// [`About::text_with`].
    pub fn text_with(&self, render: impl Fn(&str, Option<&str>) -> String) -> String {
        let text = self.about().text_with(render);
        let mut titles = self.users.iter().map(|user| user.title());
        let Some(first) = titles.next() else { return text };
        // Inside a line a title that is a word is not capitalized; SLIC is no word.
        let users = titles.fold(first.to_owned(), |all, title| format!("{all}, {}", uncapitalized(title)));
        format!("{users}: {}", uncapitalized(&text))
    }
}

/// A text that begins inside of a sentence. Abbreviations stay.
fn uncapitalized(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.clone().next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

/// Every parameter that decides the label map, each once, but for the algorithm: the size of superpixels first, then what the algorithms
/// have of their own.
pub fn list() -> Vec<Listed> {
    let on_grid = || {
        let is_on_grid = |a: &Algorithm| a.capabilities().labels == ClusterLabels::Cells;
        Algorithm::ALL.iter().copied().filter(is_on_grid).collect()
    };
    let of_frames = Params::LIST.iter().map(|parameter| {
        let for_grid = [SUPERPIXEL_SIZE.about.name, SUPERPIXELS.about.name].contains(&parameter.name());
        Listed { kind: parameter.kind, users: if for_grid { on_grid() } else { Vec::new() } }
    });
    let of_stages = kinds_of_stages().into_iter().map(|kind| Listed { kind, users: Vec::new() });
    let of_algorithms = AllParams::list().into_iter().map(|(kind, users)| Listed { kind, users });
    let (sizes, of_frames): (Vec<_>, Vec<_>) = of_frames.partition(|listed| !listed.users.is_empty());
    sizes.into_iter().chain(of_algorithms).chain(of_frames).chain(of_stages).collect()
}

/// The parameters as `--help` lists them.
pub fn list_for_help() -> String {
    let line =
        |one: Listed| format!("  {}: {}. {}", one.about().name, one.kind.allowed(), one.text_with(as_typed));
    let lines: Vec<_> = list().into_iter().map(line).collect();
    format!("Parameters for --set:\n{}", lines.join("\n"))
}

/// The values of all parameters, of whichever algorithm.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParamSet {
    /// Of frames and stages; its `algorithm` is not looked at.
    pub params: Params,
    /// Of the algorithms.
    pub own: AllParams,
    /// Which algorithm segments.
    pub algorithm: Algorithm,
}

impl From<Params> for ParamSet {
    /// Parameters of other algorithms have their defaults.
    fn from(params: Params) -> Self {
        let mut own = AllParams::default();
        own.replace(params.algorithm.clone());
        Self { algorithm: params.algorithm.algorithm(), own, params }
    }
}

impl ParamSet {
    /// What is segmented and how.
    pub fn params(&self) -> Params {
        Params { algorithm: self.own.of(self.algorithm), ..self.params.clone() }
    }

    /// Value of a parameter; nothing where there is none of that name.
    pub fn get(&self, name: &str) -> Option<Value> {
        if name == ALGORITHM.name {
            return Some(Value::Choice(self.algorithm.index()));
        }
        self.params.get(name).or_else(|| self.params.stage_value(name)).or_else(|| self.own.get(name))
    }

    /// Sets a parameter; nothing where there is none of that name.
    ///
    /// # Errors
    ///
    /// As [`Kind::check`]; the old value stays. Values are checked against each other by [`Params::validate`] alone.
    pub fn set(&mut self, name: &str, value: Value) -> Option<Result<()>> {
        if name == ALGORITHM.name {
            let kind = Kind::Choice(ALGORITHM, Algorithm::CHOICES);
            return Some(kind.check(value).map(|value| {
                if let Value::Choice(index) = value {
                    self.algorithm = Algorithm::ALL[index];
                }
            }));
        }
        let own = self.params.set(name, value).or_else(|| self.params.set_stage_value(name, value));
        own.or_else(|| self.own.set(name, value))
    }

    /// Sets a parameter by a text `NAME=VALUE`, as programs take it.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, the name or the value.
    pub fn assign(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').ok_or_else(|| format!("{text} is not NAME=VALUE"))?;
        let Some(listed) = list().into_iter().find(|listed| listed.about().name == name) else {
            let names: Vec<_> = list().iter().map(|listed| listed.about().name).collect();
            return Err(format!("there is no parameter {name}; choose one of {}", names.join(", ")));
        };
        let value = listed.kind.parse(value).map_err(|error| error.to_string())?;
        match self.set(name, value) {
            Some(result) => result.map_err(|error| error.to_string()),
            None => Err(format!("{name} cannot be set")),
        }
    }
}

/// Drawing into the frame.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fill {
    /// The frame's own pixels stay.
    #[default]
    None,
    /// Every region in the mean of its samples.
    MeanColor,
    /// Every region in a false color of its identity.
    Labels,
    /// Every region as a patch with smooth outlines; see [`abstraction`].
    Abstraction(abstraction::Params),
}

impl Fill {
    /// Returns true if it needs `Outputs::mean_color`.
    pub fn needs_mean_color(&self) -> bool {
        matches!(self, Self::MeanColor | Self::Abstraction(_))
    }
}

/// Lines between regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boundaries {
    /// 0xAARRGGBB, blended by alpha.
    pub color: u32,
    /// Width in px, 1 to 8.
    pub width: u32,
}

impl Boundaries {
    /// Default color, yellow.
    pub const COLOR: u32 = 0xffff_ff00;
}

impl Default for Boundaries {
    fn default() -> Self {
        Self { color: Self::COLOR, width: BOUNDARY_WIDTH.default }
    }
}

/// One frame's drawing: fill first, lines on top.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Drawing {
    /// Filling of the regions.
    pub fill: Fill,
    /// Lines that separate them.
    pub boundaries: Option<Boundaries>,
}
