// SPDX-License-Identifier: MPL-2.0
//! Pixels and feature sums of every region, added up by bands of rows.

use std::ops::Range;

use super::connectivity::components::Sums;
use super::runs::{RowSums, for_each_run};
use super::statistics::cpu::label_span;
use crate::cpu::memory::{self, Array};
use crate::error::Result;
use crate::image::Labels;

/// Sums of one task's rows for the labels that occur in them.
#[derive(Default)]
pub(crate) struct BandSums {
    lowest: u16,
    sums: Array<Sums>,
    /// Prefix sums of the features of the current row.
    row_sums: RowSums,
}

impl BandSums {
    /// Adds up some rows; `features` is the whole plane.
    pub fn measure(&mut self, features: &[u32], labels: &Labels<'_>, rows: Range<usize>) -> Result<()> {
        let width = labels.geometry().width as usize;
        let occurring = label_span(labels, rows.clone());
        self.lowest = occurring.start;
        memory::refill(&mut self.sums, "sums", occurring.len(), Sums::default())?;
        for y in rows {
            let (row, pixels) = (labels.row(y), &features[y * width..][..width]);
            self.row_sums.sum_features(pixels)?;
            for_each_run(row, |columns| {
                // Pixels outside of a mask have no label, and so no sum.
                let Some(sum) = self.sums.get_mut(usize::from(row[columns.start] - self.lowest)) else {
                    return;
                };
                let color = self.row_sums.over(columns.clone());
                sum.add(&Sums { count: columns.len() as u32, color });
            });
        }
        Ok(())
    }

    /// Adds this task's sums to those of all labels.
    pub fn add_to(&self, sums: &mut [Sums]) {
        sums.iter_mut().skip(usize::from(self.lowest)).zip(&self.sums).for_each(|(sum, part)| sum.add(part));
    }
}
