// SPDX-License-Identifier: MPL-2.0
//! The object that a box, a mask or seeds describe in one frame.
//!
//! A box or seeds give two starts: regions that are certainly outside, and for seeds some that are certainly inside. How far a region
//! is from them along the graph says first whether it is in the object; then color models of both sides and a cut take turns, as in
//! C. Rother, V. Kolmogorov, A. Blake, "GrabCut", SIGGRAPH 2004. Distances: Y. Wei, F. Wen, W. Zhu, J. Sun, "Geodesic Saliency Using
//! Background Priors", ECCV 2012.

use super::color_model::{ColorModel, ONE, log_ratio};
use super::graph::{CERTAIN, Graph, Node};
use super::tables::Evidence;
use super::track::color_models;

/// Rounds of models and cut.
const ROUNDS: usize = 4;
/// Weights of the terms of a score, in percent.
const DISTANCE: i64 = 50;
const COLOR: i64 = 104;
/// Weight of what is known from earlier frames, in percent of the whole.
const EARLIER: i64 = 25;
/// Share of a color that counts as none, in thousandths, and limit of the log ratio.
const COLOR_LEAST: i64 = 6;
const COLOR_LIMIT: i64 = 768;
/// Parts of less than so many percent of the largest are not the object.
const SMALL: i64 = 3;

/// Regions that are in an object, with the colors of both sides.
pub(super) struct Found {
    pub(super) inside: Vec<bool>,
    pub(super) models: [ColorModel; 2],
}

/// Certainty about each region: inside, outside, or neither.
type Certain = Vec<Option<bool>>;

/// The object of some evidence. `earlier` are scores by earlier frames.
pub(super) fn find(graph: &Graph, evidence: &Evidence, earlier: Option<&[Option<i64>]>) -> Found {
    match *evidence {
        Evidence::Mask(counts) => {
            let covered = |(node, &count): (&Node, &u32)| 2 * i64::from(count) > node.area;
            let inside: Vec<bool> = graph.nodes.iter().zip(counts).map(covered).collect();
            let models = color_models(graph, &inside, |_| 1);
            Found { inside, models }
        }
        Evidence::Box(bounds) => {
            let certain: Certain = graph
                .nodes
                .iter()
                .map(|node| if is_in_box(node, bounds) { None } else { Some(false) })
                .collect();
            let nearness = |node: &Node| nearness(node, bounds);
            solve(graph, &certain, box_priors(graph, &certain), nearness, earlier)
        }
        Evidence::Seeds { inside, outside } => {
            let mut certain: Certain = vec![None; graph.nodes.len()];
            if outside.is_empty() {
                for (node, certain) in graph.nodes.iter().zip(&mut certain) {
                    let [x0, y0, x1, y1] = node.bounds.map(i64::from);
                    if x0 == 0 || y0 == 0 || x1 >= graph.width || y1 >= graph.height {
                        *certain = Some(false);
                    }
                }
            }
            for (labels, side) in [(outside, false), (inside, true)] {
                for &label in labels {
                    certain[label as usize] = Some(side);
                }
            }
            solve(graph, &certain, seed_priors(graph, &certain), |_| 100, earlier)
        }
    }
}

/// Returns true if at least half of a region's bounds is in a box.
fn is_in_box(node: &Node, bounds: [i32; 4]) -> bool {
    let side = |axis: usize, bounds: [i32; 4]| i64::from(bounds[axis + 2] - bounds[axis]).max(0);
    let common = [0, 1].map(|axis| {
        let low = i64::from(node.bounds[axis].max(bounds[axis]));
        (i64::from(node.bounds[axis + 2].min(bounds[axis + 2])) - low).max(0)
    });
    2 * common[0] * common[1] >= side(0, node.bounds) * side(1, node.bounds)
}

/// Weight of a region outside of a box, in percent: half at a distance of half the box's longer side.
fn nearness(node: &Node, [x0, y0, x1, y1]: [i32; 4]) -> u64 {
    let half = (i64::from(x1) - i64::from(x0)).max(i64::from(y1) - i64::from(y0)) / 2;
    let [x, y] = node.center.map(i64::from);
    let beyond = (i64::from(x0) - x).max(x - i64::from(x1)).max(i64::from(y0) - y).max(y - i64::from(y1));
    (100 * half / (half + beyond.max(0)).max(1)) as u64
}

