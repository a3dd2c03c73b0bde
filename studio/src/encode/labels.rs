// SPDX-License-Identifier: MPL-2.0
//! Lossless compression of a label map, row by row against the row above.
//!
//! A row is a list of pairs until its width is full: how many pixels equal those above them, then how many pixels after these
//! have one other label, and that label. All three are numbers of 7 bits a byte, the lowest first, the highest bit set where
//! more follow. The second number is 0, and has no label, where the row ends with copies; a label is written as its
//! difference to the last one written in this row, or to 0, folded: 0, -1, 1, -2, ... The row above the first is all 0.
//! The page has the decoder, `page/labels.js`.

use gstsuperpixel::meta::LabelMap;

/// Compresses a map.
pub fn encode(map: &LabelMap) -> Vec<u8> {
    let width = map.width() as usize;
    let mut out = Vec::with_capacity(map.as_slice().len() / 8 + 64);
    let zeros = vec![0; width];
    let mut above = zeros.as_slice();
    for row in map.rows() {
        encode_row(row, above, &mut out);
        above = row;
    }
    out
}

fn encode_row(row: &[u16], above: &[u16], out: &mut Vec<u8>) {
    let (mut x, mut last) = (0, 0i32);
    while x < row.len() {
        let copied = row[x..].iter().zip(&above[x..]).take_while(|(here, above)| here == above).count();
        x += copied;
        number(copied as u32, out);
        let Some(&label) = row.get(x) else {
            out.push(0);
            return;
        };
        // Up to where another label begins, or where copies are cheaper again.
        let other = row[x..].iter().zip(&above[x..]);
        let run = other.take_while(|&(here, above)| *here == label && *above != label).count();
        x += run;
        number(run as u32, out);
        let step = i32::from(label) - last;
        number(((step << 1) ^ (step >> 31)) as u32, out);
        last = i32::from(label);
    }
}

/// A number in 7 bits a byte.
fn number(mut value: u32, out: &mut Vec<u8>) {
    while value >= 128 {
        out.push(value as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The map again, of a width and height; `None` where the bytes are not a map of that size.
pub fn decode(bytes: &[u8], width: usize, height: usize) -> Option<Vec<u16>> {
    let mut bytes = bytes.iter();
    let mut next = || {
        let mut value = 0u32;
        for shift in (0..32).step_by(7) {
            let byte = *bytes.next()?;
            value |= u32::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    };
    let mut labels = vec![0u16; width * height];
    for y in 0..height {
        let (mut x, mut last) = (0, 0i32);
        while x < width {
            let copied = next()? as usize;
            let end = x.checked_add(copied).filter(|end| *end <= width)?;
            if y > 0 {
                labels.copy_within((y - 1) * width + x..(y - 1) * width + end, y * width + x);
            }
            x = end;
            let run = next()? as usize;
            if run > 0 {
                let folded = next()?;
                last += (folded >> 1) as i32 ^ -((folded & 1) as i32);
                let end = x.checked_add(run).filter(|end| *end <= width)?;
                labels[y * width + x..y * width + end].fill(u16::try_from(last).ok()?);
                x = end;
            }
        }
    }
    bytes.next().is_none().then_some(labels)
}
