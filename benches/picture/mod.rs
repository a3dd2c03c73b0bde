// SPDX-License-Identifier: MPL-2.0
//! A picture for measurements where no photograph is given: smooth shading, areas with edges, texture and grain, so
//! that regions have natural shapes. The same bytes on every machine.
// Each program uses its part.
#![allow(dead_code)]

/// Frame sizes, and the hash of each one's label map with default parameters. Where it may change: `tests/library/hashes.rs`.
pub const KNOWN: [(u32, u32, u64); 2] = [(640, 480, 0xf552c2a3f1b028eb), (1920, 1080, 0xeb49ba5f9355fbc7)];

/// Octaves of the shading, as cells across the longer side and amplitude in code values.
const SHADING: [(u32, i64); 4] = [(3, 60), (9, 40), (27, 24), (81, 12)];
/// Areas with edges, as cells across the longer side.
const AREAS: u32 = 14;
/// Offset of an area's color in code values, at most.
const CONTRAST: i64 = 70;
/// Grain in code values, at most.
const GRAIN: i64 = 4;
/// One, in the fixed point of positions.
const ONE: i64 = 1 << 16;

/// A number without pattern from a place and a purpose. Source: the finalizer of SplitMix64.
fn random(x: i64, y: i64, purpose: u64) -> u64 {
    let mut z = (x as u64)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add((y as u64).wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(purpose.wrapping_mul(0x8cb9_2ba7_2f3d_8dd7));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// From -`range` to `range`.
fn spread(x: i64, y: i64, purpose: u64, range: i64) -> i64 {
    (random(x, y, purpose) % (2 * range as u64 + 1)) as i64 - range
}

/// Value noise: a random number at each corner of a cell, smooth between.
fn shade(x: i64, y: i64, cell: i64, purpose: u64, amplitude: i64) -> i64 {
    let (cx, cy) = (x.div_euclid(cell), y.div_euclid(cell));
    let smooth = |t: i64| {
        let t = t * ONE / cell;
        t * t / ONE * (3 * ONE - 2 * t) / ONE
    };
    let (tx, ty) = (smooth(x.rem_euclid(cell)), smooth(y.rem_euclid(cell)));
    let corner = |dx: i64, dy: i64| spread(cx + dx, cy + dy, purpose, amplitude);
    let top = corner(0, 0) * (ONE - tx) + corner(1, 0) * tx;
    let bottom = corner(0, 1) * (ONE - tx) + corner(1, 1) * tx;
    (top / ONE * (ONE - ty) + bottom / ONE * ty) / ONE
}

/// The nearest of one random point in each cell: areas with straight edges.
fn area(x: i64, y: i64, cell: i64) -> (i64, i64) {
    let (cx, cy) = (x.div_euclid(cell), y.div_euclid(cell));
    let mut best = (i64::MAX, (0, 0));
    for ay in cy - 1..=cy + 1 {
        for ax in cx - 1..=cx + 1 {
            let px = ax * cell + (random(ax, ay, 100) % cell as u64) as i64;
            let py = ay * cell + (random(ax, ay, 101) % cell as u64) as i64;
            let distance = (px - x).pow(2) + (py - y).pow(2);
            if distance < best.0 {
                best = (distance, (ax, ay));
            }
        }
    }
    best.1
}

/// The area that a pixel is in. Wavy edges: the place is shifted before the area is looked up.
fn area_of(x: i64, y: i64, side: i64) -> (i64, i64) {
    let cell = (side / i64::from(AREAS)).max(2);
    let wave = (side / 40).max(2);
    let (dx, dy) = (shade(x, y, wave, 110, wave / 3), shade(x, y, wave, 111, wave / 3));
    area(x + dx, y + dy, cell)
}

/// The areas of the picture: equal where two pixels are of one.
pub fn areas(width: u32, height: u32) -> Vec<(i64, i64)> {
    let side = i64::from(width.max(height));
    let row = |y: i64| (0..i64::from(width)).map(move |x| area_of(x, y, side));
    (0..i64::from(height)).flat_map(row).collect()
}

/// Draws the picture.
///
/// Shapes: `[height][width]` x R, G, B, 255.
pub fn rgba(width: u32, height: u32) -> Vec<u8> {
    let side = i64::from(width.max(height));
    let mut out = Vec::with_capacity(width as usize * height as usize * 4);
    for y in 0..i64::from(height) {
        for x in 0..i64::from(width) {
            let (ax, ay) = area_of(x, y, side);
            for channel in 0..3 {
                let mut value = 128 + spread(ax, ay, 10 + channel, CONTRAST);
                for (octave, (cells, amplitude)) in SHADING.into_iter().enumerate() {
                    // Shading is mostly gray, as light is.
                    let purpose = 20 + octave as u64;
                    let cell = (side / i64::from(cells)).max(2);
                    value += shade(x, y, cell, purpose, amplitude * 3 / 4);
                    value += shade(x, y, cell, purpose + 10 * (channel + 1), amplitude / 4);
                }
                value += spread(x, y, 90 + channel, GRAIN);
                out.push(value.clamp(0, 255) as u8);
            }
            out.push(255);
        }
    }
    out
}

/// A number that tells label maps apart.
pub fn hash(labels: &[u16]) -> u64 {
    labels.iter().fold(HASH_START, |hash, label| hash_bytes(hash, &label.to_le_bytes()))
}

/// The hash of nothing, for [`hash_bytes`].
pub const HASH_START: u64 = 0xcbf2_9ce4_8422_2325;

/// Goes on with a hash. Source: FNV-1a.
pub fn hash_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
