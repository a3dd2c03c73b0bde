// SPDX-License-Identifier: MPL-2.0
//! Principal axes of covariances: eigenvectors of symmetric matrices, the same bits on every machine: sums, products, quotients and roots of doubles in a fixed order.
//!
//! Source: Golub and Van Loan, "Matrix Computations", cyclic Jacobi rotations.

/// Rotations go on while an element beside the diagonal is larger than this part of the trace: a bit of a double's last place.
const NOTHING: f64 = f64::EPSILON / 8.0;
/// Most rounds through all pairs. About ten are needed, as the error is squared in each of the last.
const ROUNDS: usize = 64;

/// Rows of `vectors` that are the axes of the largest variances, largest first, and of equal ones that of the lower row. `vectors` is
/// the unit matrix before. Variances are on the diagonal of the matrix then, which has three rows at least. Of each axis the number of
/// largest magnitude, the first of such, is positive.
pub fn principal_axes(covariances: &mut [f64], vectors: &mut [f64], side: usize) -> [usize; 3] {
    diagonalize(covariances, vectors, side);
    let variance = |axis: usize| covariances[axis * side + axis];
    let mut axes = [usize::MAX; 3];
    for place in 0..axes.len() {
        let rest = (0..side).filter(|axis| !axes[..place].contains(axis));
        axes[place] = rest
            .reduce(|best, axis| if variance(axis) > variance(best) { axis } else { best })
            .unwrap_or_default();
        let vector = &mut vectors[axes[place] * side..][..side];
        let largest =
            vector.iter().fold(0.0f64, |most, &one| if one.abs() > most.abs() { one } else { most });
        if largest < 0.0 {
            vector.iter_mut().for_each(|one| *one = -*one);
        }
    }
    axes
}

/// Makes a symmetric matrix of `side` rows diagonal, with its eigenvalues there, and turns the rows of `vectors` in the same way: those
/// of the unit matrix become the eigenvectors.
fn diagonalize(matrix: &mut [f64], vectors: &mut [f64], side: usize) {
    let trace: f64 = (0..side).map(|i| matrix[i * side + i]).sum();
    for _ in 0..ROUNDS {
        let mut is_done = true;
        for p in 0..side {
            for q in p + 1..side {
                if matrix[p * side + q].abs() > NOTHING * trace {
                    is_done = false;
                    rotate(matrix, vectors, side, p, q);
                }
            }
        }
        if is_done {
            return;
        }
    }
}

/// Turns axes `p` and `q`, p < q, so that the element of both becomes 0.
fn rotate(matrix: &mut [f64], vectors: &mut [f64], side: usize, p: usize, q: usize) {
    let [pp, qq, pq] = [p * side + p, q * side + q, p * side + q].map(|i| matrix[i]);
    let theta = (qq - pp) / (2.0 * pq);
    // The smaller of both angles.
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cosine = 1.0 / (tangent * tangent + 1.0).sqrt();
    let sine = tangent * cosine;
    for rows in [&mut *matrix, vectors] {
        let (above, below) = rows.split_at_mut(q * side);
        for (of_p, of_q) in above[p * side..][..side].iter_mut().zip(&mut below[..side]) {
            (*of_p, *of_q) = (cosine * *of_p - sine * *of_q, sine * *of_p + cosine * *of_q);
        }
    }
    // The columns are those rows again, but for where they cross.
    for i in 0..side {
        matrix[i * side + p] = matrix[p * side + i];
        matrix[i * side + q] = matrix[q * side + i];
    }
    matrix[p * side + p] = pp - tangent * pq;
    matrix[q * side + q] = qq + tangent * pq;
    (matrix[p * side + q], matrix[q * side + p]) = (0.0, 0.0);
}
