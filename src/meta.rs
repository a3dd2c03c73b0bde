// SPDX-License-Identifier: MPL-2.0
//! `GstSuperpixelMeta`: the label map and data that belong to it, attached to a video buffer.
//!
//! It is a `GstCustomMeta`, so that C, Python and Rust read it without this library; [`SuperpixelMeta`] is the
//! comfortable way from Rust. It follows a frame through copies and through converters that keep the size, and is
//! dropped where the geometry changes.
//!
//! ```no_run
//! # fn show(buffer: &gst::BufferRef) -> Result<(), gst::glib::BoolError> {
//! use gstsuperpixel::meta::SuperpixelMeta;
//!
//! if let Some(meta) = SuperpixelMeta::from_buffer(buffer) {
//!     let labels = meta.labels()?;
//!     println!("{} regions, label {} at the top left", meta.regions(), labels.row(0)[0]);
//!     for region in meta.table()? {
//!         println!("region {} has {} px around {:?}", region.track_id, region.area, region.centroid);
//!     }
//! }
//! # Ok(())
//! # }
//! ```

use std::ffi::CStr;
use std::sync::Once;

use glib::translate::{FromGlib, IntoGlib, from_glib};
use gst::glib;
use gst::meta::CustomMeta;

use crate::image::{Geometry, NO_LABEL};
use crate::record::Record;
use crate::regions::{Event, MergeStep, Motion, Neighbor, Region};
use crate::video_map::{Layout, PlaneLayout, label_shape};

/// Name of the metadata, under which every language finds it.
pub const NAME: &str = "GstSuperpixelMeta";
const C_NAME: &CStr = c"GstSuperpixelMeta";
/// Layout of the fields that this library writes and reads.
pub const VERSION: u32 = 1;

/// Name of a field whose type GStreamer cannot serialize.
const LOCAL: &str = "local";

/// Keeps the metadata in its process. From 1.24 on elements such as `unixfdsink` serialize custom metadata as text,
/// label map and all, which fills the socket; a field that has no text makes them leave it out.
// Not empty: GObject takes the address of its copies.
#[derive(Debug, Clone, Copy, glib::Boxed)]
#[boxed_type(name = "GstSuperpixelLocal")]
struct Local(#[allow(dead_code)] u8);

/// Registers the metadata with GStreamer; the plugin does so when it is loaded. Further calls do nothing.
pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if CustomMeta::is_registered(NAME) {
            return;
        }
        // Without tags, elements that cut or turn frames would copy the label map as it is.
        let mut tags = [c"video", c"size", c"orientation"].map(CStr::as_ptr).to_vec();
        tags.push(std::ptr::null());
        // SAFETY: both strings and the null-terminated list live across the call, which copies them; the function has
        // the announced signature and needs no user data.
        unsafe {
            gst::ffi::gst_meta_register_custom(
                C_NAME.as_ptr(),
                tags.as_mut_ptr(),
                Some(transform),
                std::ptr::null_mut(),
                None,
            );
        }
    });
}

