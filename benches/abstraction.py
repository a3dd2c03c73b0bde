#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""Measures drawings of overlay=abstraction on photographs and clips, and prints tables in Markdown.

    benches/abstraction.py --data FOLDER [FOLDER ...] [--regions 120,400] [--parts outlines,colors,still,palette,vectors]

A FOLDER holds photographs (*.jpg), clips (*.avi, *.mkv, *.mp4), and clips as NAME/frames/*.jpg at any depth. Needs Python
3.10 with NumPy, GStreamer 1.22 with the plugin in its path, for outlines and vectors the package superpixels, and for
vectors pillow and resvg_py. What is measured, of pictures in 8-bit R'G'B' (codes 0 to 255), stands at `outline`,
`isophotes`, `explained`, `still_changes`, `palette_moves` and `vectors`. Nothing is written but the tables.
"""

import argparse
import collections
import contextlib
import gzip
import importlib.util
import io
import itertools
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

CLIPS = {".avi", ".mkv", ".mp4"}
# Of `to_svg` and `smooth_labels`, in px: their defaults, or what docs/abstraction.md suggests.
TOLERANCE, SMOOTHNESS = 0.7, 2.0
# Colors by themselves: without ink, and outlines that follow pixels as closely as they can.
COLORS = "overlay=abstraction ink=0 outline-smoothness=0.5"
# Frames that a clip starts with, in which regions and colors settle.
SETTLING = 10
# Frames of a clip that are drawn as SVG.
DRAWN = 20


def stream(source):
    """A file that holds a clip; photographs one after the other are a stream, too."""
    if isinstance(source, Path):
        return source.open("rb")
    joined = tempfile.TemporaryFile()
    for photograph in source:
        joined.write(photograph.read_bytes())
    joined.seek(0)
    return joined


def frames(source, elements=""):
    """The frames of a clip, or of photographs, as `elements` of GStreamer leave them: arrays of codes, (H, W, 3) or (H, W)."""
    # gst-launch-1.0 parses its words, so no path of the user's is one.
    command = ["gst-launch-1.0", "-q", *"filesrc location=/dev/fd/0 ! decodebin ! videoconvert ! video/x-raw,format=RGB !".split(),
               *elements.split(), *"pnmenc ! fdsink".split()]
    with stream(source) as file, tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdin=file, stdout=subprocess.PIPE, stderr=errors)
        try:
            while kind := process.stdout.readline():
                # Width, height and the greatest code, each on a line of its own or with others, among comments.
                numbers = []
                while len(numbers) < 3:
                    numbers += process.stdout.readline().partition(b"#")[0].split()
                width, height, greatest = map(int, numbers)
                shape = (height, width, 3) if kind.strip() == b"P6" else (height, width)
                code = np.dtype(np.uint8 if greatest < 256 else ">u2")
                wanted = math.prod(shape) * code.itemsize
                content = process.stdout.read(wanted)
                if len(content) < wanted:
                    break
                yield np.frombuffer(content, code).reshape(shape)
            failed = process.wait()
            errors.seek(0)
            if failed or (said := errors.read().strip()):
                raise SystemExit(f"{' '.join(command)} failed:\n{said}")
        finally:
            process.stdout.close()
            process.wait()


def drawn(source, properties):
    """The frames as the element draws them."""
    return frames(source, f"superpixel {properties} !")


def label_maps(source, properties):
    """The label maps of frames."""
    return frames(source, f"superpixel {properties} overlay=none ! superpixellabels ! videoconvert ! video/x-raw,format=GRAY16_BE !")


def row(*cells):
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def table(title, *heads):
    """The head of a table whose first column is text."""
    print(f"\n{title}\n", flush=True)
    row(*heads)
    print("|---|" + "--:|" * (len(heads) - 1), flush=True)


def pieces(path):
    """The lines of a path in SVG: for each the points of its pieces, of which three are those of a quadratic curve."""
    lines, at, line = [], (0, 0), []
    for command, text in re.findall(r"([MhvlqtzZ])([-\d. ]*)", path):
        numbers = [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
        if command in "zZ":
            if line and at != line[0][0]:
                line.append((at, line[0][0]))
            continue
        if command == "M":
            at, line = tuple(numbers), []
            lines.append(line)
            continue
        step = {"h": 1, "v": 1, "l": 2, "t": 2, "q": 4}[command]
        for i in range(0, len(numbers), step):
            given = numbers[i : i + step]
            if command in "hv":
                given = [given[0], 0] if command == "h" else [0, given[0]]
            points = [(at[0] + x, at[1] + y) for x, y in zip(given[::2], given[1::2])]
            if command == "t":
                _, control, end = line[-1]
                points.insert(0, (2 * end[0] - control[0], 2 * end[1] - control[1]))
            line.append((at, *points))
            at = points[-1]
    return lines


def angle(before, after):
    """The angle in radians from one direction to another, without its sign."""
    cross, dot = before[0] * after[1] - before[1] * after[0], before[0] * after[0] + before[1] * after[1]
    return abs(math.atan2(cross, dot))


def outline(drawing):
    """Length in px and turning in radians of the outlines in a drawing by `to_svg`, without those along the picture's edge.

    Outlines are taken as the curves they are: sides of pixels, or lines and quadratic curves. Length is the sum of |P_i - P_(i-1)|
    along them, of a curve at t = 0, 1/8 ... 1. Turning is the sum of angles between successive sides of the control
    polygons, which is the integral of |curvature| and the angles where pieces meet. So a staircase of n steps is n px longer than
    its run, and turns by 90 degrees twice a step. Where three regions meet nothing turns.
    """
    wide, high = map(float, re.search(r'viewBox="0 0 (\S+) (\S+)"', drawing).groups())
    scale = float(re.search(r' width="(\d+)"', drawing).group(1)) / wide
    length = turning = 0.0
    for line in pieces(re.search(r' d="([^"]*)"', drawing).group(1)):
        points = [point for piece in line for point in piece]
        if any(all(point[axis] == edge for point in points) for axis, far in ((0, wide), (1, high)) for edge in (0, far)):
            continue
        directions = []
        for piece in line:
            sides = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(piece, piece[1:])]
            directions += [side for side in sides if side != (0, 0)]
            if len(sides) == 1:
                length += scale * math.hypot(*sides[0])
                continue
            (ax, ay), (bx, by) = sides
            for t in (1 / 16, 3 / 16, 5 / 16, 7 / 16, 9 / 16, 11 / 16, 13 / 16, 15 / 16):
                length += scale * math.hypot(ax + (bx - ax) * t, ay + (by - ay) * t) / 4
        if points[0] == points[-1]:
            directions.append(directions[0])
        turning += sum(map(angle, directions, directions[1:]))
    return length, turning


def isophotes(picture):
    """Sums of |grad u| and of |curvature| |grad u| over the pixels of a picture, u the mean of its channels, filtered by 1 2 1.

    The first is, by the coarea formula, the length of outlines times the contrast across them. The quotient of both is their turning
    in radians a px, weighted by contrast: |u_xx u_y^2 - 2 u_xy u_x u_y + u_yy u_x^2| / |grad u|^2, with central differences of 3 pixels.
    Both see only pixels, so they serve outlines between pixels and stairs alike, with a bias: of a disk with a radius of 60 px,
    which turns by 0.017, they find 0.064 with smooth edges and 0.154 with stairs, of straight lines 0.01 to 0.11 and 0.09 to 0.23.
    """
    u = picture.mean(2)
    u = (u[:-2] + 2 * u[1:-1] + u[2:]) / 4
    u = (u[:, :-2] + 2 * u[:, 1:-1] + u[:, 2:]) / 4
    middle, left, right, up, down = u[1:-1, 1:-1], u[1:-1, :-2], u[1:-1, 2:], u[:-2, 1:-1], u[2:, 1:-1]
    x, y = (right - left) / 2, (down - up) / 2
    xx, yy = right - 2 * middle + left, down - 2 * middle + up
    xy = (u[2:, 2:] - u[2:, :-2] - u[:-2, 2:] + u[:-2, :-2]) / 4
    square = x * x + y * y
    bent = np.abs(xx * y * y - 2 * xy * x * y + yy * x * x)
    return np.sqrt(square).sum(), (bent / np.maximum(square, 1e-12)).sum()


def outlines(photographs, regions):
    """Outlines of label maps and of what is drawn of them."""
    import superpixels as sp

    table(
        f"Outlines of {len(photographs)} photographs: curves that `to_svg` gives, px a photograph and radians a px",
        "regions, outlines", "length", "turning", "turning a px",
    )
    for number in regions:
        sums = collections.defaultdict(lambda: np.zeros(2))
        for labels in label_maps(photographs, f"regions={number} temporal=false"):
            labels = labels.astype(np.uint16)
            smooth = sp.smooth_labels(labels, SMOOTHNESS)
            for name, map_, tolerance in (
                ("label map, along pixels", labels, 0), ("label map, curves", labels, TOLERANCE),
                ("smoothed, along pixels", smooth, 0), ("smoothed, curves", smooth, TOLERANCE),
            ):
                sums[name] += outline(sp.to_svg(map_, tolerance=tolerance, outside=None))
        for name, (length, turning) in sums.items():
            row(f"{number}, {name}", f"{length / len(photographs):.0f}", f"{turning / len(photographs):.0f}", f"{turning / length:.3f}")
    table(
        "Isophotes of the same, as drawn without shading and ink: length times contrast, beside that of mean colors, and radians a px",
        "regions, drawing", "length", "turning a px",
    )
    for number in regions:
        before = None
        for name, overlay in (("mean colors", "mean-color"), ("abstraction", "abstraction shading=false ink=0")):
            pictures = drawn(photographs, f"regions={number} temporal=false overlay={overlay}")
            length, turning = np.sum([isophotes(picture) for picture in pictures], axis=0)
            before = before or length
            row(f"{number}, {name}", f"{length / before:.3f}", f"{turning / length:.3f}")


def explained(picture, drawing):
    """The variation that a drawing explains: 1 - sum |I - D|^2 / sum |I - mean I|^2 over pixels and channels."""
    picture, drawing = picture.astype(float), drawing.astype(float)
    return 1 - ((picture - drawing) ** 2).sum() / ((picture - picture.mean((0, 1))) ** 2).sum()


def colors(photographs, regions):
    """What one color and a plane of color for each region explain, at N and 2N regions."""
    table(
        f"Explained variation, mean of {len(photographs)} photographs, `{COLORS}`",
        "regions", "flat", "shaded", "flat, twice as many regions", "shaded, twice as many regions",
    )
    for number in regions:
        means = []
        for count in (number, 2 * number):
            for shading in ("false", "true"):
                drawings = drawn(photographs, f"regions={count} temporal=false {COLORS} shading={shading}")
                means.append(np.mean([explained(*both) for both in zip(frames(photographs), drawings, strict=True)]))
        row(number, *(f"{mean:.4f}" for mean in means))


def around(is_so):
    """The pixels in whose 3x3 any is so."""
    for axis in (0, 1):
        forward, back = [(slice(None),) * axis + (part,) for part in (slice(1, None), slice(None, -1))]
        whole = is_so.copy()
        whole[forward] |= is_so[back]
        whole[back] |= is_so[forward]
        is_so = whole
    return is_so


def still_changes(inputs, drawings, most):
    """How drawn pixels change where the input does not: the share of such pixels, and for each drawing the change in codes.

    A pixel is still if in none of the 3x3 around it any channel of the input differs by more than `most` codes from the frame before.
    The change is the mean of |D(t) - D(t - 1)| over channels and all still pixels of all frames from the eleventh on.
    """
    last, still_pixels, pixels, changes = None, 0, 0, np.zeros(len(drawings))
    for t, now in enumerate(zip(inputs, *drawings, strict=True)):
        if last is not None and t >= SETTLING:
            steps = [np.maximum(a, b) - np.minimum(a, b) for a, b in zip(now, last)]
            still = ~around((steps[0] > most).any(2))
            still_pixels, pixels = still_pixels + still.sum(), pixels + still.size
            changes += [step[still].sum(dtype=np.int64) / 3 for step in steps[1:]]
        last = now
    return still_pixels / max(pixels, 1), changes / max(still_pixels, 1)


def still(clips, regions, most):
    """Still pixels of clips under mean colors and under the abstraction, as they are by default."""
    table(
        f"Change of drawn still pixels from frame to frame in codes; still is what changes by at most {most} in its 3x3",
        "clip, regions", "still", "mean colors", "abstraction", "quotient",
    )
    for name, clip in clips:
        for number in regions:
            drawings = [drawn(clip, f"regions={number} overlay={overlay}") for overlay in ("mean-color", "abstraction")]
            share, (mean_color, abstraction) = still_changes(frames(clip), drawings, most)
            quotient = f"{abstraction / mean_color:.2f}" if mean_color else "-"
            row(f"{name}, {number}", f"{100 * share:.1f} %", f"{mean_color:.3f}", f"{abstraction:.3f}", quotient)


def borders(codes):
    """The pixels beside which one has another code, in their row or column."""
    found = np.zeros(codes.shape, bool)
    for one, other in ((np.s_[1:], np.s_[:-1]), (np.s_[:, 1:], np.s_[:, :-1])):
        differ = codes[one] != codes[other]
        found[one] |= differ
        found[other] |= differ
    return found


def palette_of(picture):
    """The colors within patches, most frequent first: those of pixels in whose 3x3 none is beside another, since outlines blend two colors."""
    codes = picture.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    found, counts = np.unique(codes[~around(borders(codes))], return_counts=True)
    found = found[np.argsort(-counts, kind="stable")]
    return np.stack([found >> 16, found >> 8 & 255, found & 255], axis=1).astype(int)


def palette_moves(inputs, drawings, cut):
    """The most colors of a frame, and how far in codes each color of each frame is from the nearest of the frame before.

    The distance of two colors is the largest of their channels'. A frame whose input differs from the one before by a mean of more
    than `cut` codes is a cut, and left out. A color that no region had in the frame before counts as moved.
    """
    last, most, moves, cuts = None, 0, [], 0
    for now, drawing in zip(inputs, drawings, strict=True):
        found = palette_of(drawing)
        most = max(most, len(found))
        if last is not None and len(found) and len(last[1]):
            if np.abs(now.astype(np.int16) - last[0]).mean() > cut:
                cuts += 1
            else:
                moves += np.abs(found[:, None] - last[1]).max(2).min(1).tolist()
        last = now, found
    return most, np.array(moves), cuts


def palette(clips, regions, number, cut):
    """Colors of clips that are drawn with a palette."""
    known = subprocess.run(["gst-inspect-1.0", "superpixel"], check=True, capture_output=True, text=True).stdout
    if not re.search(r"^ +palette +:", known, re.MULTILINE):
        print("\npalette: left out, as the element has no such property.", flush=True)
        return
    table(
        f"Colors with `palette={number} shading=false {COLORS}`, moves in codes from frame to frame without cuts (mean change over {cut} codes)",
        "clip, regions", "most colors", "largest move", "colors that move by more than 1", "cuts",
    )
    for name, clip in clips:
        for regions_ in regions:
            drawings = drawn(clip, f"regions={regions_} palette={number} shading=false {COLORS}")
            most, moves, cuts = palette_moves(frames(clip), drawings, cut)
            row(f"{name}, {regions_}", most, moves.max(initial=0), f"{(moves > 1).sum()} of {len(moves)}", cuts)


def rendered(drawing):
    """A drawing as resvg draws it, (H, W, 4)."""
    import resvg_py
    from PIL import Image

    return np.asarray(Image.open(io.BytesIO(bytes(resvg_py.svg_to_bytes(svg_string=drawing)))).convert("RGBA"))


def sharp(drawing):
    """A drawing by `to_svg` with one region a pixel: its color 997 times its label plus 1, without antialiasing and seams."""
    unstroked = re.sub(r' stroke="currentColor" stroke-width="[^"]*"', ' shape-rendering="crispEdges"', drawing, count=1)
    return re.sub(r'data-label="(\d+)" color="[^"]*"', lambda label: f'color="#{997 * (int(label[1]) + 1):06x}"', unstroked)


def vectors(clips, regions):
    """The first frames of clips as SVG, with tracks as ids, drawn by resvg.

    No region: pixels that are not opaque, or of a color that no region has. Far: pixels with another label than in the map that is drawn,
    beside which there is no border of that map. Explained variation is that of the
    drawing with antialiasing, without and with gradients.
    """
    missing = [name for name in ("superpixels", "resvg_py", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"\nvectors: left out, as there is no {' and no '.join(missing)}.", flush=True)
        return
    import superpixels as sp

    table(
        f"The first {DRAWN} frames of clips as SVG, `tolerance={TOLERANCE}`, drawn by resvg: pixels, kB a frame, explained variation",
        "clip, regions, smoothness", "pixels", "no region", "far", "flat", "flat, gzip", "shaded", "shaded, gzip", "flat explains", "shaded explains",
    )
    for (name, clip), number, smoothness in itertools.product(clips, regions, (0, SMOOTHNESS)):
        segmenter = sp.Segmenter(n_regions=number, temporal=True)
        pixels, counts, sizes, shares = 0, np.zeros(2, int), [], []
        with contextlib.closing(frames(clip)) as pictures:
            for picture in itertools.islice(pictures, DRAWN):
                labels = segmenter.segment(picture)
                wanted = sp.smooth_labels(labels, smoothness) if smoothness else labels
                options = {"line_width": 0, "tolerance": TOLERANCE, "smoothness": smoothness,
                           "ids": [f"track-{track}" for track in segmenter.regions["track_id"]]}
                both = [sp.to_svg(labels, picture, shading=shading, **options) for shading in (False, True)]
                drawing = rendered(sharp(both[0])).astype(int)
                code = drawing[..., :3] @ [1 << 16, 1 << 8, 1]
                none = (code % 997 != 0) | (code == 0) | (code > 997 * len(options["ids"])) | (drawing[..., 3] < 255)
                far = ~none & (code // 997 - 1 != wanted) & ~borders(wanted)
                pixels, counts = pixels + code.size, counts + [none.sum(), far.sum()]
                sizes.append([size for text in both for size in (len(text), len(gzip.compress(text.encode())))])
                shares.append([explained(picture, rendered(text)[..., :3]) for text in both])
        of_sizes = (f"{low / 1000:.0f} to {high / 1000:.0f}" for low, high in zip(np.min(sizes, axis=0), np.max(sizes, axis=0)))
        row(f"{name}, {number}, {smoothness:g}", pixels, *counts, *of_sizes, *(f"{share:.4f}" for share in np.mean(shares, axis=0)))


def found_in(folders):
    """The photographs of folders, and their clips by name: a file, or a list of pictures."""
    photographs, clips = [], []
    for folder in folders:
        photographs += sorted(folder.glob("*.jpg"))
        clips += [(path.name, path) for path in sorted(folder.iterdir()) if path.suffix in CLIPS]
        clips += [(path.parent.name, sorted(path.glob("*.jpg"))) for path in sorted(folder.rglob("frames")) if path.is_dir()]
    return photographs, clips


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--regions", default="120,400", help="comma separated")
    parser.add_argument("--parts", default="outlines,colors,still,palette,vectors", help="what to measure, comma separated")
    parser.add_argument("--still", default=2, type=int, help="codes by which still pixels of the input change at most")
    parser.add_argument("--palette", default=12, type=int, help="colors of the palette")
    parser.add_argument("--cut", default=30.0, type=float, help="mean change of the input in codes that is a cut")
    parser.add_argument("--limit", default=0, type=int, help="take only so many photographs and clips")
    args = parser.parse_args()
    photographs, clips = (all_[: args.limit or None] for all_ in found_in(args.data))
    regions = [int(number) for number in args.regions.split(",")]
    of_photographs = {"outlines": lambda: outlines(photographs, regions), "colors": lambda: colors(photographs, regions)}
    of_clips = {"still": lambda: still(clips, regions, args.still), "palette": lambda: palette(clips, regions, args.palette, args.cut),
                "vectors": lambda: vectors(clips, regions)}
    parts = args.parts.split(",")
    if unknown := set(parts) - of_photographs.keys() - of_clips.keys():
        sys.exit(f"--parts has {', '.join(sorted(unknown))}: give some of {', '.join([*of_photographs, *of_clips])}")
    for part in parts:
        given, what = (photographs, "photograph") if part in of_photographs else (clips, "clip")
        if given:
            (of_photographs | of_clips)[part]()
        else:
            print(f"\n{part}: left out, as --data has no {what}.", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main()
