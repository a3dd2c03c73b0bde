// SPDX-License-Identifier: MPL-2.0
//! The parameters of the element that say which pixels of a frame count, and which areas no region leaves.

use std::sync::{Arc, LazyLock};

use crate::mask::{self, Place, Values};
use crate::parameter::{About, Range, parameters};
use crate::params::PRIOR_PRICE;

use super::enums::{Mask, MaskMissing, Prior};

const MASK: About =
    About::new("mask", "Mask", "", "Which pixels count: others belong to no region, and have label 65535");
const PRIOR: About = About::new(
    "prior",
    "Prior",
    "",
    "Areas that no region leaves, but for {regions} below their number; with {connectivity=true}",
);
const PRIOR_CUTS: About = About::new(
    "prior-cuts",
    "Prior cuts",
    "",
    "With {prior=segmentation}: regions end where its areas do; off: superpixels keep their outlines and each is of the area that most of its pixels have, \
     so that only merging stays within areas, as a coarse prior needs",
);
const MASK_MISSING: About = About::new(
    "mask-missing",
    "Missing mask",
    "",
    "The mask of a frame without a segmentation or region of interest, or with one that cannot be used",
);
const MASK_ALPHA: Range<u32> = Range {
    about: About::new(
        "mask-alpha",
        "Alpha of the mask",
        "",
        "With {mask=alpha}: least alpha of a pixel that counts, of 255; higher = fewer pixels",
    ),
    min: 1,
    max: 255,
    default: 1,
};
const MASK_VALUES: About = About::new(
    "mask-values",
    "Values of the mask",
    "",
    "With {mask=segmentation}: values that count, numbers and ranges with commas between them, as 1,3,5-9; all but 0 where this is \
     empty",
);
const MASK_ROI_TYPES: About = About::new(
    "mask-roi-types",
    "Types of regions of interest",
    "",
    "With {mask=regions}: types of regions of interest that count, with commas between them; all where this is empty",
);
const MASK_RECTANGLE: About = About::new(
    "mask-rectangle",
    "Rectangle of the mask",
    "",
    "With {mask=rectangle}: the pixels that count, x,y,width,height in px; all where this is empty",
);

/// Parameters that are texts.
pub(super) const TEXTS: [About; 3] = [MASK_VALUES, MASK_ROI_TYPES, MASK_RECTANGLE];

/// Values of these properties.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MaskSettings {
    pub source: Mask,
    pub missing: MaskMissing,
    /// Least alpha inside, of 255.
    pub least_alpha: u32,
    pub values: Arc<Values>,
    /// With commas between them.
    roi_types: Arc<str>,
    pub rectangle: Option<Place>,
    /// Source of the areas that no region leaves.
    pub prior: Prior,
    /// True if regions end where the areas do.
    pub prior_cuts: bool,
    /// What merging across their borders costs; 0 is never.
    pub prior_price: f32,
}

parameters!(MaskSettings {
    choice MASK => source: Mask;
    choice MASK_MISSING => missing: MaskMissing;
    whole MASK_ALPHA => least_alpha;
    choice PRIOR => prior: Prior;
    switch PRIOR_CUTS => prior_cuts;
    real PRIOR_PRICE => prior_price;
});

impl Default for MaskSettings {
    fn default() -> Self {
        static ALL_BUT_0: LazyLock<Arc<Values>> = LazyLock::new(|| Arc::new(Values::all_but_0()));
        Self {
            source: Mask::None,
            missing: MaskMissing::All,
            least_alpha: MASK_ALPHA.default,
            values: ALL_BUT_0.clone(),
            roi_types: "".into(),
            rectangle: None,
            prior: Prior::None,
            prior_cuts: true,
            prior_price: PRIOR_PRICE.default,
        }
    }
}

impl MaskSettings {
    /// Returns true if regions of interest of a type count.
    pub(super) fn takes_roi(&self, kind: &str) -> bool {
        let types = &self.roi_types;
        types.trim().is_empty() || types.split(',').any(|own| own.trim() == kind)
    }

    /// Sets a parameter that is a text; nothing where there is none of that name.
    ///
    /// # Errors
    ///
    /// Why the old value stays.
    pub(super) fn set_text(&mut self, name: &str, text: &str) -> Option<Result<(), String>> {
        if name == MASK_VALUES.name {
            let read = Values::parse(text).map(|values| self.values = Arc::new(values));
            Some(read.ok_or_else(|| {
                format!("{text} is no list of values: numbers of 0 to 65535 and ranges, as 1,3,5-9")
            }))
        } else if name == MASK_ROI_TYPES.name {
            self.roi_types = text.into();
            Some(Ok(()))
        } else if name == MASK_RECTANGLE.name {
            let read = if text.trim().is_empty() { Some(None) } else { mask::parse_place(text).map(Some) };
            let read = read.map(|rectangle| self.rectangle = rectangle);
            Some(read.ok_or_else(|| format!("{text} is no rectangle: x,y,width,height in px")))
        } else {
            None
        }
    }

    /// Value of a parameter that is a text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        if name == MASK_VALUES.name {
            Some(self.values.text().to_owned())
        } else if name == MASK_ROI_TYPES.name {
            Some((*self.roi_types).to_owned())
        } else if name == MASK_RECTANGLE.name {
            let [x, y, width, height] = self.rectangle.unwrap_or_default();
            Some(self.rectangle.map_or_else(String::new, |_| format!("{x},{y},{width},{height}")))
        } else {
            None
        }
    }
}
