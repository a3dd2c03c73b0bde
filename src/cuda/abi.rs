// SPDX-License-Identifier: MPL-2.0
//! What crosses between the host and kernels: addresses, every struct, and where counters stand.
//!
//! kernels/abi.cuh has the same structs and says what they mean. Below each it lists where the fields are; both compilers check
//! that list, so that a field that moves on one side only does not compile. Records of the metadata are described in `regions`;
//! kernels/records.cuh is generated from there.

use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;

use bytemuck::{Pod, Zeroable};

use super::launch::Argument;
use super::tuning;
use crate::color::ColorTables;
use crate::grid::Grid;
use crate::record::Layout;
use crate::regions::{MergeStep, Motion, RECORDS};

/// Address of items in device memory, or null.
#[repr(transparent)]
pub(crate) struct Address<T>(u64, PhantomData<fn() -> T>);

impl<T> Address<T> {
    pub const NULL: Self = Self(0, PhantomData);

    /// An address that the driver or the owner of a frame has given.
    pub fn new(raw: u64) -> Self {
        Self(raw, PhantomData)
    }

    /// As the driver takes it.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// That of the item so many further on.
    pub fn item(self, index: usize) -> Self {
        self.byte(index * size_of::<T>()).cast()
    }

    /// That of the byte so many further on.
    pub fn byte(self, offset: usize) -> Address<u8> {
        Address::new(self.0 + offset as u64)
    }

    /// The same place for items of another kind: only where memory holds what a plan decides.
    pub fn cast<U>(self) -> Address<U> {
        Address::new(self.0)
    }
}

// Derived, these would ask the same of `T`.
impl<T> Clone for Address<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Address<T> {}
impl<T> fmt::Debug for Address<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

// SAFETY: transparent over a u64, and a pointer of a kernel has 64 bits: build.py makes 64-bit code only.
unsafe impl<T> Argument for Address<T> {}

const HEADER: &[u8] = include_bytes!("../../kernels/abi.cuh");
const RECORDS_HEADER: &[u8] = include_bytes!("../../kernels/records.cuh");

/// The end of `part` in `text`, if it stands at `at`.
const fn past(text: &[u8], at: usize, part: &[u8]) -> Option<usize> {
    let mut i = 0;
    while i < part.len() {
        if at + i >= text.len() || text[at + i] != part[i] {
            return None;
        }
        i += 1;
    }
    Some(at + part.len())
}

/// The end of a line `kind(name, field, number);`, if it stands at `at`; without a field, of `kind(name, number);`.
const fn past_line(
    text: &[u8],
    at: usize,
    kind: &str,
    name: &str,
    field: &str,
    number: usize,
) -> Option<usize> {
    let Some(at) = past(text, at, kind.as_bytes()) else { return None };
    let Some(at) = past(text, at, b"(") else { return None };
    let Some(at) = past(text, at, name.as_bytes()) else { return None };
    let Some(mut at) = past(text, at, b", ") else { return None };
    if !field.is_empty() {
        let Some(end) = past(text, at, field.as_bytes()) else { return None };
        let Some(end) = past(text, end, b", ") else { return None };
        at = end;
    }
    let (mut there, start) = (0, at);
    while at < text.len() && text[at].is_ascii_digit() {
        there = 10 * there + (text[at] - b'0') as usize;
        at += 1;
    }
    if at == start || there != number {
        return None;
    }
    past(text, at, b");\n")
}

/// Whether the header's list of a struct is of these fields, in their order and at these offsets, and of this size.
const fn agrees(header: &[u8], name: &str, fields: &[(&str, usize)], size: usize) -> bool {
    let mut start = 0;
    while start < header.len() {
        // The list begins with the first field's line.
        if header[start] == b'A'
            && let Some(mut at) = past_line(header, start, "ABI", name, fields[0].0, fields[0].1)
        {
            let mut i = 1;
            while i < fields.len() {
                let Some(next) = past_line(header, at, "ABI", name, fields[i].0, fields[i].1) else {
                    return false;
                };
                at = next;
                i += 1;
            }
            return past_line(header, at, "ABI_SIZE", name, "", size).is_some();
        }
        start += 1;
    }
    false
}

