// SPDX-License-Identifier: MPL-2.0
//! The text of an SVG picture.

use std::fmt::Write;

use super::arcs::{Graph, Half};
use super::curves::{Curve, PARTS, Piece};
use super::{Drawing, Gradient, Lines, Style};

/// Writes numbers as short as a path may have them: a minus sign separates, too.
struct Path<'a> {
    text: &'a mut String,
    at: [i32; 2],
    /// The command that numbers continue.
    command: char,
    follows_number: bool,
    /// Control point that a curve has if it goes on as the one before.
    next_control: Option<[i32; 2]>,
}

impl<'a> Path<'a> {
    fn new(text: &'a mut String) -> Self {
        Self { text, at: [0; 2], command: ' ', follows_number: false, next_control: None }
    }

    fn command(&mut self, command: char) {
        // More pairs after a move are lines.
        if self.command != command {
            self.text.push(command);
            (self.command, self.follows_number) = (command, false);
        }
    }

    fn number(&mut self, number: i32) {
        if self.follows_number && number >= 0 {
            self.text.push(' ');
        }
        let _ = write!(self.text, "{number}");
        self.follows_number = true;
    }

    fn point(&mut self, to: [i32; 2], from: [i32; 2]) {
        self.number(to[0] - from[0]);
        self.number(to[1] - from[1]);
    }

    fn move_to(&mut self, to: [i32; 2]) {
        self.command('M');
        self.point(to, [0; 2]);
        self.at = to;
        self.command = ' ';
    }

    fn add(&mut self, piece: Piece) {
        let (from, expected) = (self.at, self.next_control.take());
        match piece {
            Piece::Line([x, y]) if y == from[1] => {
                self.command('h');
                self.number(x - from[0]);
            }
            Piece::Line([x, y]) if x == from[0] => {
                self.command('v');
                self.number(y - from[1]);
            }
            Piece::Line(end) => {
                self.command('l');
                self.point(end, from);
            }
            Piece::Quadratic([control, end]) => {
                if expected == Some(control) {
                    self.command('t');
                } else {
                    self.command('q');
                    self.point(control, from);
                }
                self.point(end, from);
                self.next_control = Some([2 * end[0] - control[0], 2 * end[1] - control[1]]);
            }
        }
        self.at = piece.end();
    }

    fn close(&mut self) {
        self.text.push('z');
        self.command = ' ';
    }
}

impl Curve {
    /// First point of one of its directions.
    pub(super) fn first(&self, is_reversed: bool) -> [i32; 2] {
        match self.pieces.last() {
            Some(last) if is_reversed => last.end(),
            _ => self.start,
        }
    }

    /// Calls `visit` with its pieces in one of its directions.
    pub(super) fn for_each(&self, is_reversed: bool, mut visit: impl FnMut(Piece)) {
        if !is_reversed {
            self.pieces.iter().for_each(|&piece| visit(piece));
            return;
        }
        for (i, &piece) in self.pieces.iter().enumerate().rev() {
            let end = if i == 0 { self.start } else { self.pieces[i - 1].end() };
            visit(match piece {
                Piece::Line(_) => Piece::Line(end),
                Piece::Quadratic([control, _]) => Piece::Quadratic([control, end]),
            });
        }
    }
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Writes the picture.
pub(super) fn write(
    [width, height]: [usize; 2],
    graph: &Graph,
    curves: &[Curve],
    drawing: &Drawing<'_>,
) -> String {
    let [wide, high] = [width, height].map(|side| side * PARTS as usize);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {wide} {high}\">\n"
    );
    if let Some(style) = drawing.fill {
        fill(&mut text, graph, curves, drawing.seam, style);
    }
    if let Some(lines) = drawing.lines {
        draw_lines(&mut text, graph, curves, lines);
    }
    text.push_str("</svg>\n");
    text
}

/// A width in parts of a pixel.
fn in_parts(px: f32) -> f64 {
    (f64::from(px) * PARTS * 100.0).round() / 100.0
}

fn fill(text: &mut String, graph: &Graph, curves: &[Curve], seam: f32, style: &dyn Fn(u32) -> Style) {
    text.push_str("<g fill=\"currentColor\" fill-rule=\"evenodd\"");
    if seam > 0.0 {
        let _ = write!(
            text,
            " stroke=\"currentColor\" stroke-width=\"{}\" stroke-linejoin=\"round\"",
            in_parts(seam)
        );
    } else {
        text.push_str(" shape-rendering=\"crispEdges\"");
    }
    text.push_str(">\n");
    let regions: Vec<_> =
        graph.rings.chunk_by(|a, b| a.0 == b.0).map(|rings| (style(rings[0].0), rings)).collect();
    // Names of gradients that no region has.
    let mut prefix = String::from("g");
    let is_taken = |prefix: &str| {
        regions.iter().any(|(style, _)| style.id.as_ref().is_some_and(|id| id.starts_with(prefix)))
    };
    while is_taken(&prefix) {
        prefix.push('-');
    }
    for (i, (Style { label, id, color, gradient }, rings)) in regions.iter().enumerate() {
        if let Some(gradient) = gradient {
            define(text, &format!("{prefix}{i}"), gradient);
        }
        text.push_str("<path");
        if let Some(id) = id {
            let _ = write!(text, " id=\"{}\"", escaped(id));
        }
        let _ = write!(text, " data-label=\"{label}\" color=\"{}\"", hex(*color));
        if gradient.is_some() {
            let _ = write!(text, " fill=\"url(#{prefix}{i})\"");
            if seam > 0.0 {
                let _ = write!(text, " stroke=\"url(#{prefix}{i})\"");
            }
        }
        text.push_str(" d=\"");
        let mut path = Path::new(text);
        for (_, ring) in *rings {
            let Some(&Half { arc, is_reversed }) = ring.first() else { continue };
            path.move_to(curves[arc].first(is_reversed));
            for half in ring {
                curves[half.arc].for_each(half.is_reversed, |piece| path.add(piece));
            }
            path.close();
        }
        text.push_str("\"/>\n");
    }
    text.push_str("</g>\n");
}

/// Writes what a region's fill refers to.
fn define(text: &mut String, id: &str, gradient: &Gradient) {
    let [[x1, y1], [x2, y2]] = gradient.ends.map(|end| end.map(|v| (v * PARTS).round() as i32));
    let [first, last] = gradient.colors.map(hex);
    let _ = writeln!(
        text,
        "<linearGradient id=\"{id}\" gradientUnits=\"userSpaceOnUse\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\">\
         <stop offset=\"0\" stop-color=\"{first}\"/><stop offset=\"1\" stop-color=\"{last}\"/></linearGradient>"
    );
}

fn draw_lines(text: &mut String, graph: &Graph, curves: &[Curve], Lines { width, color }: Lines) {
    let _ = write!(
        text,
        "<path fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" stroke-linecap=\"round\" stroke-linejoin=\"round\" d=\"",
        hex(color),
        in_parts(width)
    );
    let mut path = Path::new(text);
    for (arc, curve) in graph.arcs.iter().zip(curves) {
        path.move_to(curve.start);
        curve.for_each(false, |piece| path.add(piece));
        if arc.is_closed {
            path.close();
        }
    }
    text.push_str("\"/>\n");
}

/// Text of an attribute.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}
