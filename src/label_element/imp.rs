// SPDX-License-Identifier: MPL-2.0
//! `superpixellabels`: converts the metadata's label maps to video.

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;

use super::OnMissing;
use super::smooth::Smooth;
use crate::bad_buffers::{BadBuffers, Failure};
use crate::element::frame;
use crate::error::Error;
use crate::image::{Geometry, NO_LABEL};
use crate::meta::{self, SuperpixelMeta};
use crate::post::abstraction::OUTLINE_SMOOTHNESS;
use crate::video_map::{VideoMap, label_shape};

static CAT: LazyLock<gst::DebugCategory> = LazyLock::new(|| {
    gst::DebugCategory::new("superpixellabels", gst::DebugColorFlags::empty(), Some("Superpixel label maps"))
});

#[derive(Debug, Clone, Copy, Default)]
struct Settings {
    on_missing: OnMissing,
    identity: bool,
    objects: bool,
    outline_smoothness: f32,
}

/// The element.
#[derive(Default)]
pub struct SuperpixelLabels {
    settings: Mutex<Settings>,
    info: Mutex<Option<gst_video::VideoInfo>>,
    smooth: Mutex<Smooth>,
    bad_buffers: BadBuffers,
}

impl SuperpixelLabels {
    /// Writes the label map, or track ids or ids of objects, into the output frame.
    fn write(
        &self,
        meta: &SuperpixelMeta<'_>,
        Settings { identity, objects, outline_smoothness, .. }: Settings,
        info: &gst_video::VideoInfo,
        outbuf: &mut gst::BufferRef,
    ) -> Result<(), Failure> {
        let bad = |error: glib::BoolError| {
            format!("its metadata cannot be read: {error}; make it with superpixel of this version")
        };
        if (meta.width(), meta.height()) != (info.width(), info.height()) {
            return Err(gst::error_msg!(
                gst::StreamError::Format,
                (
                    "The label map has {}x{}, the frame {}x{}; put superpixel after elements that change the size",
                    meta.width(),
                    meta.height(),
                    info.width(),
                    info.height()
                )
            )
            .into());
        }
        let identity = identity && !objects;
        let table = if identity { meta.table().map_err(bad)? } else { Vec::new() };
        if identity && table.is_empty() && meta.regions() > 0 {
            return Err(gst::error_msg!(
                gst::StreamError::Format,
                ("identity=true needs the region table; set region-table=true on superpixel")
            )
            .into());
        }
        // The value of each label, where that is not the label.
        let mut values: Vec<[u8; 2]> =
            table.iter().map(|region| (region.track_id as u16).to_le_bytes()).collect();
        if objects {
            values.extend(meta.objects().map_err(bad)?.iter().map(|id| (*id as u16).to_le_bytes()));
            // A frame without objects has no list of them. Labels are of 16 bits, whatever number of regions is claimed.
            let regions = usize::try_from(meta.regions()).unwrap_or(usize::MAX).min(usize::from(NO_LABEL));
            values.resize(regions, [0; 2]);
        }
        let short = |error: Error| format!("its outlines cannot be smoothed: {error}");
        with_rows(info, outbuf, |rows| {
            let mut out = rows.iter_mut();
            let mut beyond = None;
            // The output has as many rows: the sizes are equal.
            let mut write = |row: &[u8]| {
                let Some(out) = out.next() else { return };
                if !identity && !objects {
                    out.copy_from_slice(row);
                    return;
                }
                for (out, label) in out.chunks_exact_mut(2).zip(row.chunks_exact(2)) {
                    let label = u16::from_le_bytes([label[0], label[1]]);
                    match values.get(usize::from(label)) {
                        // Outside of a mask there is no region.
                        _ if label == NO_LABEL => out.fill(0),
                        Some(value) => out.copy_from_slice(value),
                        None => beyond = Some(label),
                    }
                }
            };
            if outline_smoothness == 0.0 {
                meta.for_each_row(write).map_err(bad)?;
            } else {
                let mut smooth = self.smooth.lock().unwrap();
                smooth.begin(info.width(), info.height(), outline_smoothness).map_err(short)?;
                meta.for_each_row(|row| smooth.add_row(row)).map_err(bad)?;
                smooth.for_each_row(&mut write).map_err(short)?;
            }
            beyond.map_or(Ok(()), |label| {
                let records = values.len();
                Err(bad(glib::bool_error!("label {label}, but {records} records in the region table")).into())
            })
        })
    }
}