/// Decides if the metadata follows from `source` to `dest`: into copies of whole buffers, and through scalers that do
/// not scale. Every other transform, such as a matrix, is refused: callers then try the scale, or drop the metadata.
///
/// # Safety
/// As GStreamer calls it: valid buffers, `meta` of this kind on `source`, `data` as `kind` says.
unsafe extern "C" fn transform(
    dest: *mut gst::ffi::GstBuffer,
    meta: *mut gst::ffi::GstCustomMeta,
    source: *mut gst::ffi::GstBuffer,
    kind: glib::ffi::GQuark,
    data: glib::ffi::gpointer,
    _user_data: glib::ffi::gpointer,
) -> glib::ffi::gboolean {
    // SAFETY: a quark that GStreamer passes is a valid one.
    let kind = unsafe { glib::Quark::from_glib(kind) };
    let keep = match kind.as_str().as_str() {
        "gst-copy" if !data.is_null() => {
            // SAFETY: for this kind, `data` is this structure and `source` a valid buffer.
            let (copy, size) = unsafe {
                (&*data.cast::<gst::ffi::GstMetaTransformCopy>(), gst::ffi::gst_buffer_get_size(source))
            };
            copy.region == glib::ffi::GFALSE || (copy.offset == 0 && copy.size >= size)
        }
        "gst-video-scale" if !data.is_null() => {
            // SAFETY: for this kind, `data` is this structure with two valid infos.
            let (from, to) = unsafe {
                let scale = &*data.cast::<gst_video::ffi::GstVideoMetaTransform>();
                (&*scale.in_info, &*scale.out_info)
            };
            // Between different shapes the scaler moves pixels, or puts borders around.
            let shape = |info: &gst_video::ffi::GstVideoInfo, other: &gst_video::ffi::GstVideoInfo| {
                i64::from(info.par_n) * i64::from(other.par_d)
            };
            from.width == to.width && from.height == to.height && shape(from, to) == shape(to, from)
        }
        _ => false,
    };
    if !keep {
        return glib::ffi::GFALSE;
    }
    // SAFETY: both metas are custom metas of this name, whose structures live as long as they; the values of `from`
    // are only read, `to` belongs to a meta that nobody else has seen. A second meta of this name would hide the new
    // one from readers, so an older one on the destination is used again.
    let copied: bool = unsafe {
        let from = gst::ffi::gst_custom_meta_get_structure(meta);
        let mut copy = gst::ffi::gst_buffer_get_custom_meta(dest, C_NAME.as_ptr());
        if copy.is_null() {
            copy = gst::ffi::gst_buffer_add_custom_meta(dest, C_NAME.as_ptr());
        }
        if copy.is_null() {
            false
        } else {
            let to = gst::ffi::gst_custom_meta_get_structure(copy);
            gst::ffi::gst_structure_remove_all_fields(to);
            from_glib(gst::ffi::gst_structure_foreach(from, Some(set_field), to.cast()))
        }
    };
    copied.into_glib()
}

/// Sets a field of the structure behind `to`.
///
/// # Safety
/// As `gst_structure_foreach` calls it; `to` is a mutable `GstStructure`.
unsafe extern "C" fn set_field(
    name: glib::ffi::GQuark,
    value: *const glib::gobject_ffi::GValue,
    to: glib::ffi::gpointer,
) -> glib::ffi::gboolean {
    // SAFETY: the caller's promise; the value is copied.
    unsafe { gst::ffi::gst_structure_id_set_value(to.cast(), name, value) };
    glib::ffi::GTRUE
}

/// Metadata that the element attaches to a frame.
pub(crate) struct Attachment<'a> {
    /// GRAY16_LE with a video meta.
    pub labels: gst::Buffer,
    pub geometry: Geometry,
    /// Nick of the algorithm.
    pub algo: &'a str,
    /// Number of labels.
    pub regions: u32,
    /// [`Region`]s, if they were asked for.
    pub table: Option<gst::Buffer>,
    /// [`Motion`]s, in temporal mode.
    pub motion: Option<gst::Buffer>,
    /// [`Neighbor`]s, if they were asked for.
    pub neighbors: Option<gst::Buffer>,
    /// [`MergeStep`]s, if they were asked for.
    pub hierarchy: Option<gst::Buffer>,
}

/// A buffer with a copy of records.
pub(crate) fn records<T: bytemuck::NoUninit>(records: &[T]) -> gst::Buffer {
    gst::Buffer::from_slice(bytemuck::cast_slice::<_, u8>(records).to_vec())
}

