# SPDX-License-Identifier: MPL-2.0
"""The rule of `superpixel_corpus/output.py` holds for every Python program of this tree that writes files."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import pytest

from conftest import ROOT, tree
from superpixel_corpus import output

# Programs that write files, with the test of each here; corpus.py has tests of its own.
WRITERS = {
    "benches/quality.py": "quality",
    "kernels/build.py": "kernels",
    "packaging/bill.py": "bill",
    "packaging/relock.py": "relock",
    "pipelines/cluster/corpus.py": "test_output.py",
    "pipelines/cluster/measure.py": "measure",
    "tests/emulator/build.py": "emulator",
}
# Calls that make, change or remove files.
WRITES = re.compile(
    r"""\.write_(?:text|bytes)\(|write_file\(|open\([^)]*["'][wax]b?\+?["']
    |os\.(?:remove|unlink|rename|replace|makedirs)\(|\.(?:rename|unlink|mkdir)\(
    |rmtree\(|savefig\(|\.save\(|shutil\.(?:copy|move)""",
    re.VERBOSE,
)


def run(program, *words, **environment):
    """Runs a program of the tree that says no in words, and returns them."""
    command = [sys.executable, str(ROOT / program), *map(str, words)]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | environment,
        cwd=environment.get("PWD"),
    )
    assert done.returncode > 0, done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    return done.stderr


def test_every_program_that_writes_is_here():
    listed = subprocess.run(
        ["git", "ls-files", "*.py"], check=True, capture_output=True, text=True, cwd=ROOT
    ).stdout.split()
    # Parts of corpus.py are imported; tests write into folders of their own.
    programs = [
        path for path in listed if not path.startswith(("tests/", "python/", "pipelines/cluster/superpixel_corpus/"))
    ]
    programs += ["tests/emulator/build.py", *(path for path in listed if path.startswith("python/examples/"))]
    texts = {path: (ROOT / path).read_text() for path in programs}
    # An example that writes into a new folder of its own replaces nothing.
    own = {path for path in texts if path.startswith("python/examples/") and "mkdtemp(" in texts[path]}
    writing = {path for path in programs if WRITES.search(texts[path])} - own
    assert writing == set(WRITERS)
    for path in WRITERS:
        assert "superpixel_corpus.output import" in (ROOT / path).read_text(), path


@pytest.fixture
def clip(tmp_path):
    """A file that stands for a video, with a link and a second name."""
    path = tmp_path / "data/clip.mp4"
    path.parent.mkdir()
    path.write_bytes(b"clip" * 100)
    return path


def test_measure(clip, tmp_path):
    measure = "pipelines/cluster/measure.py"
    out = tmp_path / "out"
    out.mkdir()
    for name in ("measure.md", "measure.json"):
        result = out / name
        makes = (
            os.link,
            lambda _, path: path.symlink_to(clip),
            lambda _, path: path.write_text("years"),
            lambda _, path: path.mkdir(),
        )
        for make in makes:
            make(clip, result)
            before = tree(tmp_path)
            said = run(measure, clip, "--cpu-tasks", 1, "--program", "/none", OUT=str(out))
            assert said.startswith("measure.py: ")
            assert tree(tmp_path) == before
            result.rmdir() if result.is_dir() and not result.is_symlink() else result.unlink()
        os.link(clip, result)
        # Not even with --force is what is read replaced.
        assert "is read" in run(measure, clip, "--force", "--program", "/none", OUT=str(out))
        result.unlink()
    assert "no folder" in run(measure, clip, OUT=str(tmp_path / "none"))
    assert "no file" in run(measure, tmp_path / "none", OUT=str(out))
    # A program replaces its own output.
    (out / "measure.md").write_text("<!-- made by measure.py -->\n")
    (out / "measure.json").write_text('{"made_by": "measure.py"}')
    assert "a run failed" in run(measure, clip, "--cpu-tasks", 1, "--program", "/none", OUT=str(out))


def test_bill(tmp_path):
    bill, manifest, lock = "packaging/bill.py", tmp_path / "Cargo.toml", tmp_path / "Cargo.lock"
    manifest.write_text("[package]\n")
    lock.write_text("version = 4\n")
    for one, other in (
        (manifest, "new"),
        ("new", manifest),
        (lock, "new"),
        ("new", lock),
        ("new", "new"),
        (tmp_path, "new"),
    ):
        before = tree(tmp_path)
        assert run(bill, manifest, "x", one, other, "--force", PWD=str(tmp_path)).startswith("bill.py: ")
        assert tree(tmp_path) == before
    (tmp_path / "mine.json").write_text('{"bomFormat": "of mine"}')
    (tmp_path / "link").symlink_to(manifest)
    os.link(manifest, tmp_path / "twin")
    before = tree(tmp_path)
    for name in ("mine.json", "link", "twin"):
        assert run(bill, manifest, "x", name, "/dev/null", PWD=str(tmp_path)).startswith("bill.py: ")
    assert tree(tmp_path) == before


def test_relock(clip, tmp_path):
    with tarfile.open(tmp_path / "whole.tar.gz", "w:gz"):
        pass
    (tmp_path / "link.tar.gz").symlink_to(tmp_path / "whole.tar.gz")
    before = tree(tmp_path)
    for path in (clip, tmp_path, tmp_path / "none", tmp_path / "link.tar.gz"):
        assert run("packaging/relock.py", path).startswith("relock.py: ")
    assert tree(tmp_path) == before


def load(path):
    """A program as a module."""
    spec = importlib.util.spec_from_file_location("program", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_kernels(tmp_path):
    build = "kernels/build.py"
    sources = tmp_path / "work/sources"
    sources.mkdir(parents=True)
    shutil.copy(ROOT / "kernels/mask.cu", sources)
    (tmp_path / "link").symlink_to(sources)
    for out in (sources, sources / "x", sources.parent, tmp_path / "link", sources / ".."):
        before = tree(tmp_path)
        assert "is read" in run(build, "--kernels", sources, "--out", out, "--force")
        assert tree(tmp_path) == before
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.ptx").write_text("years")
    assert "no files.txt" in run(build, "--kernels", sources, "--out", out)
    module = load(build)
    module.write_out(str(out), {"a.ptx": b"1", "b.cubin": b"2"}, force=True)
    assert (out / "mine.ptx").read_text() == "years"
    # Code of somebody else beside ours.
    assert "mine.ptx was not made" in run(build, "--kernels", sources, "--out", out)
    (out / "mine.ptx").rename(out / "mine.txt")
    module.check_out(str(out), str(sources), force=False)
    module.write_out(str(out), {"a.ptx": b"3" * (2 << 20)}, force=False)
    assert {path.name for path in out.iterdir()} == {"a.ptx", "files.txt", "mine.txt"}
    module.write_out(str(out), {"a.ptx": b"4"}, force=False)
    assert (out / "a.ptx").read_bytes() == b"4"
    # A marker names no file of another folder.
    (out / "files.txt").write_text(f"{module.MARK}\n../work/x.ptx\n")
    assert module.made_here(str(out)) == set()
    # The folder of this tree has its marker.
    built = ROOT / "kernels/built"
    assert module.made_here(str(built)) == {path.name for path in built.iterdir()} - {"files.txt"}


def test_emulator(tmp_path):
    build = "tests/emulator/build.py"
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "driver.o").write_text("years")
    before = tree(tmp_path)
    assert "other things" in run(build, mine)
    (mine / "sources").write_text("my sources")
    assert "other things" in run(build, mine)
    assert tree(tmp_path) != before
    assert (mine / "sources").read_text() == "my sources"
    (tmp_path / "link").symlink_to(ROOT / "kernels")
    for out in (ROOT / "kernels", ROOT / "kernels/x", ROOT, ROOT / "tests/emulator", tmp_path / "link"):
        assert "is read" in run(build, out)
    assert not (ROOT / "kernels/x").exists()


def test_quality(tmp_path):
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "1.jpg").write_bytes(b"picture")
    before = tree(tmp_path)
    for keep in (pictures, pictures / "x", tmp_path):
        assert "is read" in run("benches/quality.py", "--data", pictures, "--eval", "true", "--keep", keep)
    (tmp_path / "keep/slic-10-superpixels-180").mkdir(parents=True)
    assert "exists" in run("benches/quality.py", "--data", pictures, "--eval", "true", "--keep", tmp_path / "keep")
    shutil.rmtree(tmp_path / "keep")
    assert tree(tmp_path) == before


def test_a_file_is_written_whole_and_keeps_its_other_names(tmp_path):
    path, twin = tmp_path / "a.json", tmp_path / "twin"
    ours = lambda content: content.startswith(b"ours")
    output.write_file(path, b"ours 1", ours)
    (tmp_path / "other").write_bytes(b"")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode
    (tmp_path / "other").unlink()
    os.link(path, twin)
    output.write_file(path, b"ours 2", ours)
    assert (path.read_bytes(), twin.read_bytes()) == (b"ours 2", b"ours 1")
    path.write_bytes(b"mine")
    with pytest.raises(output.Refused):
        output.write_file(path, b"ours 3", ours)
    output.write_file(path, b"ours 3", ours, force=True)
    output.write_file("/dev/null", b"x", ours)
    assert json.dumps(sorted(os.listdir(tmp_path))) == '["a.json", "twin"]'
