// SPDX-License-Identifier: MPL-2.0
//! Colors of a stream on the CUDA backend are those that `videoconvert` makes of it.

use gstsuperpixel::image::PixelFormat;

use crate::colors::{CODES, SQUARE, all_right, fault, ranges_and_matrices};
use crate::device;

#[test]
fn the_cuda_backend_reads_colors_as_videoconvert_does() {
    if device::device("the_cuda_backend_reads_colors_as_videoconvert_does").is_none() {
        return;
    }
    let few = [PixelFormat::Nv12, PixelFormat::P010Le, PixelFormat::Y444];
    all_right(few.into_iter().flat_map(|format| {
        ranges_and_matrices().map(move |text| fault("cuda", format, SQUARE, Some(&text), CODES[0]))
    }));
}
