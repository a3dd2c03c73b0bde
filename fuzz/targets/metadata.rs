// SPDX-License-Identifier: MPL-2.0
//! The readers of the metadata, with fields and label buffers that lie, and the function that carries it into copies: no panic
//! and no access outside; what is read has the announced size.
#![no_main]

use arbitrary::{Result, Unstructured};
use gst::meta::CustomMeta;
use gstsuperpixel::meta::{NAME, SuperpixelMeta};
use libfuzzer_sys::fuzz_target;
use superpixel_fuzz::draw::rarely;
use superpixel_fuzz::stream;

/// Reads all that there is.
fn read(buffer: &gst::BufferRef) {
    let Some(meta) = SuperpixelMeta::from_buffer(buffer) else { return };
    let (width, height, regions) = (meta.width(), meta.height(), meta.regions() as usize);
    assert!(width > 0 && height > 0 && !meta.algo().contains('\0'));
    assert!(meta.label_buffer().size() <= 1 << 20);
    // Frames of 16384x16384 are real, but take more memory than there is bytes of input.
    if u64::from(width) * u64::from(height) <= 1 << 20
        && let Ok(labels) = meta.labels()
    {
        assert_eq!((labels.width(), labels.height()), (width, height));
        assert_eq!(labels.as_slice().len(), width as usize * height as usize);
        assert_eq!(labels.row(height as usize - 1).len(), width as usize);
        assert!(
            meta.label_buffer().size() >= 2 * width as usize * height as usize,
            "more labels than memory"
        );
    }
    if let Ok(table) = meta.table() {
        assert!(table.is_empty() || table.len() == regions);
    }
    if let Ok(motion) = meta.motion() {
        assert!(motion.is_empty() || motion.len() == regions);
    }
    let _ = meta.neighbors();
}

fn run(u: &mut Unstructured<'_>) -> Result<()> {
    let (width, height) = (u.int_in_range(1..=40)?, u.int_in_range(1..=24)?);
    let format = gst_video::VideoFormat::Rgb;
    let info = gst_video::VideoInfo::builder(format, width, height).build().expect("a small frame");
    let mut buffer = stream::bytes(u, info.size())?;
    let writable = buffer.get_mut().expect("a new buffer");
    let metas = if rarely(u, 8)? { 2 } else { 1 };
    for _ in 0..metas {
        stream::add_superpixel_meta(u, writable, width, height)?;
    }
    read(&buffer);
    let mut copy = gst::Buffer::new();
    let to = copy.get_mut().expect("a new buffer");
    if rarely(u, 4)? {
        stream::add_superpixel_meta(u, to, width, height)?;
    }
    match u.int_in_range(0..=2)? {
        0 => {
            let flags = gst::BufferCopyFlags::META | gst::BufferCopyFlags::FLAGS;
            let size = buffer.size();
            let start = if u.arbitrary()? { 0 } else { u.int_in_range(0..=size)? };
            let end = if u.arbitrary()? { size } else { u.int_in_range(start..=size)? };
            let copied = buffer.copy_into(to, flags, start..end).is_ok();
            let whole = start == 0 && end >= size;
            if copied
                && whole
                && metas == 1
                && let (Ok(from), Ok(to)) =
                    (CustomMeta::from_buffer(&buffer, NAME), CustomMeta::from_buffer(to, NAME))
            {
                assert!(stream::same_fields(from.structure(), to.structure()), "a copy says something else");
            }
        }
        1 => scale(u, &buffer, to, width, height)?,
        _ => {
            let size = buffer.size();
            let start = u.int_in_range(0..=size)?;
            if let Ok(part) = buffer.copy_region(gst::BufferCopyFlags::all(), start..) {
                assert!(
                    start == 0 || size == 0 || CustomMeta::from_buffer(&part, NAME).is_err(),
                    "a part has the whole's labels"
                );
                read(&part);
            }
        }
    }
    read(to);
    Ok(())
}

/// Carries the metadata over as a converter does.
fn scale(
    u: &mut Unstructured<'_>,
    from: &gst::BufferRef,
    to: &mut gst::BufferRef,
    width: u32,
    height: u32,
) -> Result<()> {
    let mut info = || -> Result<gst_video::VideoInfo> {
        let (w, h) =
            if u.arbitrary()? { (width, height) } else { (u.int_in_range(1..=50)?, u.int_in_range(1..=50)?) };
        let shape = gst::Fraction::new(u.int_in_range(1..=3)?, u.int_in_range(1..=3)?);
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, w, h).par(shape).build();
        Ok(info.expect("a small frame"))
    };
    let (before, after) = (info()?, info()?);
    let had = CustomMeta::from_buffer(to, NAME).is_ok();
    from.foreach_meta(|meta| {
        if meta.try_as_custom_meta().is_some() {
            let kind = gst_video::video_meta::VideoMetaTransformScale::new(&before, &after);
            let _ = meta.transform(to, &kind);
        }
        std::ops::ControlFlow::Continue(())
    });
    let same =
        (before.width(), before.height(), before.par()) == (after.width(), after.height(), after.par());
    assert!(had || same || CustomMeta::from_buffer(to, NAME).is_err(), "labels of another size");
    Ok(())
}

fuzz_target!(
    init: stream::init(),
    |data: &[u8]| {
        let _ = run(&mut Unstructured::new(data));
        assert_eq!(stream::live(), 0, "memories are left");
    }
);
