// SPDX-License-Identifier: MPL-2.0
//! Masks as run lengths, as COCO has them: column by column, pixels outside and inside in turn, outside first.

/// Run lengths of a mask of `width` x `height` pixels. Only pixels within `bounds` (x0, y0, x1, y1, the latter two exclusive) can be
/// inside; of these those are for which `is_inside` holds, by their index row by row.
pub fn lengths(
    [width, height]: [usize; 2],
    bounds: [usize; 4],
    is_inside: impl Fn(usize) -> bool,
) -> Vec<u32> {
    let [x0, y0, x1, y1] = [bounds[0], bounds[1], bounds[2].min(width), bounds[3].min(height)];
    let (mut counts, mut was_inside, mut start) = (Vec::new(), false, 0);
    let mut change = |at: usize, now: bool| {
        if now != was_inside {
            // A frame has fewer pixels than 32 bits count.
            counts.push((at - start) as u32);
            (was_inside, start) = (now, at);
        }
    };
    for x in x0..x1 {
        for y in y0..y1 {
            change(x * height + y, is_inside(y * width + x));
        }
        if y0 > 0 || y1 < height {
            change(x * height + y1, false);
        }
    }
    change(x1.max(x0) * height, false);
    let rest = width * height - start;
    if rest > 0 || counts.is_empty() {
        counts.push(rest as u32);
    }
    counts
}

/// Counts in five bits a letter, from the third on as differences to the count two before. A letter is the last one of a number when
/// its highest bit tells the sign of what remains.
pub fn compressed(counts: &[u32]) -> String {
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
        let of = |labels: &[u16], size, bounds, label| lengths(size, bounds, |i| labels[i] == label);
        let whole = [0, 0, 2, 2];
        assert_eq!(of(&[0, 1, 0, 1], [2, 2], whole, 1), [2, 2]);
        assert_eq!(of(&[0, 1, 0, 1], [2, 2], whole, 0), [0, 2, 2]);
        assert_eq!(of(&[0, 1, 0, 1], [2, 2], whole, 9), [4]);
    }

    #[test]
    fn bounds_change_nothing_where_all_is_within() {
        // 1 in the rows 1 and 2 of the columns 1 to 3, but for one pixel.
        let size = [5, 4];
        let labels: Vec<u16> = (0..20)
            .map(|i| u16::from((1..3).contains(&(i / 5)) && (1..4).contains(&(i % 5)) && i != 12))
            .collect();
        let whole = lengths(size, [0, 0, 5, 4], |i| labels[i] == 1);
        assert_eq!(whole, [5, 2, 2, 1, 3, 2, 5]);
        for bounds in [[1, 1, 4, 3], [0, 1, 5, 3], [1, 0, 4, 4], [0, 0, 4, 3], [1, 1, 9, 9]] {
            assert_eq!(lengths(size, bounds, |i| labels[i] == 1), whole, "{bounds:?}");
        }
        assert_eq!(lengths(size, [0, 0, 1, 1], |i| labels[i] == 1), [20]);
        assert_eq!(lengths(size, [0, 0, 0, 0], |_| true), [20]);
        assert_eq!(lengths(size, [0, 0, 5, 4], |_| true), [0, 20]);
        assert_eq!(lengths(size, [3, 2, 5, 4], |_| true), [14, 2, 2, 2]);
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
