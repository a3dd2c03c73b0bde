// SPDX-License-Identifier: MPL-2.0
//! The GObject enums of the element's properties, and the library's types that they stand for.

use gst::glib;

use crate::algo::{self, algorithms};
use crate::analytics::Detail;
use crate::color;
use crate::post::merge;

macro_rules! define {
    ($slic:ident, $slic_module:ident, $slic_nick:literal, $slic_backends:ident, $slic_about:literal;
     $($variant:ident, $module:ident, $nick:literal, $backends:ident, $about:literal;)*) => {
        /// The method that segments; the first of the list is the default.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
        #[repr(i32)]
        #[enum_type(name = "GstSuperpixelAlgorithm")]
        #[non_exhaustive]
        pub enum Algorithm {
            #[default]
            #[doc = $slic_about]
            #[enum_value(name = $slic_about, nick = $slic_nick)]
            $slic,
            $(
                #[doc = $about]
                #[enum_value(name = $about, nick = $nick)]
                $variant,
            )*
        }

        impl From<Algorithm> for algo::Algorithm {
            fn from(algorithm: Algorithm) -> Self {
                match algorithm {
                    Algorithm::$slic => Self::$slic,
                    $(Algorithm::$variant => Self::$variant,)*
                }
            }
        }
    };
}
algorithms!(define);

/// Where frames are segmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelBackend")]
#[non_exhaustive]
pub enum Backend {
    /// The fastest that works here.
    #[default]
    #[enum_value(name = "Auto: CUDA if a device opens, else CPU; chosen at start", nick = "auto")]
    Auto,
    /// A CUDA device or an error.
    #[enum_value(name = "CUDA: a CUDA device, or an error", nick = "cuda")]
    Cuda,
    /// The CPU.
    #[enum_value(name = "CPU: threads on this machine", nick = "cpu")]
    Cpu,
}

/// The color space in which differences are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelColorSpace")]
#[non_exhaustive]
pub enum ColorSpace {
    /// CIE L, a, b.
    #[default]
    #[enum_value(name = "Lab: CIE L, a, b (D65) of sRGB", nick = "lab")]
    Lab,
    /// Lab as gSLICr computes it.
    #[enum_value(
        name = "Lab, gSLICr: L, a, b without undoing the sRGB curve, as gSLICr",
        nick = "lab-gslicr"
    )]
    LabGslicr,
    /// XYZ as gSLICr computes it.
    #[enum_value(
        name = "XYZ, gSLICr: X, Y, Z without undoing the sRGB curve, as gSLICr",
        nick = "xyz-gslicr"
    )]
    XyzGslicr,
    /// R', G', B'.
    #[enum_value(name = "RGB: R', G', B' code values", nick = "rgb")]
    Rgb,
}

impl From<ColorSpace> for color::ColorSpace {
    fn from(space: ColorSpace) -> Self {
        match space {
            ColorSpace::Lab => Self::Lab,
            ColorSpace::LabGslicr => Self::LabGslicr,
            ColorSpace::XyzGslicr => Self::XyzGslicr,
            ColorSpace::Rgb => Self::Rgb,
        }
    }
}

impl From<color::ColorSpace> for ColorSpace {
    fn from(space: color::ColorSpace) -> Self {
        match space {
            color::ColorSpace::Lab => Self::Lab,
            color::ColorSpace::LabGslicr => Self::LabGslicr,
            color::ColorSpace::XyzGslicr => Self::XyzGslicr,
            color::ColorSpace::Rgb => Self::Rgb,
        }
    }
}

/// From how many sides regions have to be alike to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelMergeRule")]
#[non_exhaustive]
pub enum MergeRule {
    /// From both.
    #[default]
    #[enum_value(name = "Mutual: two regions merge if each is near enough for the other", nick = "mutual")]
    Mutual,
    /// From one.
    #[enum_value(name = "Either: two regions merge if one is near enough for the other", nick = "either")]
    Either,
}

impl From<MergeRule> for merge::Rule {
    fn from(rule: MergeRule) -> Self {
        match rule {
            MergeRule::Mutual => Self::Mutual,
            MergeRule::Either => Self::Either,
        }
    }
}

impl From<merge::Rule> for MergeRule {
    fn from(rule: merge::Rule) -> Self {
        match rule {
            merge::Rule::Mutual => Self::Mutual,
            merge::Rule::Either => Self::Either,
        }
    }
}

/// What is drawn into the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelOverlay")]
#[non_exhaustive]
pub enum Overlay {
    /// Nothing.
    #[enum_value(name = "None: pixels stay untouched", nick = "none")]
    None,
    /// Lines between regions.
    #[default]
    #[enum_value(name = "Boundaries: lines between regions", nick = "boundaries")]
    Boundaries,
    /// Regions in their mean color.
    #[enum_value(name = "Mean color: every region in its mean color", nick = "mean-color")]
    MeanColor,
    /// Regions in their mean color and lines between them.
    #[enum_value(name = "Mean color and boundaries: both of these", nick = "mean-color-boundaries")]
    MeanColorBoundaries,
    /// Regions in false colors.
    #[enum_value(
        name = "Labels: one false color for each region, kept over time unless temporal=false",
        nick = "labels"
    )]
    Labels,
}

/// The standard metadata of GStreamer 1.26 and newer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, glib::Enum)]
#[repr(i32)]
#[enum_type(name = "GstSuperpixelAnalytics")]
#[non_exhaustive]
pub enum Analytics {
    /// None.
    #[enum_value(name = "None: no standard metadata", nick = "none")]
    None,
    /// The label map.
    #[default]
    #[enum_value(name = "Segmentation: the label map as an instance segmentation", nick = "segmentation")]
    Segmentation,
    /// The label map and every region.
    #[enum_value(
        name = "Objects: the same, and every region as an object with a track id; at most 1000 regions",
        nick = "objects"
    )]
    Objects,
}

impl Analytics {
    /// What is to be attached, if anything.
    pub(super) fn detail(self) -> Option<Detail> {
        match self {
            Self::None => None,
            Self::Segmentation => Some(Detail::Segmentation),
            Self::Objects => Some(Detail::Objects),
        }
    }
}
