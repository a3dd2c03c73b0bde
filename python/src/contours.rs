// SPDX-License-Identifier: MPL-2.0
//! Outlines of the regions of a label map as polygons with holes.
//!
//! An outline has its region on the right. It consists of stretches: straight lines along pixels of the region, each from its first
//! pixel on. Direction 0 goes right along upper sides, 1 down along right ones, 2 left along lower ones, 3 up along left ones.

use std::collections::BTreeMap;

use gstsuperpixel::error::Result;
use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::error::exception;
use crate::memory::{filled, probe, push};

const OUTLINES: &str = "outlines of regions";

/// A label map with a border of pixels around it that belong to no region.
struct Map<'a> {
    labels: &'a [i32],
    width: usize,
    /// To the next pixel in each direction, to be added with wrapping.
    steps: [usize; 4],
}

/// A straight line of an outline.
#[derive(Clone, Copy)]
struct Stretch {
    /// Index of its first pixel.
    pixel: u32,
    direction: u8,
}

/// Closed outlines one after another: the stretches of each, and where each ends.
#[derive(Default)]
struct Rings {
    stretches: Vec<Stretch>,
    ends: Vec<usize>,
}

impl Rings {
    fn iter(&self) -> impl Iterator<Item = &[Stretch]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.stretches[begin..end])
    }
}

impl<'a> Map<'a> {
    fn new(labels: &'a [i32], width: usize) -> Self {
        Self { labels, width, steps: [1, width, usize::MAX, width.wrapping_neg()] }
    }

    /// The stretch that follows.
    fn following(&self, Stretch { pixel, direction }: Stretch) -> Stretch {
        let (right, left) = ((direction + 1) & 3, direction.wrapping_sub(1) & 3);
        let [ahead, aside] = [direction, left].map(|direction| self.steps[usize::from(direction)]);
        let mut last = pixel as usize;
        let own = self.labels[last];
        loop {
            let next = last.wrapping_add(ahead);
            if self.labels[next] != own {
                return Stretch { pixel: last as u32, direction: right };
            }
            let beside = next.wrapping_add(aside);
            if self.labels[beside] == own {
                return Stretch { pixel: beside as u32, direction: left };
            }
            last = next;
        }
    }

    /// Returns true if a stretch along an upper side begins at this pixel.
    fn begins(&self, pixel: usize) -> bool {
        let (labels, above) = (self.labels, pixel - self.width);
        let own = labels[pixel];
        own != labels[above] && (own != labels[pixel - 1] || own == labels[above - 1])
    }

    /// The corner where a stretch begins, named by the upper left one of the pixels around it.
    fn corner(&self, Stretch { pixel, direction }: Stretch) -> usize {
        let from = [self.width + 1, self.width, 0, 1][usize::from(direction)];
        pixel as usize - from
    }

    /// Returns true if two pixels of a region touch at this corner alone.
    fn is_crossing(&self, corner: usize) -> bool {
        let [a, b] = [self.labels[corner], self.labels[corner + 1]];
        let [c, d] = [self.labels[corner + self.width], self.labels[corner + self.width + 1]];
        (a == d && a != b && a != c) || (b == c && b != a && b != d)
    }

    /// All outlines, each from its first stretch along an upper side in raster order on.
    fn rings(&self) -> Result<Rings> {
        let mut rings = Rings::default();
        let mut is_taken = filled(OUTLINES, self.labels.len(), false)?;
        let inside = self.width..self.labels.len() - self.width;
        for (row, pixels) in self.labels[inside].chunks_exact(self.width).enumerate() {
            let first = (row + 1) * self.width;
            let above = &self.labels[first - self.width..][..self.width];
            for x in 1..self.width - 1 {
                // Most pixels have no such side.
                if pixels[x] == above[x] || !self.begins(first + x) || is_taken[first + x] {
                    continue;
                }
                self.follow(Stretch { pixel: (first + x) as u32, direction: 0 }, &mut is_taken, &mut rings)?;
            }
        }
        Ok(rings)
    }