/// Maps an output frame and passes its rows, without their padding, to `write` for little-endian labels; swaps bytes
/// for big-endian streams. Sets the padding to zero.
///
/// # Errors
///
/// If a buffer of downstream's pool does not hold all rows, since the next ones will not either.
fn with_rows(
    info: &gst_video::VideoInfo,
    buffer: &mut gst::BufferRef,
    write: impl FnOnce(&mut [&mut [u8]]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |reason: String| {
        gst::error_msg!(
            gst::ResourceError::Failed,
            ("The pool of a downstream element gave a buffer for label maps that cannot be used: {reason}; put \
              videoconvert after superpixellabels")
        )
    };
    let geometry = Geometry::new(info.width(), info.height()).map_err(|e| failed(e.to_string()))?;
    let (row, count) = label_shape(geometry);
    let mut map = VideoMap::write(buffer, info, std::iter::once((row, count))).map_err(&failed)?;
    let stride = map.strides()[0];
    let [plane, ..] = map.slices_mut();
    frame::clear_padding(plane, row, stride);
    let mut rows: Vec<&mut [u8]> = plane.chunks_mut(stride).filter_map(|line| line.get_mut(..row)).collect();
    if rows.len() != count {
        return Err(failed(format!("it has {} rows of {count}", rows.len())).into());
    }
    write(&mut rows)?;
    if info.format() == gst_video::VideoFormat::Gray16Be {
        rows.iter_mut().flat_map(|row| row.chunks_exact_mut(2)).for_each(|label| label.swap(0, 1));
    }
    Ok(())
}

#[glib::object_subclass]
impl ObjectSubclass for SuperpixelLabels {
    const NAME: &'static str = "GstSuperpixelLabels";
    type Type = super::SuperpixelLabels;
    type ParentType = gst_video::VideoFilter;
}

impl ObjectImpl for SuperpixelLabels {
    fn properties() -> &'static [glib::ParamSpec] {
        static PROPERTIES: LazyLock<Vec<glib::ParamSpec>> = LazyLock::new(|| {
            let default = Settings::default();
            vec![
                glib::ParamSpecEnum::builder_with_default("on-missing", default.on_missing)
                    .nick("On missing")
                    .blurb("What happens to a frame without a label map")
                    .mutable_playing()
                    .build(),
                glib::ParamSpecBoolean::builder("identity")
                    .nick("Identity")
                    .blurb("Write the low 16 bits of each region's track_id instead of its label")
                    .default_value(default.identity)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecBoolean::builder("objects")
                    .nick("Objects")
                    .blurb(
                        "Write the low 16 bits of the id of each region's object, which superpixelobjects has found, instead of its label; 0 for none",
                    )
                    .default_value(default.objects)
                    .mutable_playing()
                    .build(),
                glib::ParamSpecFloat::builder("outline-smoothness")
                    .nick("Outline smoothness")
                    .blurb(
                        "Scale at which outlines are smoothed as by overlay=abstraction, in px (0 = not at all; else at least \
                         0.5); table and labels of the metadata stay those of the segmentation",
                    )
                    .maximum(OUTLINE_SMOOTHNESS.max)
                    .minimum(0.0)
                    .default_value(default.outline_smoothness)
                    .mutable_playing()
                    .build(),
            ]
        });
        PROPERTIES.as_ref()
    }

    fn set_property(&self, _id: usize, value: &glib::Value, pspec: &glib::ParamSpec) {
        let mut settings = self.settings.lock().unwrap();
        match pspec.name() {
            "on-missing" => settings.on_missing = value.get().unwrap_or_default(),
            "objects" => settings.objects = value.get().unwrap_or_default(),
            "identity" => settings.identity = value.get().unwrap_or_default(),
            "outline-smoothness" => settings.outline_smoothness = value.get().unwrap_or_default(),
            name => unimplemented!("property {name}"),
        }
    }

    fn property(&self, _id: usize, pspec: &glib::ParamSpec) -> glib::Value {
        let settings = self.settings.lock().unwrap();
        match pspec.name() {
            "on-missing" => settings.on_missing.to_value(),
            "identity" => settings.identity.to_value(),
            "objects" => settings.objects.to_value(),
            "outline-smoothness" => settings.outline_smoothness.to_value(),
            name => unimplemented!("property {name}"),
        }
    }
}

impl GstObjectImpl for SuperpixelLabels {}