/// The number that the header's `#define name` gives.
const fn number(name: &str) -> usize {
    tuning::defined(HEADER, name) as usize
}

/// Does not compile unless kernels/abi.cuh has these fields of a struct where they are here.
macro_rules! check {
    ($name:ident { $($field:ident),* }) => {
        const _: () = assert!(
            agrees(
                HEADER,
                stringify!($name),
                &[$((stringify!($field), offset_of!($name, $field))),*],
                size_of::<$name>()
            ),
            concat!("kernels/abi.cuh has other fields of ", stringify!($name))
        );
    };
}

/// Structs that are passed to kernels by value.
macro_rules! arguments {
    ($(struct $name:ident $(: $base:ident)? { $($field:ident: $kind:ty,)* })*) => {$(
        #[derive(Debug, Clone, Copy)]
        #[repr(C)]
        pub(crate) struct $name {
            // The base of the kernels' struct.
            $(pub grid: $base,)?
            $(pub $field: $kind,)*
        }
        $(const _: () = assert!(offset_of!($name, grid) == 0 && size_of::<$base>() > 0);)?
        check!($name { $($field),* });
        // SAFETY: repr(C), and `check` has compared every offset and the size with the kernels' struct of this name.
        unsafe impl Argument for $name {}
    )*};
}

/// Structs in device memory. Few are ever made by the host: it takes memory for them.
macro_rules! records {
    ($(struct $name:ident { $($field:ident: $kind:ty,)* })*) => {$(
        #[allow(dead_code)]
        #[derive(Debug, Clone, Copy, Pod, Zeroable)]
        #[repr(C)]
        pub(crate) struct $name {
            $(pub $field: $kind,)*
        }
        check!($name { $($field),* });
    )*};
}

