# SPDX-License-Identifier: MPL-2.0
"""What the tests of the corpus share: clips that are made here, the program, and the way to call corpus.py."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "pipelines/cluster/corpus.py"
PROGRAM = os.environ.get("SUPERPIXEL_CLIP", str(ROOT / "target/debug/superpixel-clip"))
WIDTH, HEIGHT, FRAMES = 160, 120, 40
sys.path.insert(0, str(CORPUS.parent))


def make_clip(path, pattern="ball", frames=FRAMES, tail="x264enc ! matroskamux"):
    """A small video."""
    path.parent.mkdir(parents=True, exist_ok=True)
    source = f"videotestsrc num-buffers={frames} pattern={pattern} ! video/x-raw,width={WIDTH},height={HEIGHT},framerate=30/1"
    # Words of no shell.
    subprocess.run(["gst-launch-1.0", "-q", *f"{source} ! {tail} ! filesink".split(), f"location={path}"], check=True)


def make_scenes(path):
    """A clip of three scenes."""
    scenes = [path.parent / f"scene{number}.mkv" for number in range(3)]
    for scene, pattern in zip(scenes, ("smpte", "pinwheel", "gamut")):
        make_clip(scene, pattern=pattern, tail="x264enc key-int-max=9 ! matroskamux")
    sources = [word for scene in scenes for word in f"filesrc location={scene} ! decodebin ! queue ! c.".split()]
    tail = f"concat name=c ! x264enc key-int-max=9 ! matroskamux ! filesink location={path}".split()
    subprocess.run(["gst-launch-1.0", "-q", *sources, *tail], check=True)
    for scene in scenes:
        scene.unlink()


def corpus(*words, expect=0):
    """Runs corpus.py to its end and returns what it prints."""
    command = [sys.executable, str(CORPUS), *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=150)
    assert done.returncode == expect, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def last_report(destination):
    """The newest report of a folder."""
    return json.loads(
        max((destination / "_reports").glob("*.json"), key=lambda path: path.stat().st_mtime_ns).read_text()
    )


def failures(destination):
    """Kinds of failures by clip."""
    found = sorted((destination / "failed").rglob("*.json")) if (destination / "failed").exists() else []
    return {
        record["path"]: (record["kind"], record["tries"])
        for record in map(json.loads, (path.read_text() for path in found))
    }


def labels(folder):
    """All label maps of a folder: frames, height, width."""
    np = pytest.importorskip("numpy", reason="NumPy is not installed in this environment")
    raw = folder.parent / f"{folder.name}.raw"
    chain = "matroskademux ! avdec_ffv1 ! video/x-raw,format=GRAY16_LE ! filesink"
    words = [
        "gst-launch-1.0",
        "-q",
        "filesrc",
        f"location={folder / 'labels.mkv'}",
        "!",
        *chain.split(),
        f"location={raw}",
    ]
    subprocess.run(words, check=True)
    summary = json.loads((folder / "clip.json").read_text())
    maps = np.fromfile(raw, "<u2").reshape(summary["frames"], summary["height"], summary["width"])
    raw.unlink()
    return maps


def check_output(folder):
    """Whether labels and tables of a clip say the same."""
    np = pytest.importorskip("numpy", reason="NumPy is not installed in this environment")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed in this environment")
    regions = pq.read_table(folder / "regions.parquet", columns=["frame", "label", "area"]).to_pydict()
    frame, label, area = (np.array(regions[name]) for name in ("frame", "label", "area"))
    maps = labels(folder)
    assert frame.max() + 1 == len(maps)
    for number, image in enumerate(maps):
        own = frame == number
        assert (label[own] == np.arange(own.sum())).all()
        assert (np.bincount(image.ravel(), minlength=own.sum()) == area[own]).all()


def assert_nothing_left(destination):
    """No scratch, no parts, no half-written file."""
    left = [path for name in ("_scratch", "_parts") for path in (destination / name).rglob("*")]
    assert left == []
    assert [path for path in destination.rglob(".*")] == []


def children(name):
    """Processes whose program has that name, with their parents."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if Path(os.readlink(folder / "exe")).name == name:
                status = (folder / "stat").read_text()
                found.append((int(folder.name), int(status.rpartition(")")[2].split()[1])))
        except OSError:
            continue
    return found


def wait_for(what, seconds=60):
    """Waits for a condition and returns what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it does not come")


# Answers as superpixel-clip does, without GStreamer: its label map is the hash of the clip, SECONDS after it was
# asked and once GATE is there.
STAND_IN = """#!/usr/bin/env python3
import ctypes, hashlib, json, os, sys, time

if sys.argv[1] == "check":
    print(json.dumps({{"properties": dict(word.split("=", 1) for word in sys.argv[2:]), "version": "0"}}))
    sys.exit()
ctypes.CDLL(None).prctl(1, 9)  # ends with its parent, as --parent has it
if os.getppid() != int(sys.argv[sys.argv.index("--parent") + 1]):
    sys.exit("the parent has ended")