impl ElementImpl for SuperpixelLabels {
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Superpixel label maps",
                "Filter/Converter/Video",
                "Replaces frames by the label maps that superpixel attached to them",
                env!("CARGO_PKG_AUTHORS"),
            )
        });
        Some(&*METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            // PNG is big endian, and videoconvert would rather take 8-bit colors than swap bytes.
            let labels = frame::caps_of([gst_video::VideoFormat::Gray16Le, gst_video::VideoFormat::Gray16Be]);
            [("sink", gst::PadDirection::Sink, frame::system_caps()), ("src", gst::PadDirection::Src, labels)]
                .into_iter()
                .filter_map(|(name, direction, caps)| {
                    gst::PadTemplate::new(name, direction, gst::PadPresence::Always, &caps).ok()
                })
                .collect()
        });
        TEMPLATES.as_ref()
    }
}

impl BaseTransformImpl for SuperpixelLabels {
    const MODE: gst_base::subclass::BaseTransformMode = gst_base::subclass::BaseTransformMode::NeverInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        self.bad_buffers.reset();
        Ok(())
    }

    fn sink_event(&self, event: gst::Event) -> bool {
        if let (gst::EventView::Eos(_), Some(message)) = (event.view(), self.bad_buffers.at_end()) {
            self.post_error_message(message);
        }
        self.parent_sink_event(event)
    }

    fn stop(&self) -> Result<(), gst::ErrorMessage> {
        *self.info.lock().unwrap() = None;
        *self.smooth.lock().unwrap() = Smooth::default();
        Ok(())
    }

    fn transform_caps(
        &self,
        direction: gst::PadDirection,
        caps: &gst::Caps,
        filter: Option<&gst::Caps>,
    ) -> Option<gst::Caps> {
        let other_side = if direction == gst::PadDirection::Sink { "src" } else { "sink" };
        let template = self.obj().pad_template(other_side)?;
        let mut other = caps.clone();
        for structure in other.make_mut().iter_mut() {
            // Fields that describe samples differ between colors and labels.
            structure.remove_fields(["format", "colorimetry", "chroma-site"]);
        }
        other = other.intersect(template.caps());
        if let Some(filter) = filter {
            other = filter.intersect_with_mode(&other, gst::CapsIntersectMode::First);
        }
        gst::debug!(CAT, imp = self, "{direction:?} {caps} becomes {other}");
        Some(other)
    }

    fn transform_meta<'a>(
        &self,
        outbuf: &mut gst::BufferRef,
        meta: gst::MetaRef<'a, gst::Meta>,
        inbuf: &'a gst::BufferRef,
    ) -> bool {
        // The output has the size of the frame, so table and neighbors still describe it.
        let ours = meta.try_as_custom_meta().is_some_and(|custom| custom.has_name(meta::NAME));
        ours || self.parent_transform_meta(outbuf, meta, inbuf)
    }

    fn transform(
        &self,
        inbuf: &gst::Buffer,
        outbuf: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = *self.settings.lock().unwrap();
        let info = self.info.lock().unwrap().clone().ok_or(gst::FlowError::NotNegotiated)?;
        let written = match (SuperpixelMeta::from_buffer(inbuf), settings.on_missing) {
            (Some(meta), _) => self.write(&meta, settings, &info, outbuf),
            (None, OnMissing::Zero) => with_rows(&info, outbuf, |rows| {
                rows.iter_mut().for_each(|row| row.fill(0));
                Ok(())
            }),
            (None, OnMissing::Drop) => {
                gst::debug!(CAT, imp = self, "no label map at {:?}, frame dropped", inbuf.pts());
                return Ok(gst_base::BASE_TRANSFORM_FLOW_DROPPED);
            }
            (None, OnMissing::Error) => Err(gst::error_msg!(
                gst::StreamError::Format,
                ("The frame carries no label map; put superpixel with labels=true before this element, and nothing \
                     between them that changes the size, or set on-missing")
            )
            .into()),
        };
        match written {
            Ok(()) => {
                self.bad_buffers.note_used();
                Ok(gst::FlowSuccess::Ok)
            }
            Err(failure) => {
                self.bad_buffers.handle(self.obj().upcast_ref(), inbuf, failure)?;
                Ok(gst_base::BASE_TRANSFORM_FLOW_DROPPED)
            }
        }
    }
}

impl VideoFilterImpl for SuperpixelLabels {
    fn set_info(
        &self,
        _incaps: &gst::Caps,
        _in_info: &gst_video::VideoInfo,
        _outcaps: &gst::Caps,
        out_info: &gst_video::VideoInfo,
    ) -> Result<(), gst::LoggableError> {
        *self.info.lock().unwrap() = Some(out_info.clone());
        Ok(())
    }
}