arguments! {
    struct Batch {
        planes: Address<FramePlanes>,
        distance: u32,
        some: u32,
    }

    struct PlaneList {
        frames: [FramePlanes; tuning::LISTED_FRAMES as usize],
    }

    struct FrameArgs {
        plane: [Address<u8>; 3],
        stride: [u32; 3],
        width: u32,
        height: u32,
        layout: u32,
        bytes: u32,
        offset: [u32; 3],
        luma_offset: i32,
        to_rgb: [i32; 5],
        to_yuv: [i32; 9],
        neutral: i32,
        step: [u32; 3],
        shift: [u32; 3],
        word: u32,
        family: u32,
        shared: [u32; 2],
        big_endian: u32,
        unused: u32,
    }

    struct SpaceArgs {
        space: u32,
        matrix: [i32; 9],
    }

    struct IngestArgs {
        space: SpaceArgs,
        sample_shift: u32,
        sample_width: u32,
        clear_words: u32,
    }

    struct DrawArgs {
        label_stride: u32,
        fill: u32,
        width: u32,
        alpha: u32,
        color: [u32; 3],
    }

    struct GridArgs {
        width: u32,
        height: u32,
        step: u32,
        nx: u32,
        ny: u32,
        step_inverse: u32,
        sample_step: u32,
        sample_width: u32,
        sample_height: u32,
        identity: u32,
    }

    struct SlicArgs: GridArgs {
        color_shift: u32,
        initial: u32,
        position_weight: u32,
        unused: u32,
        seeds: Address<u32>,
    }

    struct SlicTemporal {
        sums: [Address<SlicSums>; 3],
        centers: [Address<SlicCenter>; 2],
        carried_last: Address<SlicCenter>,
        carried: Address<SlicCenter>,
        scale: [i64; 2],
    }

    struct LscArgs: GridArgs {
        position_weight: f32,
        unused: u32,
        seeds: Address<u32>,
    }

    struct LscTemporal {
        sums: [Address<LscSums>; 3],
        state: [Address<LscSums>; 2],
        carried_last: Address<LscSums>,
        carried: Address<LscSums>,
        turn: Address<u32>,
        square: f32,
        unused: u32,
    }

    struct QuickShiftArgs {
        width: u32,
        height: u32,
        radius: i32,
        rows: i32,
        color: f32,
        span: f32,
        bias: f32,
        unit: f32,
        color_sq: f32,
        tau_sq: f32,
        offsets: u32,
        reach: i32,
    }

    struct Components {
        local: Address<u16>,
        tile_first: Address<u32>,
        tile_count: Address<u32>,
        parent: Address<u32>,
        cluster: Address<u32>,
        sums: Address<ComponentSums>,
        edges: Address<[u32; 2]>,
        counters: Address<u32>,
        prior: Address<u32>,
        large: u32,
        unused: u32,
    }

    struct ConnectArgs {
        width: u32,
        height: u32,
        tiles_x: u32,
        min_region: u32,
        max_regions: u32,
        connectivity: u32,
        border_pairs: u32,
        words: u32,
        group_bits: u32,
        small_capacity: u32,
        inverse_width: f32,
        fits_later: u32,
    }

    struct Selections {
        at: Address<u64>,
    }

    struct Late {
        pairs: Address<[u32; 2]>,
        selectors: Address<[u32; 2]>,
    }

    struct Marks {
        groups: Address<u32>,
    }

    struct MergeArgs {
        ratio: u32,
        limit: u32,
        mutual: u32,
        price: u32,
    }

    struct Merging {
        parent: Address<u32>,
        sums: Address<ComponentSums>,
        mean: Address<u64>,
        nearest: Address<u32>,
        number: Address<u32>,
        count: Address<u32>,
    }

    struct RefineArgs {
        width: u32,
        height: u32,
        straight: u32,
        diagonal: u32,
    }

    struct AbstractionArgs {
        label_stride: u32,
        radius: u32,
        sample_step: u32,
        shading: u32,
        fraction: u32,
        steepest: i32,
        deviation: u32,
        keeps_corners: u32,
        ink: u32,
        ink_alpha: u32,
        ink_color: [u32; 3],
        words: u32,
        weights: [[u32; 9]; 4],
    }

    struct Moments {
        x: u64,
        y: u64,
        xx: u64,
        xy: u64,
        yy: u64,
        code: [u64; 3],
        x_code: [u64; 3],
        y_code: [u64; 3],
        low_gap: [u32; 3],
        high: [u32; 3],
        samples: u32,
        sides: u32,
    }

    struct Paint {
        base: [i32; 3],
        slope_x: [i32; 3],
        slope_y: [i32; 3],
        low: [u16; 3],
        high: [u16; 3],
        middle: [u16; 2],
        boost: [u16; 2],
        feature: u32,
        age: u32,
    }

    struct SteadyArgs {
        last: Address<Paint>,
        keys: Address<u32>,
        values: Address<u32>,
        next_keys: Address<u32>,
        next_values: Address<u32>,
        cells: Address<u16>,
        next_cells: Address<u16>,
        earlier: Address<u32>,
        matched: Address<u32>,
        continues: Address<u32>,
        seen: Address<u64>,
        calm: Address<u64>,
        drawn: Address<u64>,
        mask: u32,
        columns: u32,
        rows: u32,
        share: u32,
        follows: u32,
        is_same: u32,
        least_share: u32,
        still_columns: u32,
        still_rows: u32,
        fraction: u32,
    }

    struct PaletteArgs {
        colors: Address<u64>,
        features: Address<u32>,
        count: Address<u32>,
        region_features: Address<u32>,
        differences: Address<u32>,
        last: Address<u32>,
        chosen: Address<u32>,
        size: u32,
        step: u32,
        follows: u32,
        unused: u32,
    }

    struct HierarchyArgs {
        width: u32,
        height: u32,
        regions: u32,
        planar: u32,
        max_pairs: u32,
        least: u32,
        contrast: u64,
        position: u64,
        position_shift: u32,
        until: u32,
        joins_areas: u32,
        crosses: u32,
        price: u32,
        unused: u32,
    }

    struct Hierarchy {
        sums: Address<HierarchySums>,
        joins: Address<HierarchyJoin>,
        selected: [Address<u64>; 2],
        heights: Address<u32>,
        keys: [Address<u32>; 2],
        lengths: [Address<u32>; 2],
        held: [Address<u32>; 2],
        contrasts: [Address<u64>; 2],
        earlier: Address<u32>,
        roots: Address<u32>,
        lowest: Address<u32>,
        heads: Address<u32>,
        numbers: Address<u32>,
        areas: Address<u32>,
        counts: Address<u32>,
        prior: Address<u32>,
        across_keys: Address<u32>,
        across_lengths: Address<u32>,
        across_contrasts: Address<u64>,
    }

    struct MergeList {
        keys: Address<u64>,
        steps: Address<MergeStep>,
        count: Address<u32>,
    }

    struct MeasureArgs {
        label_stride: u32,
        measure: u32,
        components_hold: u32,
        refined: u32,
    }

    struct NeighborArgs {
        width: u32,
        height: u32,
        label_stride: u32,
        slots: u32,
    }

    struct TemporalArgs {
        square_log: u32,
        thumbnail: [u32; 2],
        reach: [u32; 2],
        inertia: u32,
        sure: u32,
        samples: u32,
        track_step: u32,
        track_points: u32,
        tiles_x: u32,
        max_regions: u32,
        pair_mask: u32,
        in_slots: u32,
        connectivity: u32,
        unlike: [u32; 2],
        in_regions: u32,
        name_blocks: u32,
        flat_px: u32,
        flat_most: u32,
        parts: u32,
        cells: u32,
        min_region: u32,
    }

    struct Continued {
        largest: Address<u64>,
        least_kept: Address<u32>,
        state: Address<TemporalState>,
        cells: u32,
        follows: u32,
    }

    struct Temporal {
        state: Address<TemporalState>,
        slots_last: Address<Slot>,
        slots: Address<Slot>,
        sources: Address<Source>,
        moves: Address<[i32; 2]>,
        claims: Address<u64>,
        wanted: Address<u32>,
        cells: Address<u32>,
        labels: Address<u16>,
        features_last: Address<u32>,
        features: Address<u32>,
        thumbnail_last: Address<u16>,
        thumbnail: Address<u16>,
        differences: Address<u64>,
        largest: Address<u64>,
        largest_label: Address<u32>,
        positions: Address<[i32; 2]>,
        owners: Address<u64>,
        tracks_last: Address<Track>,
        tracks: Address<Track>,
        motion: Address<Motion>,
        sums: Address<u64>,
        reseed_claims: Address<u64>,
        reseed_wanted: Address<u32>,
        best: Address<u64>,
        taken: Address<u32>,
        new_tracks: Address<u32>,
        from: Address<u32>,
        pairs: Address<[u32; 2]>,
        pair_list: Address<u32>,
        part_claims: Address<u64>,
        part_clusters: Address<u32>,
        least_kept: Address<u32>,
    }

    struct Forest {
        parent: Address<u32>,
        number: Address<u32>,
        count: Address<u32>,
    }

    struct Merged {
        numbers_last: Address<u32>,
        numbers: Address<u32>,
        tracks_last: Address<Track>,
        tracks: Address<Track>,
        totals: Address<u64>,
        next_id: Address<u32>,
    }
}