/// Attaches the metadata, and replaces that of an earlier element.
pub(crate) fn attach(buffer: &mut gst::BufferRef, attachment: Attachment<'_>) -> Result<(), glib::BoolError> {
    let Attachment { labels, geometry, algo, regions, table, motion, neighbors, hierarchy } = attachment;
    if let Ok(earlier) = CustomMeta::from_mut_buffer(buffer, NAME) {
        earlier.remove()?;
    }
    let mut meta = CustomMeta::add(buffer, NAME)?;
    let fields = meta.mut_structure();
    // Must be the first field, so that a serializer stops before it has turned the label map into text.
    fields.set(LOCAL, Local(0));
    fields.set("version", VERSION);
    fields.set("labels", labels);
    fields.set("regions", regions);
    fields.set("algo", algo);
    fields.set("width", geometry.width);
    fields.set("height", geometry.height);
    for (layout, records) in [
        (Region::LAYOUT, table),
        (Motion::LAYOUT, motion),
        (Neighbor::LAYOUT, neighbors),
        (MergeStep::LAYOUT, hierarchy),
    ] {
        if let Some(records) = records {
            fields.set(layout.section, records);
        }
    }
    Ok(())
}

/// Adds the events of a frame to its metadata.
pub(crate) fn add_events(buffer: &mut gst::BufferRef, events: &[Event]) -> Result<(), glib::BoolError> {
    let mut meta = CustomMeta::from_mut_buffer(buffer, NAME)
        .map_err(|_| glib::bool_error!("a frame without superpixels"))?;
    meta.mut_structure().set(Event::LAYOUT.section, records(events));
    Ok(())
}

/// Name of the field with the object of each region: one u32 a label, 0 for none.
pub(crate) const OBJECTS: &str = "objects";

/// Adds the id of each label's object to the metadata of a frame.
pub(crate) fn add_objects(buffer: &mut gst::BufferRef, objects: &[u32]) -> Result<(), glib::BoolError> {
    let mut meta = CustomMeta::from_mut_buffer(buffer, NAME)
        .map_err(|_| glib::bool_error!("a frame without superpixels"))?;
    meta.mut_structure().set(OBJECTS, records(objects));
    Ok(())
}

/// The text of a quark that another element has set; empty where it is none or not UTF-8.
pub(crate) fn quark_text(quark: glib::ffi::GQuark) -> &'static str {
    // SAFETY: any number may be asked for; texts of quarks live as long as the process.
    let text = unsafe { glib::ffi::g_quark_to_string(quark).as_ref() };
    // SAFETY: as above, with a null at its end.
    text.and_then(|text| unsafe { CStr::from_ptr(text) }.to_str().ok()).unwrap_or_default()
}

/// The type of a region of interest, see [`quark_text`].
pub(crate) fn roi_kind(roi: &gst_video::VideoRegionOfInterestMeta) -> &'static str {
    let raw: *const gst_video::VideoRegionOfInterestMeta = roi;
    // SAFETY: the type is a transparent wrapper of GStreamer's, and borrowed.
    quark_text(unsafe { (*raw.cast::<gst_video::ffi::GstVideoRegionOfInterestMeta>()).roi_type })
}

/// The metadata of a buffer, for reading.
#[derive(Debug)]
pub struct SuperpixelMeta<'a> {
    fields: &'a gst::StructureRef,
    geometry: Geometry,
    regions: u32,
    algo: &'a str,
    labels: gst::Buffer,
}

impl<'a> SuperpixelMeta<'a> {
    /// Finds the metadata. `None` if there is none or its layout is not [`VERSION`].
    pub fn from_buffer(buffer: &'a gst::BufferRef) -> Option<Self> {
        register();
        // SAFETY: the buffer is valid; the meta and its structure live and stay as they are while the buffer is borrowed.
        let fields = unsafe {
            let meta = gst::ffi::gst_buffer_get_custom_meta(buffer.as_mut_ptr(), C_NAME.as_ptr());
            if meta.is_null() {
                return None;
            }
            gst::StructureRef::from_glib_borrow(gst::ffi::gst_custom_meta_get_structure(meta))
        };
        if fields.get::<u32>("version") != Ok(VERSION) {
            return None;
        }
        Some(Self {
            fields,
            geometry: Geometry::new(fields.get("width").ok()?, fields.get("height").ok()?).ok()?,
            regions: fields.get("regions").ok()?,
            algo: fields.get("algo").ok()?,
            labels: fields.get("labels").ok()?,
        })
    }

