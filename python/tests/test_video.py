# SPDX-License-Identifier: MPL-2.0
"""Frames of video files are those that a Segmenter gives of what PyAV decodes, upright, with times from the file's start."""

import contextlib
import os
import sys
from fractions import Fraction

import numpy as np
import pytest
import superpixels as sp
from picture import ROOT, rgba

CLIP = ROOT / "media/bigbuckbunny.mp4"


@pytest.fixture(autouse=True)
def without_pyav(request):
    """All but what is said where there is none need it."""
    if "missing" not in request.node.name:
        pytest.importorskip("av", reason="PyAV is not installed")


def moving(count, cut=None):
    """A picture that moves by 4 px a frame, and from the cut on the same turned around, in other colors."""
    large = rgba(200, 80)[..., :3].copy()
    frames = [large[:, 4 * i : 4 * i + 128] for i in range(count)]
    return [255 - frame[::-1, ::-1] if cut is not None and i >= cut else frame for i, frame in enumerate(frames)]


def write(path, frames, codec="mpeg4", form=None, rotation=0, first=0):
    import av

    with av.open(str(path), "w", format=form) as container:
        stream = container.add_stream(codec, rate=10, options={"qscale": "2"})
        stream.height, stream.width = frames[0].shape[:2]
        stream.pix_fmt = "yuv420p"
        if rotation:
            stream.set_display_rotation(rotation)
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            frame.pts, frame.time_base = first + number, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def open_files():
    return sum(os.path.islink(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd"))


@pytest.mark.parametrize(
    "algorithm, parameters", [("slic", {"n_segments": 150}), ("lsc", {"superpixel_size": 40, "merge": 4.0})]
)
def test_frames_are_those_of_a_segmenter(algorithm, parameters):
    import av

    segmenter, births = sp.Segmenter(algorithm, temporal=True, events=True, **parameters), 0
    with av.open(str(CLIP)) as container:
        for wanted, frame in zip(range(4), sp.segment_video(CLIP, algorithm, **parameters)):
            decoded = next(container.decode(video=0))
            assert frame.index == wanted and frame.pts == decoded.pts and frame.seconds == pytest.approx(wanted / 25)
            assert np.array_equal(frame.image, decoded.to_ndarray(format="rgb24"))
            assert np.array_equal(frame.labels, segmenter.segment(frame.image))
            for name in ("regions", "motion", "neighbors", "events", "births", "deaths"):
                assert np.array_equal(getattr(frame, name), getattr(segmenter, name)), name
            assert repr(frame) == f"Frame({wanted}, {wanted / 25:.3f} s, 1280x720, {segmenter.n_regions} regions)"
            births += len(frame.births)
    assert births > 0


def test_cuts_and_what_merged(tmp_path):
    frames = list(sp.segment_video(write(tmp_path / "clip.mkv", moving(14, cut=9)), superpixel_size=8))
    assert [frame.index for frame in frames if frame.is_cut] == [9]
    assert sorted(frames[9].births.tolist()) == sorted(frames[9].regions["track_id"].tolist())
    merged = 0
    for before, frame in zip(frames, frames[1:]):
        gone, now = set(frame.deaths.tolist()), set(frame.regions["track_id"].tolist())
        assert gone == set(before.regions["track_id"].tolist()) - now
        assert set(frame.merged_into) <= gone and set(frame.merged_into.values()) <= now
        merged += len(frame.merged_into)
    assert merged > 0
    # Each frame has arrays of its own.
    assert not any(np.shares_memory(frames[0].image, frame.image) for frame in frames[1:])


@pytest.mark.parametrize(
    "name, form, first", [("a.mp4", None, 0), ("a.mkv", None, 30), ("a.ts", "mpegts", 30), ("a.avi", "avi", 0)]
)
def test_seconds_are_from_the_start(name, form, first, tmp_path):
    path = write(tmp_path / name, moving(5), form=form, first=first)
    frames = list(sp.segment_video(path, superpixel_size=16))
    assert [frame.seconds for frame in frames] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert first == 0 or frames[0].pts > 0


@pytest.mark.parametrize("rotation", [90, 180, -90])
def test_clips_are_upright(rotation, tmp_path):
    import av

    if not hasattr(av.VideoStream, "set_display_rotation"):
        pytest.skip("this PyAV writes no turned clips")
    image = moving(1)[0]
    frame = next(sp.segment_video(write(tmp_path / "phone.mp4", [image], rotation=rotation), superpixel_size=16))
    # Angles count counterclockwise.
    upright = np.rot90(image, rotation // 90)
    assert frame.image.shape == upright.shape and frame.labels.shape == upright.shape[:2]
    assert np.abs(frame.image.astype(int) - upright).mean() < 12


def test_files_are_closed(tmp_path):
    path, before = write(tmp_path / "clip.mkv", moving(5)), open_files()

    def leave(how):
        frames = sp.segment_video(path, superpixel_size=16)
        assert open_files() > before
        how(frames)

    def stop(frames):
        with contextlib.suppress(KeyboardInterrupt):
            for _ in frames:
                raise KeyboardInterrupt

    for how in (
        list,
        next,
        stop,
        lambda frames: None,
        lambda frames: frames.close(),
        lambda frames: [next(frames), frames.close()],
    ):
        leave(how)
        assert open_files() == before
    with contextlib.closing(sp.segment_video(path, superpixel_size=16)) as frames:
        next(frames)
    assert open_files() == before


def test_refusals_are_of_the_call(tmp_path):
    import av

    before = open_files()
    with pytest.raises(FileNotFoundError):
        sp.segment_video(tmp_path / "none.mp4")
    with pytest.raises(ValueError, match="Invalid data"):
        sp.segment_video(ROOT / "README.md")
    with av.open(str(tmp_path / "sound.wav"), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        sound.rate = 8000
        container.mux(stream.encode(sound))
    with pytest.raises(ValueError, match="sound.wav has no video"):
        sp.segment_video(tmp_path / "sound.wav")
    with pytest.raises(ValueError, match="temporal must be True"):
        sp.segment_video(CLIP, temporal=False)
    with pytest.raises(TypeError, match="compactnes"):
        sp.segment_video(CLIP, compactnes=3)
    with pytest.raises(ValueError, match="n_segments"):
        sp.segment_video(CLIP, n_segments=-3)
    assert open_files() == before


def test_a_missing_or_old_pyav_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError, match="pip install av"):
        sp.segment_video(CLIP)
    old = type(sys)("av")
    old.VideoFrame, old.__version__ = object, "10.0.0"
    monkeypatch.setitem(sys.modules, "av", old)
    with pytest.raises(ImportError, match="PyAV 14 or newer.*here 10.0.0"):
        sp.segment_video(CLIP)