records! {
    struct FramePlanes {
        plane: [u64; 3],
        mask: u64,
        prior: u64,
        absent: u64,
    }

    struct SlicSums {
        value: [u32; 8],
    }

    struct SlicCenter {
        value: [i32; 8],
    }

    struct LscSums {
        value: [u32; 12],
    }

    struct LscMean {
        color: [i32; 6],
        weights: [f32; 6],
    }

    struct LscMeans {
        total: [u64; 6],
        mean: LscMean,
        ticket: u32,
        unused: [u32; 11],
    }

    struct QuickShiftOffset {
        length_sq: f32,
        step: i32,
        dx: i32,
        dy: i32,
    }

    struct HierarchySums {
        count: u32,
        unused: u32,
        color: [u64; 3],
        position: [u64; 2],
    }

    struct HierarchyJoin {
        into: u32,
        height: u32,
        round: u32,
        root: u32,
    }

    struct ComponentSums {
        count: u32,
        key: u32,
        color: [u64; 3],
    }

    struct RegionSums {
        x: u64,
        y: u64,
        color: [u64; 3],
        samples: [u64; 3],
        area: u32,
        x0: u32,
        y0: u32,
        x1: u32,
        y1: u32,
        unused: [u32; 3],
    }

    struct Track {
        id: u32,
        age: u32,
        velocity: [i32; 2],
    }

    struct Slot {
        position: [i32; 2],
        velocity: [i32; 2],
        id: u32,
        size: u32,
        region: u32,
        reseeded: u32,
        color: [u32; 3],
        unused: u32,
    }

    struct Source {
        slot: u32,
        shift: [i32; 2],
        released: u32,
    }

    struct TemporalState {
        residual_last: u64,
        residual_first: u64,
        residual: u64,
        offset: [u64; 2],
        shift: [i32; 2],
        along: [i32; 2],
        unlike: u32,
        next_id: u32,
        regions: u32,
        pairs: u32,
        tickets: [u32; 3],
        eighth: u32,
        inside: u32,
        barrier: [u32; 2],
        still: u32,
        owners: u32,
        unused: u32,
    }
}