for line in sys.stdin:
    job = json.loads(line)
    words = job["arguments"]
    with open({notes!r}, "a") as notes:
        notes.write("x")
    partial = os.path.join(os.path.dirname(words[1]), f".out.partial-{{os.getpid()}}")
    os.makedirs(partial)
    end = time.monotonic() + {seconds}
    while not os.path.exists({gate!r}):
        time.sleep(0.01)
    with open(words[0], "rb") as clip:
        content = clip.read()
    facts = {{"schema": 1, "key": words[words.index("--key") + 1], "frames": 3, "width": 4, "height": 2, "tracks": 9,
             "regions": 20, "adjacency": 40, "short": False, "source": words[0]}}
    for name in ("labels.mkv", "regions.parquet", "adjacency.parquet"):
        with open(os.path.join(partial, name), "w") as file:
            file.write(hashlib.sha256(content).hexdigest())
        time.sleep(max(0.0, end - time.monotonic()) / 3)
    with open(os.path.join(partial, "clip.json"), "w") as marker:
        json.dump(facts, marker)
    os.rename(partial, words[1])
    print(json.dumps({{"id": job["id"], "event": "done", **facts}}), flush=True)
"""


# A `clip.json` of somebody else's run.
MARKER = {
    "schema": 1,
    "key": "0",
    "frames": 3,
    "width": 4,
    "height": 2,
    "tracks": 9,
    "regions": 20,
    "adjacency": 40,
    "short": False,
}


@pytest.fixture
def stand_in(tmp_path):
    """A program in the place of superpixel-clip; a clip takes it so many seconds, or until a file is there."""

    def make(seconds=0.0, gate="/"):
        program = tmp_path / f"stand-in-{seconds}{'-gate' if gate != '/' else ''}"
        program.write_text(STAND_IN.format(seconds=seconds, notes=str(tmp_path / "pieces"), gate=str(gate)))
        program.chmod(0o755)
        return program

    return make


def refused(*words):
    """Runs corpus.py, which says no in words, and returns them."""
    done = subprocess.run(
        [sys.executable, str(CORPUS), *map(str, words)], check=False, capture_output=True, text=True, timeout=150
    )
    assert done.returncode not in (0, None), done.stdout
    assert done.returncode > 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.stderr.startswith("corpus.py: "), done.stderr
    return done.stderr


def tree(folder):
    """All that a folder has: kind, and content or target, by path, with the time of files."""
    found = {}
    for path in sorted(os.fsencode(path) for path in [folder, *Path(folder).rglob("*")]):
        if os.path.islink(path):
            found[path] = ("link", os.readlink(path))
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                found[path] = ("file", file.read(), os.stat(path).st_mtime_ns, os.stat(path).st_ino)
        else:
            found[path] = ("folder",)
    return found


HARM = """#!/usr/bin/env python3
import json, os, signal, sys, time

HARMS, PROGRAM, NOTES = {harms!r}, {program!r}, {notes!r}


def harm(kind, name, folder):
    while not any(name.startswith(".out.partial") for name in os.listdir(os.path.dirname(folder))):
        time.sleep(0.001)
    note = os.path.join(NOTES, name)
    if kind == "hang":
        os.kill(program, signal.SIGSTOP)
    elif kind == "worker":
        os.kill(worker, signal.SIGKILL)
    elif kind == "crash" or not os.path.exists(note):
        open(note, "w").close()
        os.kill(program, signal.SIGABRT)  # GStreamer handles SIGSEGV while it loads plugins


if sys.argv[1] == "serve":
    program, worker = os.getpid(), os.getppid()
    with open(os.path.join(NOTES, "starts"), "a") as starts:
        starts.write("x")
    read, write = os.pipe()
    if os.fork() == 0:
        # Looks at what is sent, while the parent becomes the program.
        os.close(read)
        for number in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        for line in sys.stdin.buffer:
            os.write(write, line)
            words = json.loads(line)["arguments"]
            name = os.path.basename(words[0])
            for part, kind in HARMS.items():
                if part in name:
                    harm(kind, name, words[1])
        os._exit(0)
    os.close(write)
    os.dup2(read, 0)
    os.close(read)
os.execv(PROGRAM, [PROGRAM, *sys.argv[1:]])
"""


class Harmed:
    """The program, whose process comes to harm in the middle of clips with such names.

    `crash` and `once`, which is a crash at the first try, `hang`, and `worker`, which kills the parent.
    """

    def __init__(self, folder, **harms):
        self.notes = folder / "notes"
        self.notes.mkdir()
        self.script = folder / "program"
        self.script.write_text(HARM.format(harms=harms, program=PROGRAM, notes=str(self.notes)))
        self.script.chmod(0o755)

    def __str__(self):
        return str(self.script)

    def starts(self):
        """How many processes have been started for clips since the last call."""
        log = self.notes / "starts"
        count = len(log.read_text()) if log.exists() else 0
        log.unlink(missing_ok=True)
        return count


@pytest.fixture(scope="session")
def clips(tmp_path_factory):
    """Eight clips in folders, one of garbage and one that is cut off."""
    folder = tmp_path_factory.mktemp("clips")
    for number in range(8):
        make_clip(
            folder / f"camera {number % 2}" / f"{number}.mkv",
            pattern=("ball", "smpte", "circular", "pinwheel")[number % 4],
        )
    (folder / "garbage.mp4").write_bytes(bytes(range(7, 250, 3)) * 500)
    whole = (folder / "camera 0/0.mkv").read_bytes()
    (folder / "short.mkv").write_bytes(whole[: len(whole) // 2])
    (folder / "notes.txt").write_text("not a clip")
    return folder