    fn follow(&self, start: Stretch, is_taken: &mut [bool], rings: &mut Rings) -> Result<()> {
        let begin = rings.stretches.len();
        let (mut stretch, mut crossings) = (start, Vec::new());
        loop {
            if stretch.direction == 0 {
                is_taken[stretch.pixel as usize] = true;
            }
            let corner = self.corner(stretch);
            if self.is_crossing(corner) {
                push(OUTLINES, &mut crossings, (corner, rings.stretches.len() - begin))?;
            }
            push(OUTLINES, &mut rings.stretches, stretch)?;
            stretch = self.following(stretch);
            if stretch.direction == 0 && stretch.pixel == start.pixel {
                break;
            }
        }
        crossings.sort_unstable();
        if crossings.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            split(rings, begin, &crossings)
        } else {
            push(OUTLINES, &mut rings.ends, rings.stretches.len())
        }
    }
}

/// Cuts the last ring, from `begin` on, wherever it touches itself: where an outline has turned right at a crossing twice, it could as
/// well have turned left. Outlines cross nowhere, so cuts do not depend on each other.
fn split(rings: &mut Rings, begin: usize, crossings: &[(usize, usize)]) -> Result<()> {
    // What is made here for each stretch.
    let each = size_of::<Stretch>() + size_of::<usize>() + size_of::<bool>();
    probe(OUTLINES, (rings.stretches.len() - begin) * each)?;
    let whole = rings.stretches.split_off(begin);
    let mut before: Vec<usize> = (0..whole.len()).map(|i| (i + whole.len() - 1) % whole.len()).collect();
    for pair in crossings.windows(2).filter(|pair| pair[0].0 == pair[1].0) {
        before.swap(pair[0].1, pair[1].1);
    }
    let mut is_taken = vec![false; whole.len()];
    for last in 0..whole.len() {
        if is_taken[last] {
            continue;
        }
        let (first, mut at) = (rings.stretches.len(), last);
        while !is_taken[at] {
            is_taken[at] = true;
            rings.stretches.push(whole[at]);
            at = before[at];
        }
        rings.stretches[first..].reverse();
        push(OUTLINES, &mut rings.ends, rings.stretches.len())?;
    }
    Ok(())
}

/// An outline with what its place among the others follows from.
struct Outline<'a> {
    ring: &'a [Stretch],
    /// x and y of the corners, the first one again at the end.
    points: Vec<i32>,
    /// The first pixel in raster order that a stretch along an upper side begins at.
    first: u32,
    is_hole: bool,
}