impl Continued {
    /// No frame goes on from another.
    pub const NONE: Self = Self {
        largest: Address::NULL,
        least_kept: Address::NULL,
        state: Address::NULL,
        cells: 0,
        follows: 0,
    };
}

/// Whether kernels/records.cuh has these fields of a record where they are here.
const fn is_in_header(layout: &Layout) -> bool {
    // More than a record has; else this does not compile.
    let mut positions = [("", 0); 32];
    let mut i = 0;
    while i < layout.fields.len() {
        positions[i] = (layout.fields[i].name, layout.fields[i].offset);
        i += 1;
    }
    agrees(RECORDS_HEADER, layout.name, positions.split_at(i).0, layout.bytes)
}

// Kernels write records of the metadata as they go out.
const _: () = {
    let mut i = 0;
    while i < RECORDS.len() {
        assert!(
            is_in_header(RECORDS[i]),
            "kernels/records.cuh is old: SUPERPIXEL_WRITE=1 cargo test --no-default-features --test texts records"
        );
        i += 1;
    }
};

impl GridArgs {
    /// What kernels need to know of a grid.
    pub fn new(grid: &Grid) -> Self {
        let (step, geometry) = (grid.sample_step(), grid.geometry());
        Self {
            width: geometry.width,
            height: geometry.height,
            step: grid.step(),
            nx: grid.nx(),
            ny: grid.ny(),
            // Not used where the step is 1.
            step_inverse: (1u64 << 32).div_ceil(u64::from(grid.step())) as u32,
            sample_step: step,
            sample_width: geometry.width.div_ceil(step),
            sample_height: geometry.height.div_ceil(step),
            identity: u32::from(grid.step() == 1),
        }
    }
}

