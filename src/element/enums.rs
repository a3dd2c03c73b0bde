// SPDX-License-Identifier: MPL-2.0
//! The GObject enums of the element's properties. Those that stand for a type of the library are made from its list, and have its
//! values in its order.

use gst::glib;
use gst::glib::translate::{FromGlib, IntoGlib};
use gst::prelude::*;

use crate::algo::algorithms;
use crate::analytics::Detail;
use crate::color::color_spaces;
use crate::parameter::{About, Choices, Choose, choices};
use crate::post::merge::merge_rules;

/// Defines an enum by the name of its type, its own name, and its values with nick and text.
macro_rules! gobject_enum {
    ($type:literal, $title:literal, $about:literal, $name:ident {
        $($variant:ident, $nick:literal, $text:literal;)*
    }) => {
        #[doc = $about]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, glib::Enum)]
        #[repr(i32)]
        #[enum_type(name = $type)]
        #[non_exhaustive]
        pub enum $name {
            $(
                #[doc = $text]
                #[enum_value(name = $text, nick = $nick)]
                $variant,
            )*
        }
        choices!($title, $name { $($variant, $nick, $text;)* });
    };
}

macro_rules! of_algorithms {
    ($($variant:ident, $module:ident, $nick:literal, $backends:ident, $text:literal;)*) => {
        gobject_enum!("GstSuperpixelAlgorithm", "Algorithm", "The method that segments.", Algorithm {
            $($variant, $nick, $text;)*
        });
    };
}
algorithms!(of_algorithms);

macro_rules! of_color_spaces {
    ($title:literal, $name:ident { $($list:tt)* }) => {
        gobject_enum!("GstSuperpixelColorSpace", $title, "The color space of differences.", ColorSpace { $($list)* });
    };
}
color_spaces!(of_color_spaces);

macro_rules! of_merge_rules {
    ($title:literal, $name:ident { $($list:tt)* }) => {
        gobject_enum!("GstSuperpixelMergeRule", $title, "From how many sides regions have to be alike.", MergeRule { $($list)* });
    };
}
merge_rules!(of_merge_rules);

gobject_enum!("GstSuperpixelBackend", "Backend", "The backend that segments frames.", Backend {
    Auto, "auto", "Auto: CUDA if a device opens, else CPU; chosen at start";
    Cuda, "cuda", "CUDA: a CUDA device, or an error";
    Cpu, "cpu", "CPU: threads on this machine";
});

gobject_enum!("GstSuperpixelOverlay", "Overlay", "The drawing in a frame.", Overlay {
    None, "none", "None: pixels stay untouched";
    Boundaries, "boundaries", "Boundaries: lines between regions";
    MeanColor, "mean-color", "Mean color: every region in its mean color";
    MeanColorBoundaries, "mean-color-boundaries", "Mean color and boundaries: both of these";
    Labels, "labels", "Labels: one false color for each region, kept over time unless temporal=false";
    Abstraction, "abstraction", "Abstraction: patches with smooth outlines, shaded, and lines of ink where they differ";
});

gobject_enum!("GstSuperpixelAnalytics", "Analytics", "The standard metadata of GStreamer 1.26 and newer.", Analytics {
    None, "none", "None: no standard metadata";
    Segmentation, "segmentation", "Segmentation: the label map as an instance segmentation";
    Objects, "objects", "Objects: the same, and every region as an object with a track id; at most 1000 regions";
});

gobject_enum!("GstSuperpixelMask", "Mask", "The source of a frame's mask.", Mask {
    None, "none", "None: every pixel counts";
    Alpha, "alpha", "Alpha: pixels whose alpha is at least mask-alpha; all of formats without alpha";
    Segmentation, "segmentation", "Segmentation: pixels with one of mask-values in the segmentation that an earlier element has attached as \
                                   analytics metadata, with GStreamer 1.26 or newer";
    Regions, "regions", "Regions: pixels in a GstVideoRegionOfInterestMeta of mask-roi-types";
    Rectangle, "rectangle", "Rectangle: pixels in mask-rectangle";
});

gobject_enum!("GstSuperpixelMaskMissing", "MaskMissing", "The mask of a frame that lacks one.", MaskMissing {
    All, "all", "All: every pixel counts";
    None, "none", "None: no pixel counts, and the frame has no region";
    Last, "last", "Last: that of the last frame which had one; before the first, every pixel counts";
});

gobject_enum!("GstSuperpixelPrior", "Prior", "The source of the areas that no region leaves.", Prior {
    None, "none", "None: the frame is one area";
    Segmentation, "segmentation", "Segmentation: the values of the segmentation that an earlier element has attached as analytics metadata, with \
                                   GStreamer 1.26 or newer; a frame without one is one area";
});

impl Analytics {
    /// The metadata to attach, if any.
    pub(super) fn detail(self) -> Option<Detail> {
        match self {
            Self::None => None,
            Self::Segmentation => Some(Detail::Segmentation),
            Self::Objects => Some(Detail::Objects),
        }
    }
}

/// A property with values of an enum, read at the start unless it is hot.
fn typed<T>(about: &About, blurb: &str, default: usize) -> glib::ParamSpec
where
    T: Choose + StaticType + FromGlib<i32> + IntoGlib<GlibType = i32>,
{
    let spec = glib::ParamSpecEnum::builder_with_default(about.name, T::ALL[default]).nick(about.nick);
    let spec = if about.hot { spec.mutable_playing() } else { spec.mutable_ready() };
    spec.blurb(blurb).build()
}

/// The enums of the properties: their specs, values and types.
macro_rules! enums {
    ($($name:ident),*) => {
        /// A property with the values of an enum; `default` is an index of them.
        pub(super) fn spec(
            choices: &Choices,
            about: &About,
            blurb: &str,
            default: usize,
        ) -> Option<glib::ParamSpec> {
            $(if choices.name == $name::CHOICES.name { return Some(typed::<$name>(about, blurb, default)); })*
            None
        }

        /// A value of an enum by its index.
        pub(super) fn value(choices: &Choices, index: usize) -> Option<glib::Value> {
            $(if choices.name == $name::CHOICES.name { return Some($name::ALL.get(index)?.to_value()); })*
            None
        }

        /// Types that the documentation of the plugin names.
        pub(super) fn types() -> Vec<glib::Type> {
            vec![$($name::static_type()),*]
        }
    };
}
enums!(Algorithm, Backend, ColorSpace, MergeRule, Overlay, Analytics, Mask, MaskMissing, Prior);
