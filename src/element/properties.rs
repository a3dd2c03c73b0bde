// SPDX-License-Identifier: MPL-2.0
//! The element's properties as GObject shows them: ranges, defaults and texts.

use std::sync::LazyLock;

use gst::glib;
use gst::prelude::*;

use crate::algo::{lsc, quickshift, slic};
use crate::params::{BOUNDARY_WIDTH, ITERATIONS, MIN_REGION, Range, SUPERPIXEL_SIZE, SUPERPIXELS, THREADS};
use crate::post::{hierarchy, merge, refine};
use crate::temporal;

use super::cuda::DeviceSettings;
use super::enums::{ColorSpace, MergeRule};
use super::settings::Settings;

fn uint(range: Range<u32>, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecUInt::builder(range.name)
        .nick(nick)
        .blurb(blurb)
        .minimum(range.min)
        .maximum(range.max)
        .default_value(range.default)
        .controllable()
        .mutable_playing()
        .build()
}

fn float(range: Range<f32>, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecFloat::builder(range.name)
        .nick(nick)
        .blurb(blurb)
        .minimum(range.min)
        .maximum(range.max)
        .default_value(range.default)
        .controllable()
        .mutable_playing()
        .build()
}

fn boolean(name: &str, default: bool, nick: &str, blurb: &str) -> glib::ParamSpec {
    glib::ParamSpecBoolean::builder(name)
        .nick(nick)
        .blurb(blurb)
        .default_value(default)
        .mutable_playing()
        .build()
}

