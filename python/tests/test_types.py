# SPDX-License-Identifier: MPL-2.0
"""mypy and pyright, both strict, find no error in programs that are right and in the package, and find every mistake."""

import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import superpixels as sp

FOLDER = Path(__file__).resolve().parent
PACKAGE = Path(sp.__file__).parent
# Libraries that results are of.
TYPINGS = FOLDER / "typings"
SAMPLE, ERRORS = FOLDER / "typed_sample.py", FOLDER / "typed_errors.py"
# It is pyright with its own program for Node, and has pyright's strict mode.
PYRIGHT = "basedpyright"


def needs(module):
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed")


def run(*arguments, cwd, mypy_path=""):
    """Returns what a module prints. It sees the package that these tests see."""
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    # pyright looks for an interpreter of its own where it is not asked about files.
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": programs, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "MYPYPATH": mypy_path}
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", timeout=400
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder in which mypy keeps what it knows of numpy from run to run."""
    return tmp_path_factory.mktemp("mypy")


@pytest.fixture(scope="module")
def libraries_alone(tmp_path_factory):
    """Settings of mypy that leave out what the package and numpy do not import: libraries of libraries."""
    path = tmp_path_factory.mktemp("settings") / "mypy.ini"
    names = ("superpixels", "numpy", "scipy", "av", "pandas", "polars", "pyarrow", "ipywidgets")
    followed = ",".join(f"{name}.*" for name in names)
    path.write_text(f"[mypy]\nstrict = True\nfollow_imports = skip\n[mypy-{followed}]\nfollow_imports = normal\n")
    return path


@pytest.fixture(scope="module")
def by_mypy(cache, libraries_alone):
    """Errors of both samples and of the package, with the other libraries of `typings`: file and line to kinds and texts."""
    needs("mypy")
    options = ["--config-file", str(libraries_alone), "--no-pretty", "--no-color-output", "--hide-error-context", "--cache-dir", str(cache)]
    modules = ["-p", "superpixels", "-m", SAMPLE.stem, "-m", ERRORS.stem]
    printed = run("mypy", *options, *modules, cwd=FOLDER, mypy_path=os.pathsep.join([str(TYPINGS), str(FOLDER)]))
    found = re.findall(r"^(.*?):(\d+): error: (.*) \[([\w-]+)\]$", printed, re.M)
    assert printed.count(": error:") == len(found), printed
    # The package's modules, with and without stubs, and the samples.
    modules = len({path.stem for path in PACKAGE.glob("*.py*") if path.suffix in (".py", ".pyi")})
    assert f"(checked {modules + 2} source files)" in printed, printed[-200:]
    return by_line((Path(name).name, int(line), kind, text) for name, line, text, kind in found)


@pytest.fixture(scope="module")
def by_pyright(tmp_path_factory):
    """The same by pyright."""
    needs(PYRIGHT)
    folder = tmp_path_factory.mktemp("pyright")
    settings = {"typeCheckingMode": "strict", "include": [str(SAMPLE), str(ERRORS)], "extraPaths": [str(FOLDER)], "stubPath": str(TYPINGS)}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    printed = run(PYRIGHT, "--outputjson", "--pythonpath", sys.executable, "--project", str(folder), cwd=folder)
    told = json.loads(printed)
    assert told["summary"]["filesAnalyzed"] == 2, printed
    errors = [one for one in told["generalDiagnostics"] if one["severity"] == "error"]
    places = [(Path(one["file"]).name, one["range"]["start"]["line"] + 1) for one in errors]
    return by_line((*place, one.get("rule"), one["message"]) for place, one in zip(places, errors))


def by_line(errors):
    found = {}
    for name, line, kind, text in errors:
        found.setdefault((name, line), {})[kind] = text
    return found


def marked(column):
    """Lines with an error and its kind, as the comments say them."""
    lines = enumerate(ERRORS.read_text(encoding="utf-8").splitlines(), 1)
    found = [(number, line.rsplit("# error: ", 1)[1].split(", ")) for number, line in lines if "# error: " in line]
    assert len(found) > 80
    return {(ERRORS.name, number): kinds[column] for number, kinds in found}


def compare(found, column):
    """Errors are where they are marked, and nowhere else. A checker may say more than one thing of a line."""
    wanted = marked(column)
    missed = {place: (kind, sorted(found.get(place, {}))) for place, kind in wanted.items() if kind not in found.get(place, {})}
    more = {place: kinds for place, kinds in found.items() if place not in wanted}
    assert not missed and not more, f"missed: {missed}\nnot marked: {more}"


def test_mypy(by_mypy):
    compare({place: kinds for place, kinds in by_mypy.items() if not is_own(*place)}, 0)


def test_pyright(by_pyright):
    compare(by_pyright, 1)


def is_own(name, _line):
    return (PACKAGE / name).exists()


def test_the_package_itself(cache, libraries_alone):
    needs("mypy")
    # The package is forgotten: it was checked with the libraries of `typings`.
    for known in cache.glob("*/superpixels"):
        shutil.rmtree(known)
    options = ["--config-file", str(libraries_alone), "--no-color-output", "--cache-dir", str(cache)]
    printed = run("mypy", *options, "-p", "superpixels", cwd=cache)
    assert printed.startswith("Success"), printed


def test_the_package_itself_with_other_libraries(by_mypy):
    assert {place: kinds for place, kinds in by_mypy.items() if is_own(*place)} == {}


def test_every_public_name_has_a_type(tmp_path):
    needs(PYRIGHT)
    told = json.loads(run(PYRIGHT, "--outputjson", "--ignoreexternal", "--verifytypes", "superpixels", cwd=tmp_path))
    score, errors = told["typeCompleteness"]["completenessScore"], [one["message"] for one in told["generalDiagnostics"]]
    assert score == 1, errors


def test_stubs_are_of_the_modules(tmp_path, libraries_alone):
    """Names, parameters and defaults. A module without a stub is compared with itself, which says nothing."""
    needs("mypy")
    options = ["--concise", "--mypy-config-file", str(libraries_alone)]
    lines = run("mypy.stubtest", "superpixels", *options, cwd=tmp_path, mypy_path=str(TYPINGS)).splitlines()
    own = tuple(f"superpixels.{path.stem}." for path in PACKAGE.glob("_[a-z]*.py") if not path.with_suffix(".pyi").exists())
    assert [line for line in lines if not line.startswith(own)] == []


def test_values_are_of_their_types(tmp_path):
    import typed_sample

    typed_sample.functions()
    typed_sample.images()
    typed_sample.segmenter()
    typed_sample.helpers(tmp_path)


def test_values_of_scipy_are_of_their_types():
    pytest.importorskip("scipy", reason="SciPy is not installed")
    import typed_sample

    typed_sample.graph()


def fields_by_type():
    """The structured arrays of _native.pyi: class to field to the type of its items."""
    found = {}
    for one in ast.parse((PACKAGE / "_native.pyi").read_text(encoding="utf-8")).body:
        if isinstance(one, ast.ClassDef) and any(getattr(base, "id", "") == "_Records" for base in one.bases):
            text = ast.unparse(one)
            pairs = re.findall(r"key: Literal\[(.*?)\]\) -> _Column\[np\.(\w+)\]", text)
            found[one.name] = {name.strip("'\""): kind for names, kind in pairs for name in names.split(", ")}
    return found


def test_fields_are_those_of_the_arrays():
    video = sp.Segmenter(temporal=True, events=True, levels=True)
    video.segment(np.zeros((24, 32), np.uint8))
    for name, fields in fields_by_type().items():
        dtype = getattr(video, name.lstrip("_").lower()).dtype
        assert {field: dtype[field].base.name for field in dtype.names} == fields, name
    assert len(fields_by_type()) == 5


def test_no_name_leaks():
    public = {name for name in dir(sp) if not name.startswith("__")}
    assert public == set(sp.__all__)
    assert "__version__" in dir(sp) and re.match(r"\d+\.\d+\.\d+", sp.__version__)


def test_segmenters_name_their_arrays():
    assert isinstance(sp.Segmenter[np.ndarray](n_segments=3), sp.Segmenter)
    assert sp.Segmenter[np.ndarray].__args__ == (np.ndarray,)
