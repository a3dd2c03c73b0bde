# SPDX-License-Identifier: MPL-2.0
"""Frames of the stage for Ray Data: times from the start of the clip, pictures upright, as superpixel-clip has them."""

import json
import os
import struct
import subprocess
from fractions import Fraction

import pytest

from conftest import PROGRAM

np = pytest.importorskip("numpy", reason="NumPy is not installed in this environment")
av = pytest.importorskip("av", reason="PyAV is not installed in this environment")
from superpixel_stage import CLOCK, WRAP, Times, decode, upright

FRAMES, RATE = 10, 25
STEP = 1_000_000_000 // RATE


def write(path, first=0, options=None, codec="mpeg4", sound_ahead=0):
    """A clip of 96x64 px whose picture begins with frame `first`, and its sound so many frames earlier."""
    with av.open(str(path), "w", options=options or {}) as out:
        stream = out.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        if sound_ahead:
            sound = out.add_stream("pcm_s16le", rate=8000, layout="mono")
            for number in range(sound_ahead + FRAMES):
                samples = av.AudioFrame.from_ndarray(np.zeros((1, 320), np.int16), format="s16", layout="mono")
                samples.rate, samples.pts, samples.time_base = (
                    8000,
                    320 * (first - sound_ahead + number),
                    Fraction(1, 8000),
                )
                out.mux(sound.encode(samples))
        for number in range(FRAMES):
            picture = np.zeros((64, 96, 3), np.uint8)
            # No orientation gives the same picture as another.
            picture[4:20, 4 : 40 + 2 * number] = 220
            frame = av.VideoFrame.from_ndarray(picture, format="rgb24")
            frame.pts, frame.time_base = first + number, Fraction(1, RATE)
            out.mux(stream.encode(frame))
        out.mux(stream.encode())


def turn(path, matrix):
    """Writes a matrix into the header of the track, as telephones do."""
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 4
    at = start + (4 + 32 if data[start] else 4 + 20) + 8 + 8
    a, b, c, d = (65536 * value for value in matrix)
    data[at : at + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)


# x' = a x + c y, y' = b x + d y, and the picture that a viewer sees.
ORIENTATIONS = {
    "as it is": ((1, 0, 0, 1), lambda image: image),
    "a quarter turn to the right": ((0, 1, -1, 0), lambda image: np.rot90(image, -1)),
    "half a turn": ((-1, 0, 0, -1), lambda image: np.rot90(image, 2)),
    "a quarter turn to the left": ((0, -1, 1, 0), np.rot90),
    "mirrored": ((-1, 0, 0, 1), np.fliplr),
    "upside down": ((1, 0, 0, -1), np.flipud),
    "along the diagonal": ((0, 1, 1, 0), lambda image: image.swapaxes(0, 1)),
    "along the other diagonal": ((0, -1, -1, 0), lambda image: np.rot90(image, 2).swapaxes(0, 1)),
}


@pytest.mark.parametrize("name", ORIENTATIONS)
def test_pictures_are_upright_in_all_orientations(tmp_path, name):
    matrix, look = ORIENTATIONS[name]
    write(tmp_path / "plain.mp4")
    plain = [image for _, image in decode(str(tmp_path / "plain.mp4"))]
    write(tmp_path / "turned.mp4")
    turn(tmp_path / "turned.mp4", matrix)
    turned = [image for _, image in decode(str(tmp_path / "turned.mp4"))]
    assert len(turned) == len(plain) == FRAMES
    for one, other in zip(turned, plain):
        assert one.shape == look(other).shape
        assert (one == look(other)).all()
        assert one.flags.c_contiguous


def test_other_turns_are_left():
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for matrix in (None, (46341, 46341, -46341, 46341), (0, 0, 0, 0), (65536, 0, 3, 65536)):
        assert upright(image, matrix) is image