impl SpaceArgs {
    /// What kernels need to know of a color space.
    pub fn new(tables: &ColorTables) -> Self {
        let (space, matrix) = tables.device_space();
        Self { space, matrix: std::array::from_fn(|i| matrix[i / 3][i % 3]) }
    }
}

/// Bytes of shared memory for each cluster in reach of a tile.
pub(crate) const SLIC_REACH_BYTES: usize = number("SLIC_REACH_BYTES");
pub(crate) const LSC_REACH_BYTES: usize = number("LSC_REACH_BYTES");

/// Counters that a frame starts with as zero, the last five quick shift's and that of masks; then come the two of the grid's barrier.
pub(crate) const FRAME_COUNTERS: usize = number("FRAME_COUNTERS");
/// Of a frame with a prior, the first of two that count what areas have not cut yet.
pub(crate) const COUNTER_BEFORE_PRIOR: usize = number("COUNTER_BEFORE_PRIOR");
/// Where the number of regions stands.
pub(crate) const COUNTER_REGIONS: usize = number("COUNTER_REGIONS");

// Those of quick shift's passes are among them.
const _: () = assert!((tuning::FLATTEN_COUNTER + tuning::FLATTEN_PASSES) as usize <= FRAME_COUNTERS);

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[(&str, usize)] = &[("parent", 0), ("number", 8), ("count", 16)];

    #[test]
    fn a_field_that_moves_on_one_side_is_found() {
        let header = std::str::from_utf8(HEADER).unwrap();
        let agrees = |header: &str, fields| agrees(header.as_bytes(), "Forest", fields, 24);
        assert!(agrees(header, FIELDS));
        // Here: two that change places, one that is new, one that goes.
        assert!(!agrees(header, &[("number", 0), ("parent", 8), ("count", 16)]));
        assert!(!agrees(header, &[("parent", 0), ("number", 8), ("count", 16), ("more", 20)]));
        assert!(!agrees(header, &FIELDS[..2]));
        // There, with what their compiler then asks for.
        let lines = "ABI(Forest, parent, 0);\nABI(Forest, number, 8);\n";
        assert!(header.contains(lines));
        let swapped = header.replace(lines, "ABI(Forest, number, 0);\nABI(Forest, parent, 8);\n");
        assert!(!agrees(&swapped, FIELDS));
        let moved = header.replace("ABI(Forest, count, 16)", "ABI(Forest, count, 24)");
        assert!(!agrees(&moved, FIELDS));
        let grown = header.replace("ABI_SIZE(Forest, 24)", "ABI_SIZE(Forest, 32)");
        assert!(!agrees(&grown, FIELDS));
        let more = header.replace("ABI_SIZE(Forest", "ABI(Forest, more, 24);\nABI_SIZE(Forest");
        assert!(!agrees(&more, FIELDS));
    }

    /// Every struct of the headers has its lines, all of its fields.
    #[test]
    fn every_field_of_the_kernels_is_listed() {
        let header = &[HEADER, RECORDS_HEADER].map(|header| std::str::from_utf8(header).unwrap()).concat();
        let mut structs = 0;
        for part in header.split("\nstruct ").skip(1) {
            let (head, rest) = part.split_once(" {\n").unwrap();
            let name = head.split(" : ").next().unwrap().split(' ').next_back().unwrap();
            let body = rest.split_once("};").unwrap().0;
            let code: String = body.lines().map(|line| line.split("//").next().unwrap()).collect();
            let mut fields: Vec<String> = code
                .split([';', ','])
                .map(|field| field.split('[').next().unwrap().trim())
                .filter_map(|field| field.rsplit([' ', '*']).next().map(String::from))
                .collect();
            fields.retain(|field| !field.is_empty());
            if name == "MeanColor" {
                continue;
            }
            for field in &fields {
                assert!(header.contains(&format!("\nABI({name}, {field}, ")), "{name}::{field}");
            }
            structs += 1;
        }
        assert_eq!(structs, header.matches("\nABI_SIZE(").count());
    }
}
