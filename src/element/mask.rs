// SPDX-License-Identifier: MPL-2.0
//! The mask of a frame: from the frame's alpha, from metadata that earlier elements have attached, or from a property. And its prior,
//! from such metadata.

use crate::analytics;
use crate::error::Result;
use crate::image::{Channel, FrameInfo, Geometry};
use crate::mask::{MaskPlane, Place, PriorPlane, SampleKind, ValuePlane, Values};
use crate::meta;
use crate::video_map::{Reason, VideoMap};

use super::enums::{Mask, MaskMissing, Prior};
use super::mask_settings::MaskSettings;

/// The pixels of a frame that count.
pub(super) enum Counted<'a> {
    /// All of them.
    All,
    /// Those inside of a mask.
    Masked(&'a MaskPlane),
    /// Those whose alpha is at least so much, of 255. The plane is for who makes a mask of it on the host.
    Alpha(&'a mut MaskPlane, Channel, u32),
}

/// Makes the masks of a stream's frames, in memory that is used again.
#[derive(Default)]
pub(super) struct Masks {
    plane: MaskPlane,
    /// Source of the last mask, if it is still in the plane and the stream goes on.
    last: Option<Mask>,
    warned: bool,
}

/// A mask that cannot be made of a frame.
enum Lack {
    /// The frame has none.
    None,
    /// It has one that cannot be used.
    Bad(Reason),
}

impl Masks {
    /// Forgets the last frame, which the next one does not follow.
    pub(super) fn forget(&mut self) {
        self.last = None;
    }

    /// Finds the pixels of a frame that count. Of the first mask that cannot be used it also says why.
    ///
    /// # Errors
    ///
    /// No memory for a mask.
    pub(super) fn of(
        &mut self,
        buffer: &gst::BufferRef,
        frame: FrameInfo,
        settings: &MaskSettings,
    ) -> Result<(Counted<'_>, Option<Reason>)> {
        let (geometry, source) = (frame.geometry, settings.source);
        let lack = match source {
            Mask::None => return Ok((Counted::All, None)),
            Mask::Alpha => {
                self.last = None;
                let plane = &mut self.plane;
                let alpha = frame.format.layout().alpha;
                let counted = alpha.map(|alpha| Counted::Alpha(plane, alpha, settings.least_alpha));
                return Ok((counted.unwrap_or(Counted::All), None));
            }
            Mask::Segmentation => self.take_segmentation(buffer, geometry, &settings.values)?,
            Mask::Regions => self.take_regions(buffer, geometry, settings)?,
            Mask::Rectangle => {
                let Some(rectangle) = settings.rectangle else { return Ok((Counted::All, None)) };
                self.plane.set_places(geometry, [rectangle])?;
                None
            }
        };
        let Some(lack) = lack else {
            self.last = Some(source);
            return Ok((Counted::Masked(&self.plane), None));
        };
        let reason = match lack {
            Lack::Bad(reason) if !self.warned => {
                self.warned = true;
                Some(reason)
            }
            Lack::Bad(_) | Lack::None => None,
        };
        let goes_on = self.last == Some(source) && self.plane.is_of(geometry);
        let counted = match settings.missing {
            MaskMissing::Last if goes_on => Counted::Masked(&self.plane),
            MaskMissing::All | MaskMissing::Last => Counted::All,
            MaskMissing::None => {
                self.last = None;
                self.plane.set_places(geometry, [])?;
                Counted::Masked(&self.plane)
            }
        };
        Ok((counted, reason))
    }

    /// Makes the mask of the regions of interest.
    fn take_regions(
        &mut self,
        buffer: &gst::BufferRef,
        geometry: Geometry,
        settings: &MaskSettings,
    ) -> Result<Option<Lack>> {
        let mut places = buffer
            .iter_meta::<gst_video::VideoRegionOfInterestMeta>()
            .filter(|roi| settings.takes_roi(meta::roi_kind(roi)))
            .map(|roi| {
                let (x, y, width, height) = roi.rect();
                [x, y, width, height].map(i64::from)
            })
            .peekable();
        if places.peek().is_none() {
            return Ok(Some(Lack::None));
        }
        self.plane.set_places(geometry, places)?;
        Ok(None)
    }

    /// Makes the mask of the segmentation that the metadata has last.
    fn take_segmentation(
        &mut self,
        buffer: &gst::BufferRef,
        geometry: Geometry,
        values: &Values,
    ) -> Result<Option<Lack>> {
        with_segmentation(buffer, |plane, place| self.plane.set_values(geometry, plane, place, values))
    }
}

/// Makes the priors of a stream's frames, in memory that is used again.
#[derive(Default)]
pub(super) struct Priors {
    plane: PriorPlane,
    warned: bool,
}

impl Priors {
    /// Finds the prior of a frame, if it has one. Of the first that cannot be used it also says why.
    ///
    /// # Errors
    ///
    /// No memory for it.
    pub(super) fn of(
        &mut self,
        buffer: &gst::BufferRef,
        frame: FrameInfo,
        source: Prior,
    ) -> Result<(Option<&PriorPlane>, Option<Reason>)> {
        if source == Prior::None {
            return Ok((None, None));
        }
        let plane = &mut self.plane;
        match with_segmentation(buffer, |values, place| plane.set(frame.geometry, values, place))? {
            None => Ok((Some(plane), None)),
            Some(Lack::Bad(reason)) if !self.warned => {
                self.warned = true;
                Ok((None, Some(reason)))
            }
            Some(_) => Ok((None, None)),
        }
    }
}

/// Gives the plane of the segmentation that the metadata has last to `take`, with its place in the frame.
fn with_segmentation(
    buffer: &gst::BufferRef,
    take: impl FnOnce(ValuePlane<'_>, Place) -> Result<()>,
) -> Result<Option<Lack>> {
    if let Some(reason) = analytics::unavailable() {
        let reason = format!("it needs the analytics library of GStreamer 1.26 or newer: {reason}");
        return Ok(Some(Lack::Bad(reason)));
    }
    let Some((mask, place)) = analytics::last_segmentation(buffer) else { return Ok(Some(Lack::None)) };
    match described(&mask) {
        Ok((info, samples, kind)) => match map(&mask, &info, samples, kind) {
            Ok(map) => {
                let (bytes, stride) = (map.slices()[0], map.strides()[0]);
                take(ValuePlane { bytes, stride, geometry: samples, kind }, place).map(|()| None)
            }
            Err(reason) => Ok(Some(Lack::Bad(reason))),
        },
        Err(reason) => Ok(Some(Lack::Bad(reason))),
    }
}

/// Size and samples of the mask of a segmentation, by its video meta.
fn described(mask: &gst::BufferRef) -> Result<(gst_video::VideoInfo, Geometry, SampleKind), Reason> {
    let meta = mask.meta::<gst_video::VideoMeta>().ok_or("the segmentation's mask has no video meta")?;
    let kind = match meta.format() {
        gst_video::VideoFormat::Gray8 => SampleKind::Bytes,
        gst_video::VideoFormat::Gray16Le => SampleKind::WordsLe,
        gst_video::VideoFormat::Gray16Be => SampleKind::WordsBe,
        other => return Err(format!("the segmentation's mask is {other}, not GRAY8 or GRAY16")),
    };
    let (width, height) = (meta.width(), meta.height());
    let geometry =
        Geometry::new(width, height).map_err(|error| format!("the segmentation's mask: {error}"))?;
    let info = gst_video::VideoInfo::builder(meta.format(), width, height).build();
    Ok((info.map_err(|error| error.to_string())?, geometry, kind))
}

/// Maps the mask of a segmentation.
fn map<'a>(
    mask: &'a gst::BufferRef,
    info: &gst_video::VideoInfo,
    samples: Geometry,
    kind: SampleKind,
) -> Result<VideoMap<'a>, Reason> {
    let shape = (kind.bytes() * samples.width as usize, samples.height as usize);
    VideoMap::read(mask, info, std::iter::once(shape))
        .map_err(|reason| format!("the segmentation's mask does not hold its samples: {reason}"))
}
