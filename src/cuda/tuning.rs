// SPDX-License-Identifier: MPL-2.0
//! Block and tile sizes, read from kernels/tuning.h when the crate is compiled, so that each is defined once.

const HEADER: &[u8] = include_bytes!("../../kernels/tuning.h");

const fn value(name: &str) -> u32 {
    defined(HEADER, name)
}

/// Value of `#define name` in a header; a missing one does not compile.
pub(super) const fn defined(header: &[u8], name: &str) -> u32 {
    let define = b"#define ";
    let name = name.as_bytes();
    let mut at = 0;
    while at + define.len() + name.len() < header.len() {
        let mut i = 0;
        while i < define.len() && header[at + i] == define[i] {
            i += 1;
        }
        let mut j = 0;
        while i == define.len() && j < name.len() && header[at + i + j] == name[j] {
            j += 1;
        }
        let mut digit = at + i + j + 1;
        if i == define.len() && j == name.len() && header[digit - 1] == b' ' {
            let mut number = 0;
            while header[digit].is_ascii_digit() {
                number = 10 * number + (header[digit] - b'0') as u32;
                digit += 1;
            }
            return number;
        }
        at += 1;
    }
    panic!("the header does not define this name")
}

pub(crate) const INGEST_THREADS: u32 = value("INGEST_THREADS");
pub(crate) const GRAY_THREADS: u32 = value("GRAY_THREADS");
pub(crate) const ROUND_TILE: (u32, u32) = (value("ROUND_TILE_W"), value("ROUND_TILE_H"));
pub(crate) const ROUND_THREADS: u32 = value("ROUND_THREADS");
pub(crate) const TILE: u32 = value("TILE");
pub(crate) const TILE_THREADS: u32 = value("TILE_THREADS");
pub(crate) const LABEL_THREADS: u32 = value("LABEL_THREADS");
pub(crate) const LABEL_THREADS_SMALL: u32 = value("LABEL_THREADS_SMALL");
pub(crate) const SMALL_TILES: u32 = value("SMALL_TILES");
pub(crate) const RECIPROCAL_BITS: u32 = value("RECIPROCAL_BITS");
pub(crate) const DENSITY_TILE_H: u32 = value("DENSITY_TILE_H");
pub(crate) const DENSITY_THREADS: u32 = value("DENSITY_THREADS");
pub(crate) const DENSITY_CELLS: u32 = value("DENSITY_CELLS");
pub(crate) const DENSITY_CELLS_SMALL: u32 = value("DENSITY_CELLS_SMALL");
pub(crate) const LINK_THREADS: u32 = value("LINK_THREADS");
pub(crate) const FLATTEN_THREADS: u32 = value("FLATTEN_THREADS");
pub(crate) const FLATTEN_COUNTER: u32 = value("FLATTEN_COUNTER");
pub(crate) const FLATTEN_PASSES: u32 = value("FLATTEN_PASSES");
pub(crate) const BORDER_THREADS: u32 = value("BORDER_THREADS");
pub(crate) const CONNECT_THREADS: u32 = value("CONNECT_THREADS");
pub(crate) const LIKE_REGION: u32 = value("LIKE_REGION");
pub(crate) const MERGE_THREADS: u32 = value("MERGE_THREADS");
pub(crate) const REFINE_THREADS: u32 = value("REFINE_THREADS");
pub(crate) const HIERARCHY_THREADS: u32 = value("HIERARCHY_THREADS");
pub(crate) const HIERARCHY_THREADS_NARROW: u32 = value("HIERARCHY_THREADS_NARROW");
pub(crate) const LAST_REGIONS: u32 = value("LAST_REGIONS");
pub(crate) const LAST_THREADS: u32 = value("LAST_THREADS");
pub(crate) const LAST_THREADS_NARROW: u32 = value("LAST_THREADS_NARROW");
pub(crate) const NUMBER_THREADS: u32 = value("NUMBER_THREADS");
pub(crate) const MARK_GROUPS: u32 = value("MARK_GROUPS");
pub(crate) const LATE_CAPACITY: u32 = value("LATE_CAPACITY");
pub(crate) const LATE_SELECTOR_CAPACITY: u32 = value("LATE_SELECTOR_CAPACITY");
pub(crate) const MASK_THREADS: u32 = value("MASK_THREADS");
pub(crate) const TABLE_THREADS: u32 = value("TABLE_THREADS");
pub(crate) const PALETTE_THREADS: u32 = value("PALETTE_THREADS");
pub(crate) const MEAN_THREADS: u32 = value("MEAN_THREADS");
pub(crate) const TEMPORAL_THREADS: u32 = value("TEMPORAL_THREADS");
pub(crate) const CLAIM_THREADS: u32 = value("CLAIM_THREADS");
pub(crate) const SHIFT_THREADS: u32 = value("SHIFT_THREADS");
pub(crate) const TRACK_THREADS: u32 = value("TRACK_THREADS");
pub(crate) const TRACK_POINTS: u32 = value("TRACK_POINTS");
pub(crate) const IDENTIFY_THREADS: u32 = value("IDENTIFY_THREADS");
pub(crate) const MATCH_BLOCKS: u32 = value("MATCH_BLOCKS");
pub(crate) const NEIGHBOR_THREADS: u32 = value("NEIGHBOR_THREADS");
pub(crate) const LISTED_FRAMES: u32 = value("LISTED_FRAMES");
pub(crate) const EXPORT_THREADS: u32 = value("EXPORT_THREADS");
pub(crate) const SAMPLE_U8: u32 = value("SAMPLE_U8");
pub(crate) const SAMPLE_U16: u32 = value("SAMPLE_U16");
pub(crate) const SAMPLE_I16: u32 = value("SAMPLE_I16");
pub(crate) const SAMPLE_I32: u32 = value("SAMPLE_I32");
pub(crate) const SAMPLE_I64: u32 = value("SAMPLE_I64");
pub(crate) const SAMPLE_F32: u32 = value("SAMPLE_F32");

// The kernels divide these without remainder.
const _: () =
    assert!(TILE == 32 && TILE_THREADS * 4 == TILE * TILE && TILE.is_multiple_of(4 * (LABEL_THREADS / 32)));
const _: () = assert!(ROUND_TILE.0 == 32 && (ROUND_TILE.0 * ROUND_TILE.1).is_multiple_of(ROUND_THREADS));
const _: () =
    assert!(DENSITY_TILE_H.is_multiple_of(DENSITY_THREADS / 32) && DENSITY_CELLS > DENSITY_CELLS_SMALL);
const _: () = assert!(MARK_GROUPS.is_multiple_of(4 * NUMBER_THREADS));
const _: () = assert!(NUMBER_THREADS == 1024 && CONNECT_THREADS > 0 && INGEST_THREADS > 0);
