#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The built packages are fit to be given away: wheel.py FOLDER, with the Python that the wheel is installed in

FOLDER is what `packaging/build.sh wheel` filled. Looks at names, sizes and contents, and at how long an import takes. Prints what it
found, and ends with status 1 where something is wrong.
"""

import json
import statistics
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST = 5_000_000
# Seconds, beside those of numpy, in the median of so many starts.
IMPORT, STARTS = 0.05, 20


def look_at_wheel(path):
    assert path.name.endswith("-cp39-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"), path.name
    assert path.stat().st_size <= MOST, f"{path.name} has {path.stat().st_size} bytes"
    with zipfile.ZipFile(path) as wheel:
        inside = {name.split(".dist-info/")[-1]: wheel.read(name) for name in wheel.namelist()}
    description = inside["METADATA"].decode().split("\n\n", 1)[1]
    assert description.strip() == (ROOT / "python/README.md").read_text().strip(), "the description is not python/README.md"
    assert inside["licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    bill = json.loads(inside["sboms/superpixels.cdx.json"])
    names = {component["name"] for component in bill["components"]}
    # Lists all linked crates, and none of the elements'.
    assert {"gst-plugin-superpixel", "numpy", "pyo3", "rayon", "std"} <= names and "gstreamer" not in names, names
    licenses = inside["licenses/LICENSE-THIRD-PARTY"].decode()
    for component in bill["components"]:
        if "hashes" in component:
            assert f"{component['name']} {component['version']}" in licenses, component["name"]
    assert {"superpixels/py.typed", "superpixels/_native.pyi", "superpixels/_functions.pyi"} <= set(inside)
    for word in (str(ROOT), str(Path.home() / ".cargo")):
        assert word.encode() not in inside["superpixels/_native.abi3.so"], f"the module names {word}"
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(names)} components")


def look_at_source(path):
    assert path.stat().st_size <= MOST, f"{path.name} has {path.stat().st_size} bytes"
    with tarfile.open(path) as source:
        parts = {Path(name).parts[1] for name in source.getnames() if len(Path(name).parts) > 2}
    assert {"kernels", "python", "src", "superpixels"} <= parts and not parts & {"docs", "media", "tests"}, parts
    print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {locked_packages(path)} packages in a lock file that fits")


def locked_packages(source):
    """Packagers build with `--locked`: the lock file has what the archive's members need, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "-xzf", source, "-C", folder], check=True)
        (lock,) = Path(folder).glob("*/Cargo.lock")
        before = lock.read_bytes()
        command = ["cargo", "metadata", "--locked", "--offline", "--format-version=1", "--manifest-path", lock.with_name("Cargo.toml")]
        needed = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["packages"]
        assert lock.read_bytes() == before
        assert before.count(b"[[package]]") == len(needed), (before.count(b"[[package]]"), len(needed))
    return len(needed)


def import_time():
    code = "import time, numpy; t = time.perf_counter(); import superpixels; print(time.perf_counter() - t)"
    starts = [subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout for _ in range(STARTS)]
    median = statistics.median(map(float, starts))
    print(f"import: {1000 * median:.1f} ms")
    assert median < IMPORT


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    look_at_wheel(wheel)
    look_at_source(source)
    import_time()


if __name__ == "__main__":
    main()
