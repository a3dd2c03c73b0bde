# SPDX-License-Identifier: MPL-2.0
"""What people see of a run: a progress bar, a report in words, JSON and HTML with a plot of the throughput."""

from __future__ import annotations

import html
import json
import math
import sys
import time
from collections import Counter
from statistics import median
from typing import TextIO

from .output import shown
from .records import Clip
from .storage import Place, new_only
from .task import Outcome

BAR = 24
# Lines a minute where nobody watches a terminal.
QUIET = 10.0
STEPS = 60
PLOT_WIDTH, PLOT_HEIGHT, LEFT, BOTTOM = 760, 260, 64, 32


class Report:
    """Counts what happens in a run."""

    def __init__(self, run: str, clips: int, before: int, slots: int) -> None:
        self.run, self.clips, self.before, self.slots = run, clips, before, slots
        self.began = time.time()
        self.start = time.monotonic()
        self.end: float | None = None
        self.done = self.short = self.frames = 0
        self.retries: Counter[str] = Counter()
        self.failed: list[dict] = []
        # What went wrong beside clips, for instance a record that could not be written.
        self.notes: list[str] = []
        # (seconds since the start, seconds that the piece took, frames)
        self.pieces: list[tuple[float, float, int]] = []
        # Seconds to the first frame, for the first piece of a process and for others.
        self.first: dict[bool, list[float]] = {True: [], False: []}

    def worked(self, frames: int, outcome: Outcome) -> None:
        """A piece has given frames."""
        self.frames += frames
        self.pieces.append((time.monotonic() - self.start, outcome.seconds, frames))
        if (first := outcome.summary.get("first_frame_seconds")) is not None:
            self.first[outcome.fresh].append(first)

    def did(self, clip: Clip, outcome: Outcome) -> None:
        """A clip is done."""
        self.done += 1
        self.short += bool(outcome.summary.get("short"))

    def tried(self, outcome: Outcome) -> None:
        """A piece will be tried again."""
        self.retries[outcome.kind] += 1

    def gave_up(self, clip: Clip, outcome: Outcome) -> None:
        """A clip has failed for good."""
        self.failed.append({"path": clip.path, "kind": outcome.kind, "error": outcome.error})

    def note(self, text: str) -> None:
        """Something beside a clip has failed."""
        self.notes.append(text)

    @property
    def seconds(self) -> float:
        """How long the run took, or takes so far."""
        return (self.end or time.monotonic()) - self.start

    @property
    def rate(self) -> float:
        """Frames a second."""
        return self.frames / max(self.seconds, 1e-9)

    def to_json(self) -> dict:
        """The report as data."""
        return {
            "run": self.run,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.began)),
            "seconds": round(self.seconds, 3),
            "clips": self.clips,
            "done_before": self.before,
            "done": self.done,
            "short": self.short,
            "failed": dict(Counter(item["kind"] for item in self.failed)),
            "retries": dict(self.retries),
            "frames": self.frames,
            "frames_per_second": round(self.rate, 2),
            "tasks_at_a_time": self.slots,
            "first_frame_seconds": {
                name: round(median(self.first[fresh]), 3)
                for name, fresh in (("new_process", True), ("same_process", False))
                if self.first[fresh]
            },
            "failures": self.failed,
            "notes": self.notes,
            "throughput": [(round(at, 1), round(rate, 2)) for at, rate in throughput(self.pieces, self.seconds)],
        }

    def to_text(self) -> str:
        """The report in a few lines."""
        kinds = Counter(item["kind"] for item in self.failed)
        lines = [
            f"{self.done} clips done, {len(self.failed)} failed, {self.before} were done before, of {self.clips}",
            f"{self.frames} frames in {self.seconds:.1f} s: {self.rate:.1f} frames a second",
        ]
        if kinds:
            lines.append("failed: " + ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())))
            lines += [
                f"  {item['kind']:8} {shown(item['path'])}: {shown(item['error'])[:160]}" for item in self.failed[:20]
            ]
        if self.retries:
            lines.append("tried again: " + ", ".join(f"{n} {kind}" for kind, n in sorted(self.retries.items())))
        if self.short:
            lines.append(f"{self.short} clips are shorter than they say: `short` in their clip.json")
        lines += [f"beside that: {shown(note)}" for note in self.notes[:20]]
        return "\n".join(lines)


def throughput(pieces: list[tuple[float, float, int]], seconds: float) -> list[tuple[float, float]]:
    """Frames a second over time: the frames of each piece are spread over the time that it took."""
    if not pieces or seconds <= 0:
        return []
    step = seconds / STEPS
    frames = [0.0] * STEPS
    for end, took, count in pieces:
        took = max(min(took, end), 1e-6)
        first, last = int((end - took) / step), min(int(end / step), STEPS - 1)
        for index in range(max(first, 0), last + 1):
            shared = min(end, (index + 1) * step) - max(end - took, index * step)
            frames[index] += count * max(shared, 0.0) / took
    return [((index + 0.5) * step, count / step) for index, count in enumerate(frames)]


