# SPDX-License-Identifier: MPL-2.0
"""Events of a Segmenter: what became of regions from frame to frame."""

import re

import numpy as np
import pytest
import superpixels as sp
from picture import rgba

BIRTH, SPLIT, DEATH, MERGE, CUT = sp.EventKind


def test_kinds_are_those_of_the_library():
    line = next(line for line in sp.Segmenter.events.__doc__.splitlines() if line.startswith("- `kind`"))
    told = {name.upper(): int(number) for number, name in re.findall(r"(\d+) (\w+)", line.split(": ", 1)[1])}
    assert told == {kind.name: kind.value for kind in sp.EventKind}


def frames(count):
    """A picture that moves by 5 px a frame."""
    large = rgba(240, 160)[..., :3].copy()
    return [large[:120, 5 * i : 5 * i + 160] for i in range(count)]


def test_events_tell_new_and_gone_track_ids():
    segmenter, ids, kinds = sp.Segmenter(superpixel_size=9, temporal=True, events=True), set(), set()
    for number, frame in enumerate(frames(12)):
        segmenter.segment(frame)
        now, events = set(segmenter.regions["track_id"].tolist()), segmenter.events
        if number == 0:
            assert len(events) == 0 and not segmenter.is_cut
        else:
            assert set(segmenter.births.tolist()) == now - ids
            assert set(segmenter.deaths.tolist()) == ids - now
            assert (events["other"] != 0).tolist() == np.isin(events["kind"], (SPLIT, MERGE)).tolist()
            assert set(events["other"].tolist()) - {0} <= now & ids
        areas = dict(zip(segmenter.regions["track_id"].tolist(), segmenter.regions["area"].tolist()))
        for event in events[np.isin(events["kind"], (BIRTH, SPLIT))]:
            assert areas[int(event["track_id"])] == event["area"]
        kinds |= set(events["kind"].tolist())
        ids = now
    assert kinds >= {BIRTH, SPLIT, DEATH, MERGE}


def test_cuts():
    segmenter = sp.Segmenter(superpixel_size=9, temporal=True, events=True)
    picture = frames(1)[0]
    other = np.random.default_rng(1).integers(0, 255, (15, 20, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    for frame, cut in ((picture, False), (picture, False), (other, True), (other, False)):
        segmenter.segment(frame)
        assert segmenter.is_cut is cut
        assert (segmenter.events["kind"] == CUT).nonzero()[0].tolist() == [0] * cut
    segmenter.reset()
    segmenter.segment(picture)
    assert len(segmenter.events) == 0 and not segmenter.is_cut
    # Of a clip the last frame's.
    segmenter.segment(np.stack([picture, other]))
    assert segmenter.is_cut


def test_what_events_need():
    picture = frames(1)[0]
    for missing in ("events", "regions", "temporal"):
        segmenter = sp.Segmenter(**{"events": True, "regions": True, "temporal": True, missing: False})
        segmenter.segment(picture)
        for name in ("events", "is_cut", "births", "deaths"):
            with pytest.raises(RuntimeError, match=f"{missing}=True"):
                getattr(segmenter, name)
    with pytest.raises(RuntimeError, match="no frame"):
        sp.Segmenter(events=True, temporal=True).events