    /// Nick of the algorithm.
    pub fn algo(&self) -> &str {
        self.algo
    }

    /// Number of regions n: labels are 0 to n-1, each used, and [`NO_LABEL`] outside of a mask.
    pub fn regions(&self) -> u32 {
        self.regions
    }

    /// Width of the label map in px.
    pub fn width(&self) -> u32 {
        self.geometry.width
    }

    /// Height of the label map in px.
    pub fn height(&self) -> u32 {
        self.geometry.height
    }

    /// The label map as it is attached: one GRAY16_LE plane with a video meta. Avoids a copy.
    pub fn label_buffer(&self) -> &gst::Buffer {
        &self.labels
    }

    /// Copies the label map out, without the padding of its rows. Pixels outside of a mask have [`NO_LABEL`].
    ///
    /// # Errors
    /// A label buffer that cannot be mapped, is not the announced plane or holds a label of no region; no memory.
    pub fn labels(&self) -> Result<LabelMap, glib::BoolError> {
        let Geometry { width, height } = self.geometry;
        let mut labels: Vec<u16> = Vec::new();
        // Bounds the allocation: the map is no larger than the plane, which is in memory already.
        self.plane()?;
        labels
            .try_reserve_exact(self.geometry.pixels())
            .map_err(|e| glib::bool_error!("no memory for a label map of {width}x{height}: {e}"))?;
        self.for_each_row(|row| {
            labels.extend(row.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])))
        })?;
        let most = labels.iter().copied().filter(|label| *label != NO_LABEL).max();
        if let Some(most) = most.filter(|most| u32::from(*most) >= self.regions) {
            return Err(glib::bool_error!("label {most}, but {} regions", self.regions));
        }
        Ok(LabelMap { width, height, labels })
    }

    /// Layout of the label plane: by the video meta or, if a copy or a socket has lost that, GStreamer's default for
    /// GRAY16_LE.
    fn plane(&self) -> Result<PlaneLayout, glib::BoolError> {
        let Geometry { width, height } = self.geometry;
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray16Le, width, height).build()?;
        let layout = Layout::of(&self.labels, &info, std::iter::once(label_shape(self.geometry)));
        Ok(layout
            .map_err(|reason| glib::bool_error!("the label buffer is not a label map: {reason}"))?
            .planes()[0])
    }

    /// Calls `show` with each row of the label map from top to bottom: 2 * width bytes, little endian.
    pub(crate) fn for_each_row(&self, mut show: impl FnMut(&[u8])) -> Result<(), glib::BoolError> {
        let Geometry { width, height } = self.geometry;
        let plane = self.plane()?;
        let map = self.labels.map_readable()?;
        let rows = map
            .get(plane.offset..)
            .and_then(|bytes| bytes.get(..plane.len))
            .ok_or_else(|| glib::bool_error!("the label buffer shrank while it was mapped"))?
            .chunks(plane.stride);
        for row in rows.take(height as usize) {
            show(&row[..size_of::<u16>() * width as usize]);
        }
        Ok(())
    }

    /// The region table in label order; empty if none is attached (`region-table=false`).
    ///
    /// # Errors
    ///
    /// If the table buffer cannot be mapped or does not hold one record per region.
    pub fn table(&self) -> Result<Vec<Region>, glib::BoolError> {
        let table: Vec<Region> = self.records()?;
        if !table.is_empty() && table.len() != self.regions as usize {
            return Err(glib::bool_error!("{} records for {} regions", table.len(), self.regions));
        }
        Ok(table)
    }

    /// Velocity and age of the regions in label order; empty without temporal mode (`temporal=false`) or without a
    /// table.
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold one record per region.
    pub fn motion(&self) -> Result<Vec<Motion>, glib::BoolError> {
        let motion: Vec<Motion> = self.records()?;
        if !motion.is_empty() && motion.len() != self.regions as usize {
            return Err(glib::bool_error!("{} motions for {} regions", motion.len(), self.regions));
        }
        Ok(motion)
    }

    /// The touching pairs of regions, sorted; empty if none are attached (`neighbors=true` attaches them).
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold whole records.
    pub fn neighbors(&self) -> Result<Vec<Neighbor>, glib::BoolError> {
        self.records()
    }

    /// The merges that would come next, in order, for [`cut`](crate::regions::cut); empty if none are attached
    /// (`hierarchy=true` attaches them).
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold whole records.
    pub fn merges(&self) -> Result<Vec<MergeStep>, glib::BoolError> {
        self.records()
    }

    /// What became of regions since the last frame; empty if nothing did, or if no events are attached (`events=true` attaches
    /// them).
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold whole records.
    pub fn events(&self) -> Result<Vec<Event>, glib::BoolError> {
        self.records()
    }

    /// The object of each region in label order, by its id, 0 for none; empty if `superpixelobjects` has attached none.
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold one number per region.
    pub fn objects(&self) -> Result<Vec<u32>, glib::BoolError> {
        let mut objects: Vec<u32> = Vec::new();
        self.read_field(OBJECTS, &mut objects)?;
        if !objects.is_empty() && objects.len() != self.regions as usize {
            return Err(glib::bool_error!("objects of {} regions for {}", objects.len(), self.regions));
        }
        Ok(objects)
    }

    /// Returns true if there is a field of records.
    pub(crate) fn has<T: Record>(&self) -> bool {
        self.fields
            .has_field_with_type(T::LAYOUT.section, <gst::Buffer as glib::prelude::StaticType>::static_type())
    }

    fn records<T: Record>(&self) -> Result<Vec<T>, glib::BoolError> {
        let mut records = Vec::new();
        self.read(&mut records)?;
        Ok(records)
    }

    /// Replaces the content of `records` by those of the metadata; by none if none are attached.
    ///
    /// # Errors
    ///
    /// If the buffer cannot be mapped or does not hold whole records.
    pub(crate) fn read<T: Record>(&self, records: &mut Vec<T>) -> Result<(), glib::BoolError> {
        self.read_field(T::LAYOUT.section, records)
    }

    fn read_field<T: bytemuck::AnyBitPattern>(
        &self,
        field: &str,
        records: &mut Vec<T>,
    ) -> Result<(), glib::BoolError> {
        records.clear();
        let Ok(buffer) = self.fields.get::<gst::Buffer>(field) else { return Ok(()) };
        let map = buffer.map_readable()?;
        let read = map.chunks_exact(size_of::<T>());
        if !read.remainder().is_empty() {
            return Err(glib::bool_error!("{} bytes in {field} are not whole records", map.len()));
        }
        records.extend(read.map(bytemuck::pod_read_unaligned::<T>));
        Ok(())
    }
}

/// A label map in ordinary memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMap {
    width: u32,
    height: u32,
    labels: Vec<u16>,
}

impl LabelMap {
    /// Width in px.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in px.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Row `y`: `width` labels.
    pub fn row(&self, y: usize) -> &[u16] {
        &self.labels[y * self.width as usize..][..self.width as usize]
    }

    /// All rows from top to bottom.
    pub fn rows(&self) -> impl Iterator<Item = &[u16]> {
        self.labels.chunks_exact(self.width as usize)
    }

    /// All labels in row order.
    pub fn as_slice(&self) -> &[u16] {
        &self.labels
    }

    /// All labels in row order, to be rewritten to a coarser level by [`cut`](crate::regions::cut).
    pub fn as_mut_slice(&mut self) -> &mut [u16] {
        &mut self.labels
    }
}