def marks(top: float) -> list[float]:
    """Round numbers from 0 to at most `top`, five or so."""
    step = 10.0 ** math.floor(math.log10(top / 5))
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= 6)
    return [step * number for number in range(int(top / step) + 1)]


def plot(points: list[tuple[float, float]], seconds: float, mean: float) -> str:
    """The throughput as SVG."""
    top = max([rate for _, rate in points] + [mean, 1e-9]) * 1.1

    def x(at: float) -> float:
        return LEFT + (PLOT_WIDTH - LEFT - 8) * at / seconds

    def y(rate: float) -> float:
        return (PLOT_HEIGHT - BOTTOM) * (1 - rate / top) + 4

    def label(at_x: float, at_y: float, text: str, anchor: str) -> str:
        return f'<text x="{at_x:.1f}" y="{at_y:.1f}" text-anchor="{anchor}">{text}</text>'

    parts = []
    for rate in marks(top):
        parts.append(f'<line x1="{LEFT}" x2="{PLOT_WIDTH - 8}" y1="{y(rate):.1f}" y2="{y(rate):.1f}" stroke="#ddd"/>')
        parts.append(label(LEFT - 8, y(rate) + 4, f"{rate:.4g}", "end"))
    parts += [label(x(at), PLOT_HEIGHT - 8, f"{at:g} s", "middle") for at in marks(seconds)]
    line = " ".join(f"{x(at):.1f},{y(rate):.1f}" for at, rate in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#1f6feb" stroke-width="2"/>')
    across = f'x1="{LEFT}" x2="{PLOT_WIDTH - 8}" y1="{y(mean):.1f}" y2="{y(mean):.1f}"'
    parts.append(f'<line {across} stroke="#b35900" stroke-dasharray="6 4"/>')
    parts.append(label(PLOT_WIDTH - 12, y(mean) - 6, f"mean {mean:.4g}", "end"))
    size = f'width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}" viewBox="0 0 {PLOT_WIDTH} {PLOT_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">{"".join(parts)}</svg>'
    )


def to_html(report: Report, header: dict) -> str:
    """The report as a page that needs nothing else."""
    seconds = max(report.seconds, 1e-3)
    drawing = plot(throughput(report.pieces, seconds), seconds, report.rate)
    facts = "".join(
        f"<tr><th>{html.escape(shown(name))}</th><td>{html.escape(shown(value))}</td></tr>"
        for name, value in header.items()
    )
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(shown(item[name]))}</td>" for name in ("kind", "path", "error")) + "</tr>"
        for item in report.failed
    )
    failures = (
        f"<h2>Failures</h2><table><tr><th>kind</th><th>clip</th><th>error</th></tr>{rows}</table>" if rows else ""
    )
    return (
        "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Superpixels of a corpus</title>"
        "<style>body{font-family:sans-serif;margin:2em;max-width:60em}table{border-collapse:collapse}"
        "td,th{padding:2px 12px 2px 0;text-align:left;vertical-align:top}pre{white-space:pre-wrap}</style>"
        f"<h1>Run {html.escape(report.run)}</h1><pre>{html.escape(report.to_text())}</pre>"
        f"<h2>Frames a second</h2>{drawing}{failures}<h2>Plan</h2><table>{facts}</table></html>\n"
    )


class Progress:
    """A bar on a terminal, or a line now and then elsewhere."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self.stream, self.last = stream, 0.0
        self.live = stream.isatty()

    def __call__(self, report: Report, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self.last < (0.2 if self.live else QUIET):
            return
        self.last = now
        ended = report.done + len(report.failed)
        total = max(report.clips - report.before, 1)
        full = BAR * ended // total
        left = report.seconds / ended * (total - ended) if ended else 0
        ahead = (
            f", {int(left) // 3600}:{int(left) // 60 % 60:02}:{int(left) % 60:02} left" if ended and not last else ""
        )
        line = (
            f"[{'#' * full}{'.' * (BAR - full)}] {ended}/{total} clips, {len(report.failed)} failed, "
            f"{report.frames} frames, {report.rate:.1f} frames/s{ahead}"
        )
        self.stream.write(f"\r{line}\x1b[K" + ("\n" if last else "") if self.live else line + "\n")
        self.stream.flush()


def save(destination: Place, report: Report, header: dict) -> None:
    """Writes the report into the destination."""
    for ending, text in (("json", json.dumps(report.to_json(), indent=2) + "\n"), ("html", to_html(report, header))):
        destination.write(f"_reports/{report.run}.{ending}", text.encode(errors="backslashreplace"), new_only)