@pytest.mark.parametrize(
    ("name", "options", "offset"),
    [
        ("plain.mkv", {}, 0),
        ("late.mkv", {"first": 125}, 0),
        ("early.mkv", {"first": 125, "sound_ahead": 30}, 30),
        ("on_air.ts", {"options": {"output_ts_offset": "1000"}, "codec": "mpeg2video"}, 0),
        # The clock of MPEG streams begins again after 95,443.7 s, here between two frames.
        ("wrap.ts", {"options": {"output_ts_offset": "95442.1"}, "codec": "mpeg2video"}, 0),
        ("plain.avi", {}, 0),
    ],
)
def test_times_count_from_the_start_of_the_clip(tmp_path, name, options, offset):
    write(tmp_path / name, **options)
    times = [time for time, _ in decode(str(tmp_path / name))]
    # Matroska has milliseconds.
    assert times == [pytest.approx((offset + number) * STEP, abs=1_000_000) for number in range(FRAMES)]


def test_a_clock_of_33_bits_goes_on():
    base = Fraction(1, CLOCK)
    start = WRAP - 2 * CLOCK
    times = Times(base, start * base)
    stamps = [(start + number * CLOCK // 2) % WRAP for number in range(10)]
    assert [times.of(stamp, base) for stamp in stamps] == [number * 500_000_000 for number in range(10)]
    # A recording of three days goes around it twice and more.
    times = Times(base, Fraction(0))
    hours = [times.of(3600 * CLOCK * hour % WRAP, base) for hour in range(72)]
    assert hours == [3_600_000_000_000 * hour for hour in range(72)]
    # Another container's clock does not go around.
    times = Times(Fraction(1, 1000), None)
    assert [times.of(pts, Fraction(1, 1000)) for pts in (500, None, 700, 200_000_000_000)] == [
        0,
        -1,
        200_000_000,
        199_999_999_500_000_000,
    ]
    assert times.of(0, Fraction(1, 1000)) == 0


def test_the_program_says_the_same(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed in this environment")
    write(tmp_path / "late.mkv", first=125)
    write(tmp_path / "early.mkv", first=125, sound_ahead=30)
    write(tmp_path / "on_air.ts", options={"output_ts_offset": "1000"}, codec="mpeg2video")
    # GStreamer's demuxer for MP4 reads turns; before 1.24 it did not read mirrors.
    for name in (name for name in ORIENTATIONS if "turn" in name or name == "as it is"):
        write(tmp_path / f"{name}.mp4")
        turn(tmp_path / f"{name}.mp4", ORIENTATIONS[name][0])
    for clip in sorted(tmp_path.glob("*.m??")) + [tmp_path / "on_air.ts"]:
        out = tmp_path / "out" / clip.name
        out.parent.mkdir(exist_ok=True)
        # A decoder of GStreamer 1.22 warns where a picture begins after its sound, which is not fatal to users.
        quiet = {name: value for name, value in os.environ.items() if name != "G_DEBUG"}
        subprocess.run([PROGRAM, clip, out, "superpixel-size=16"], check=True, stdout=subprocess.DEVNULL, env=quiet)
        frames = list(decode(str(clip)))
        facts = json.loads((out / "clip.json").read_text())
        assert (facts["width"], facts["height"]) == frames[0][1].shape[1::-1], clip.name
        rows = pq.read_table(out / "regions.parquet", columns=["frame", "pts_ns", "mean_r"]).to_pydict()
        first = {frame: time for frame, time in zip(rows["frame"], rows["pts_ns"])}
        # Demuxers of streams take the start from a clock that is some milliseconds ahead.
        assert list(first.values()) == [pytest.approx(time, abs=STEP) for time, _ in frames], clip.name
        # The label map lies on the picture of the stage: means over its regions are those of the table.
        with av.open(str(out / "labels.mkv")) as container:
            labels = next(container.decode(video=0)).to_ndarray().ravel()
        means = np.bincount(labels, frames[0][1][..., 0].ravel()) / np.bincount(labels)
        assert means == pytest.approx(rows["mean_r"][: len(means)], abs=6), clip.name