/// Scores by the distance from what is outside, -256 to 256. 0 is where two classes of distances part (Otsu's threshold).
fn box_priors(graph: &Graph, certain: &Certain) -> Vec<i64> {
    let distances = graph.distances(|label| certain[label] == Some(false));
    let mut reached: Vec<(i64, i64)> = (0..distances.len())
        .filter(|&label| certain[label].is_none() && distances[label] < i64::MAX)
        .map(|label| (distances[label], graph.nodes[label].area))
        .collect();
    reached.sort_unstable();
    let threshold = otsu(&reached).max(1);
    let score = |&distance: &i64| ((distance.min(CERTAIN) - threshold) * 256 / threshold).clamp(-256, 256);
    distances.iter().map(score).collect()
}

/// The value between two sorted, weighted ones that leaves the most variance between what is below and above (N. Otsu, 1979); the lowest
/// of several.
fn otsu(values: &[(i64, i64)]) -> i64 {
    let weight: i128 = values.iter().map(|&(_, weight)| i128::from(weight)).sum();
    let sum: i128 = values.iter().map(|&(value, weight)| i128::from(value) * i128::from(weight)).sum();
    let (mut below, mut sum_below, mut best) = (0, 0, (0, 0));
    for pair in values.windows(2) {
        below += i128::from(pair[0].1);
        sum_below += i128::from(pair[0].0) * i128::from(pair[0].1);
        let above = weight - below;
        if pair[0].0 == pair[1].0 || below == 0 || above == 0 {
            continue;
        }
        // Means in 1/16, so that few distances part well.
        let difference = 16 * (sum - sum_below) / above - 16 * sum_below / below;
        let variance = difference * difference * (below * above / weight);
        if variance > best.0 {
            best = (variance, (pair[0].0 + pair[1].0) / 2);
        }
    }
    best.1
}

/// Scores by how much nearer a region is to the seeds inside than to what is outside, -256 to 256.
fn seed_priors(graph: &Graph, certain: &Certain) -> Vec<i64> {
    let [inside, outside] = [true, false].map(|side| graph.distances(|label| certain[label] == Some(side)));
    let score = |(&inside, &outside): (&i64, &i64)| {
        let (inside, outside) = (inside.min(CERTAIN), outside.min(CERTAIN));
        (outside - inside) * 256 / (outside + inside).max(1)
    };
    inside.iter().zip(&outside).map(score).collect()
}

fn solve(
    graph: &Graph,
    certain: &Certain,
    priors: Vec<i64>,
    nearness: impl Fn(&Node) -> u64,
    earlier: Option<&[Option<i64>]>,
) -> Found {
    let mut inside: Vec<bool> =
        certain.iter().zip(&priors).map(|(certain, &prior)| certain.unwrap_or(prior > 0)).collect();
    let mut models = color_models(graph, &inside, &nearness);
    for _ in 0..ROUNDS {
        let score = |label: usize| match certain[label] {
            Some(true) => Some(CERTAIN),
            Some(false) => None,
            None => {
                let [near, far] = [0, 1].map(|side| models[side].density(graph.nodes[label].color));
                let color = log_ratio(near, far, COLOR_LEAST * ONE / 1000, COLOR_LIMIT);
                let own = (COLOR * color + DISTANCE * priors[label]) / 100;
                Some(match earlier {
                    Some(earlier) => (own * (100 - EARLIER) + earlier[label].unwrap_or(-256) * EARLIER) / 100,
                    None => own,
                })
            }
        };
        let scores: Vec<Option<i64>> = (0..certain.len()).map(score).collect();
        let mut next = graph.cut(&scores);
        graph.drop_small_parts(&mut next, SMALL);
        if next == inside || !next.contains(&true) {
            break;
        }
        inside = next;
        models = color_models(graph, &inside, &nearness);
    }
    Found { inside, models }
}