/// Every property of the element.
pub(super) static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
    let default = Settings::default();
    let mut properties = vec![
        glib::ParamSpecEnum::builder_with_default("algo", default.algo)
            .nick("Algorithm")
            .blurb("The segmentation algorithm")
            .mutable_playing()
            .build(),
        glib::ParamSpecEnum::builder_with_default("backend", default.backend)
            .nick("Backend")
            .blurb("Where frames are segmented; both backends give the same result, bit for bit")
            .mutable_ready()
            .build(),
        glib::ParamSpecString::builder("active-backend")
            .nick("Active backend")
            .blurb("The backend in use, with its device or number of threads; empty before start")
            .read_only()
            .build(),
        glib::ParamSpecUInt::builder(THREADS.name)
            .nick("Threads")
            .blurb("Threads of the CPU backend, at most one a core, whatever is set; active-backend says how many (0 = all cores)")
            .minimum(THREADS.min)
            .maximum(THREADS.max)
            .default_value(THREADS.default)
            .mutable_ready()
            .build(),
        uint(
            SUPERPIXEL_SIZE,
            "Superpixel size",
            "SLIC, LSC, SNIC: grid step in px, the distance between seeds; higher = fewer and larger superpixels",
        ),
        uint(
            SUPERPIXELS,
            "Superpixels",
            "SLIC, LSC, SNIC: wanted number per frame, from which the grid step follows; approximate (0 = use superpixel-size)",
        ),
        uint(ITERATIONS, "Iterations", "SLIC, LSC: assign and update rounds of an independent frame; more = better fit, slower. Warm-started frames (temporal=true), and those after a cut, take two"),
        float(
            slic::COMPACTNESS,
            "Compactness",
            "SLIC, SNIC: weight of position against color, in Lab units; higher = more regular superpixels",
        ),
        glib::ParamSpecEnum::builder_with_default("color-space", ColorSpace::from(default.own.slic.color_space))
            .nick("Color space")
            .blurb("SLIC, SNIC, quick shift: color space of the differences (LSC: always Lab)")
            .mutable_playing()
            .build(),
        boolean(
            "adaptive-compactness",
            default.own.slic.adaptive_compactness,
            "Adaptive compactness",
            "SLIC: adapt the compactness of each superpixel to its colors (SLICO)",
        ),
        float(
            lsc::RATIO,
            "LSC ratio",
            "LSC: weight of position against color, C_s / C_c of the paper; higher = more regular superpixels",
        ),
        float(
            quickshift::SIGMA,
            "Sigma",
            "Quick shift: width of the density kernel in px; higher = smoother; time grows with its square",
        ),
        float(
            quickshift::TAU,
            "Tau",
            "Quick shift: longest link in px, in position and color together; higher = fewer and larger regions",
        ),
        float(
            quickshift::COLOR_SCALE,
            "Color scale",
            "Quick shift: weight of a color unit (Delta E; color-space=rgb: code value) against a px; higher = regions follow color more closely",
        ),
        boolean(
            "connectivity",
            default.connectivity,
            "Connectivity",
            "Make every label one 4-connected region of at least min-region",
        ),
        float(
            MIN_REGION,
            "Minimum region",
            "Smallest region as a fraction of the squared grid step (quick shift: of tau squared); smaller components join a neighbor of near color, preferring other small regions",
        ),
        float(
            merge::MERGE,
            "Merge",
            "Merge touching regions where a neighbor is at most this many times as far in color as the nearest one \
             (0 = off, usual 1.5 to 2.5); higher = fewer regions",
        ),
        glib::ParamSpecEnum::builder_with_default("merge-rule", MergeRule::from(default.merge.rule))
            .nick("Merge rule")
            .blurb("When two regions merge")
            .mutable_playing()
            .build(),
        float(
            merge::MAX_DISTANCE,
            "Merge maximum distance",
            "Never merge across a larger difference of mean colors, in Delta E (color-space=rgb: code values; 0 = no limit)",
        ),
        uint(merge::PASSES, "Merge passes", "Merging passes, each from the means that the last one left; more = fewer regions"),
        uint(
            hierarchy::REGIONS,
            "Regions",
            "Exactly so many regions: superpixels are merged, the most alike first (0 = off); as many as there are, where fewer",
        ),
        float(
            hierarchy::COMPACTNESS,
            "Compactness of regions",
            "With regions: color difference, in Delta E, that weighs as much as 1/16 of the picture's side; higher = more compact",
        ),
        uint(
            refine::REFINE,
            "Refine",
            "Sweeps in which pixels at boundaries move to the neighboring region that fits them best, without tearing one (0 = off, usual 1 or 2)",
        ),
        float(
            refine::SMOOTHNESS,
            "Smoothness",
            "Refine: a pixel's side of boundary weighs as much as this color difference, in Delta E (color-space=rgb: code \
             values); higher = smoother outlines",
        ),
        boolean(
            "temporal",
            default.temporal,
            "Temporal",
            "Warm-start every frame from the previous one and keep track ids (track_id); off: independent frames, for pictures that are no sequence",
        ),
        float(
            temporal::INERTIA,
            "Temporal inertia",
            "How strongly a pixel keeps its region from frame to frame; higher = steadier, slower to follow edges",
        ),
        boolean(
            "stretch-gray16",
            default.stretch_gray16,
            "Stretch GRAY16",
            "GRAY16: compare pixels by the range of codes that the frames use, as of thermal cameras, and not by all 65,536; pixels of the frame stay",
        ),
        glib::ParamSpecEnum::builder_with_default("overlay", default.overlay)
            .nick("Overlay")
            .blurb("What is drawn into the frame")
            .mutable_playing()
            .build(),
        boolean(
            "mean-in-linear-light",
            default.mean_in_linear_light,
            "Mean in linear light",
            "Average colors, drawn and in the region table, in linear RGB instead of code values",
        ),
        glib::ParamSpecUInt::builder("boundary-color")
            .nick("Boundary color")
            .blurb("Color of boundaries as 0xAARRGGBB, blended by alpha")
            .default_value(default.boundaries.color)
            .controllable()
            .mutable_playing()
            .build(),
        uint(BOUNDARY_WIDTH, "Boundary width", "Width of boundaries in px"),
        boolean("labels", default.labels, "Labels", "Attach the label map as GstSuperpixelMeta"),
        boolean(
            "region-table",
            default.region_table,
            "Region table",
            "Attach one record per region to the metadata: area, centroid, mean colors, bounding box",
        ),
        boolean(
            "neighbors",
            default.neighbors,
            "Neighbors",
            "Attach the list of touching regions with their shared boundary lengths to the metadata",
        ),
        boolean(
            "hierarchy",
            default.hierarchy.levels,
            "Hierarchy",
            "Attach the list of merges from the label map's regions, as they are after refine, down to one to the metadata: any coarser level is a cut",
        ),
        glib::ParamSpecEnum::builder_with_default("analytics", default.analytics)
            .nick("Analytics")
            .blurb(
                "With GStreamer 1.26 or newer: standard metadata attached beside GstSuperpixelMeta, where labels=true; objects \
                 needs region-table=true",
            )
            .mutable_playing()
            .build(),
        glib::ParamSpecBoxed::builder::<gst::Structure>("stats")
            .nick("Statistics")
            .blurb(
                "Since start: frames, dropped, frame-time-us-mean, with CUDA pixel-bytes-to-device, pixel-bytes-from-device, \
                 result-bytes-from-device; of the last frame: regions, where a number is wanted regions-missing, frame-time-us, on the CPU stage-times-us",
            )
            .read_only()
            .build(),
    ];
    properties.extend(DeviceSettings::properties());
    properties
});