impl Map<'_> {
    fn outline<'a>(&self, ring: &'a [Stretch]) -> Outline<'a> {
        let mut points = Vec::with_capacity(2 * (ring.len() + 1));
        for &stretch in ring.iter().chain(&ring[..1]) {
            let (corner, width) = (self.corner(stretch) as u32, self.width as u32);
            points.extend([(corner % width) as i32, (corner / width) as i32]);
        }
        // By the lines that go up or down.
        let vertical = |line: &&[i32; 4]| line[0] == line[2];
        let lines = points.windows(4).step_by(2).filter_map(|line| <&[i32; 4]>::try_from(line).ok());
        let area: i64 =
            lines.filter(vertical).map(|&[x, y, _, next]| i64::from(x) * i64::from(next - y)).sum();
        let upper = ring.iter().filter(|stretch| stretch.direction == 0).map(|stretch| stretch.pixel);
        Outline { ring, points, first: upper.min().unwrap_or(0), is_hole: area < 0 }
    }

    /// For each outline the number of the outer one of its polygon, which may be itself.
    fn outer(&self, outlines: &[Outline<'_>]) -> Vec<usize> {
        let mut outer: Vec<usize> = (0..outlines.len()).collect();
        let mut holes: Vec<(u32, usize)> = outlines
            .iter()
            .enumerate()
            .filter(|(_, outline)| outline.is_hole)
            .map(|(i, Outline { ring, .. })| {
                let lower = ring.iter().filter(|stretch| stretch.direction == 2).map(|stretch| stretch.pixel);
                (lower.min().unwrap_or(0), i)
            })
            .collect();
        if holes.is_empty() {
            return outer;
        }
        let mut numbers = vec![0; self.labels.len()];
        for (i, Outline { ring, .. }) in outlines.iter().enumerate() {
            for stretch in ring.iter().filter(|stretch| stretch.direction == 0) {
                numbers[stretch.pixel as usize] = i;
            }
        }
        holes.sort_unstable();
        for (pixel, hole) in holes {
            // From the uppermost pixel that lies on a hole up to where the region begins is another outline of the same part, which
            // reaches higher: it is known already.
            let mut top = pixel as usize;
            while self.labels[top - self.width] == self.labels[top] {
                top -= self.width;
            }
            while !self.begins(top) {
                top -= 1;
            }
            outer[hole] = outer[numbers[top]];
        }
        outer
    }

    /// The polygons of each label, rings of (x, y): the outer one and then its holes, all by their first stretches.
    fn polygons(&self) -> Result<BTreeMap<i32, Vec<Vec<Vec<i32>>>>> {
        let rings = self.rings()?;
        // Collections that are not asked whether there is memory, at most: for each stretch a corner, for each ring an outline, numbers
        // and an entry of the tree, and a number for each pixel.
        let (corners, numbers) = (rings.stretches.len() + rings.ends.len(), self.labels.len());
        let each = size_of::<Outline<'_>>() + 256;
        probe(
            OUTLINES,
            corners * 2 * size_of::<i32>() + rings.ends.len() * each + numbers * size_of::<usize>(),
        )?;
        let mut outlines: Vec<_> = rings.iter().map(|ring| self.outline(ring)).collect();
        outlines.sort_unstable_by_key(|outline| outline.first);
        let outer = self.outer(&outlines);
        let mut polygons: BTreeMap<i32, Vec<Vec<Vec<i32>>>> = BTreeMap::new();
        let mut places = vec![0; outlines.len()];
        for is_hole in [false, true] {
            for (i, outline) in outlines.iter_mut().enumerate().filter(|&(i, _)| (outer[i] != i) == is_hole) {
                let of_label = polygons.entry(self.labels[outline.first as usize]).or_default();
                let ring = std::mem::take(&mut outline.points);
                if is_hole {
                    of_label[places[outer[i]]].push(ring);
                } else {
                    places[i] = of_label.len();
                    of_label.push(vec![ring]);
                }
            }
        }
        Ok(polygons)
    }
}

/// The outlines of a label map that a border is around, of a number that no label has, as `superpixels.contours` gives them.
#[pyfunction]
pub fn contours<'py>(py: Python<'py>, bordered: PyReadonlyArray2<'py, i32>) -> PyResult<Bound<'py, PyDict>> {
    let width = bordered.shape()[1];
    let labels = bordered.as_slice().map_err(|_| PyValueError::new_err("the array has gaps"))?;
    if width < 3 || labels.len() < 3 * width || u32::try_from(labels.len()).is_err() {
        return Err(PyValueError::new_err("labels must be of 1 to 4,294,967,295 pixels with a border"));
    }
    let outside = labels[0];
    let is_row_good = |(y, row): (usize, &[i32])| match y {
        0 => row.iter().all(|&label| label == outside),
        _ if (y + 1) * width == labels.len() => row.iter().all(|&label| label == outside),
        _ => row[0] == outside && row[width - 1] == outside && !row[1..width - 1].contains(&outside),
    };
    if !labels.chunks_exact(width).enumerate().all(is_row_good) {
        return Err(PyValueError::new_err("the border of labels is not one"));
    }
    let polygons = py.detach(|| Map::new(labels, width).polygons()).map_err(exception)?;
    // Numpy itself raises where there is no memory.
    let numpy = py.import(intern!(py, "numpy"))?;
    let (empty, int32) = (numpy.getattr(intern!(py, "empty"))?, numpy.getattr(intern!(py, "int32"))?);
    let dict = PyDict::new(py);
    for (label, polygons) in polygons {
        let list = PyList::empty(py);
        for polygon in polygons {
            let rings = PyList::empty(py);
            for points in polygon {
                let ring = empty.call1(((points.len() / 2, 2), &int32))?.cast_into::<PyArray2<i32>>()?;
                ring.readwrite().as_slice_mut()?.copy_from_slice(&points);
                rings.append(ring)?;
            }
            list.append(rings)?;
        }
        dict.set_item(label, list)?;
    }
    Ok(dict)
}
