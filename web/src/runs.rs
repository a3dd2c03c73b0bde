// SPDX-License-Identifier: MPL-2.0
//! Masks of regions as run lengths, as COCO has them: column by column, pixels outside and inside in turn, outside first.

use js_sys::{Array, Object};
use wasm_bindgen::prelude::*;

use crate::errors::Result;
use crate::labels::Map;
use crate::tables::put;
use crate::values::whole;

/// The mask of one region: `size` is height and width, `counts` the text that COCO's tools read.
#[wasm_bindgen(skip_typescript)]
pub fn rle(map: &JsValue, label: &JsValue) -> Result<Object> {
    let map = Map::read(map)?;
    let label = whole("label", label, 0, u16::MAX.into())? as u16;
    let (width, height) = (map.geometry.width() as usize, map.geometry.height() as usize);
    let counts = runs(&map.labels, width, height, label);
    let object = Object::new();
    put(&object, "size", Array::of2(&map.geometry.height().into(), &map.geometry.width().into()))?;
    put(&object, "counts", compressed(&counts))?;
    Ok(object)
}

fn runs(labels: &[u16], width: usize, height: usize, label: u16) -> Vec<u32> {
    let (mut counts, mut is_inside, mut length) = (Vec::new(), false, 0);
    let column = |x| (0..height).map(move |y| labels[y * width + x] == label);
    for pixel in (0..width).flat_map(column) {
        if pixel != is_inside {
            counts.push(length);
            (is_inside, length) = (pixel, 0);
        }
        length += 1;
    }
    counts.push(length);
    counts
}

/// Counts in five bits a letter, from the third on as differences to the count two before. A letter is the last one of a number when
/// its highest bit tells the sign of what remains.
fn compressed(counts: &[u32]) -> String {
    let mut text = String::new();
    for (i, &count) in counts.iter().enumerate() {
        let before = if i > 2 { counts[i - 2] } else { 0 };
        let mut rest = i64::from(count) - i64::from(before);
        loop {
            let bits = (rest & 31) as u8;
            rest >>= 5;
            let is_last = rest == if bits & 16 == 0 { 0 } else { -1 };
            text.push(char::from(48 + (bits | if is_last { 0 } else { 32 })));
            if is_last {
                break;
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_go_down_columns_and_begin_outside() {
        assert_eq!(runs(&[0, 1, 0, 1], 2, 2, 1), [2, 2]);
        assert_eq!(runs(&[0, 1, 0, 1], 2, 2, 0), [0, 2, 2]);
        assert_eq!(runs(&[0, 1, 0, 1], 2, 2, 9), [4]);
    }

    #[test]
    fn counts_are_written_as_tools_of_coco_read_them() {
        /// As the definition reads them.
        fn read(text: &str) -> Vec<u32> {
            let (mut counts, mut number, mut bits) = (Vec::<i64>::new(), 0i64, 0);
            for letter in text.bytes().map(|letter| i64::from(letter) - 48) {
                number |= (letter & 31) << bits;
                bits += 5;
                if letter & 32 == 0 {
                    if letter & 16 != 0 {
                        number |= -1 << bits;
                    }
                    let before = if counts.len() > 2 { counts[counts.len() - 2] } else { 0 };
                    counts.push(number + before);
                    (number, bits) = (0, 0);
                }
            }
            counts.into_iter().map(|count| count as u32).collect()
        }
        for counts in [&[0, 3, 3][..], &[15, 16, 31, 32, 1000, 7, 268_435_456], &[4], &[1, 1, 1, 1, 500, 2]] {
            assert_eq!(read(&compressed(counts)), counts);
        }
    }
}
