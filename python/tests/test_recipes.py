# SPDX-License-Identifier: MPL-2.0
"""The recipes run, docs/python-recipes.md says what they say, and the notebook runs and holds no outputs.

Run as a program it writes the page from the recipes.
"""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "python/examples"
PAGE = ROOT / "docs/python-recipes.md"
# In the order of the page, with what each prints.
RECIPES = {
    "segment_picture": r"\d{3} regions, the largest of \d+ px",
    "video_file": r"frame 23: \d+ regions, \d+ since the first frame|skipped: neither PyAV .* are installed",
    "torch_batch": r"\(4, 240, 320\) on (cpu|cuda:\d), \d+ regions|skipped: torch is not installed",
    "superpixel_tokens": r"8 images on (cpu|cuda), 49 tokens each, gradient of the stem \d+\.\d{3}|skipped: torch is not installed",
    "data_loader": r"batches of \(8, 3, 120, 160\) and \(8, 120, 160\) torch.int32, pooled to \(8, 50, 3\)"
    r"|skipped: torch is not installed",
    "scatter_mean": r"200 regions with 8 features\n(the same in torch|skipped: torch is not installed)",
    "region_graph": r"8 graphs: 100 nodes with 4 features, \d+ edges\n(DataBatch\(x=\[800, 4\]|skipped: torch_geometric is not installed)",
    "mask_propagation": r"12 frames: intersection over union 0\.9\d in the mean, 0\.9\d in the last",
    "lime_explanation": r"\d\d regions, whatever the range of the values\n(skipped: .*\n)?the region that speaks most for red is around \((8|9|1[0-3])\d, [2-7]\d\)",
    "annotation_brush": r"regions by level: 400 100 30 8\n(a click with level \d paints \d+ px\n){4}",
    "exact_number": r"about 50: \d+\nexactly 200: 200\nexactly 50: 50\nexactly 10: 10\nexactly 2: 2\n",
    "timing": r"slic\(\), one thread +\d+\.\d\d ms\n(.+ ms\n){4}",
}
# A recipe is short.
LINES = 70


def section(name):
    """The recipe's part of the page."""
    code = (EXAMPLES / f"{name}.py").read_text()
    title, prose = ast.get_docstring(ast.parse(code)).split("\n\n", 1)
    body = code.split('"""', 2)[2].strip()
    link = f"[{name}.py](../python/examples/{name}.py)"
    return f"\n## {title.rstrip('.')}\n\n{prose}\n\n{link}:\n\n```python\n{body}\n```\n"


def page():
    return PAGE.read_text().split("\n## ")[0].rstrip("\n") + "\n" + "".join(map(section, RECIPES))


def test_the_page_is_made_of_the_recipes():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(RECIPES)
    assert PAGE.read_text() == page(), "run python python/tests/test_recipes.py"


def notebook():
    return json.loads((EXAMPLES / "superpixels.ipynb").read_text())


def test_the_notebook_has_no_outputs():
    cells = notebook()["cells"]
    assert len(cells) > 6
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None and cell["metadata"] == {}


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.exit()

# The page can be written where there is no pytest.
import numpy as np  # noqa: E402
import pytest  # noqa: E402


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(RECIPES[name], done.stdout), done.stdout
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= LINES
    # What ran was right, and what did not is named.
    for what in re.findall(r"^skipped: (.*)", done.stdout, re.M):
        assert not os.environ.get("SUPERPIXEL_EVERY_RECIPE"), what
        pytest.skip(what)


def test_a_mask_is_carried_through_files(tmp_path):
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for folder in ("frames", "masks"):
        (tmp_path / folder).mkdir()
    y, x = np.mgrid[:120, :160]
    for number in range(3):
        square = (abs(x - 60 - 4 * number) < 30) & (abs(y - 60) < 30)
        image, mask = np.where(square[..., None], [200, 90, 40], [20, 90, 160]), np.where(square, 255, 0)
        image_module.fromarray(image.astype(np.uint8)).save(tmp_path / f"frames/{number}.png")
        image_module.fromarray(mask.astype(np.uint8)).save(tmp_path / f"masks/{number}.png")
    command = [sys.executable, str(EXAMPLES / "mask_propagation.py"), str(tmp_path)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout
    assert re.match(r"3 frames: intersection over union (1\.00|0\.9\d) in the mean", printed), printed


def test_a_picture_is_segmented_and_saved(tmp_path):
    image_module = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    stored = image_module.fromarray(np.tile(np.arange(160, dtype=np.uint8)[:, None, None], (1, 80, 3)))
    # On its side: turned by 90 degrees clockwise it is upright.
    exif = image_module.Exif()
    exif[0x0112] = 6
    stored.save(tmp_path / "photo.jpg", exif=exif)
    subprocess.run([sys.executable, str(EXAMPLES / "segment_picture.py"), "photo.jpg"], cwd=tmp_path, check=True, timeout=300)
    [folder] = tmp_path.glob("regions-*")
    labels, regions = (np.asarray(image_module.open(folder / name)) for name in ("labels.png", "regions.png"))
    assert labels.shape == (80, 160) and labels.max() > 200
    assert regions.shape == (80, 160, 3) and len(np.unique(regions)) > 20


def test_the_notebook_runs(tmp_path, monkeypatch):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "notebook"}
    for cell in notebook()["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "superpixels.ipynb", "exec"), space)
    assert space["kept"].sum() > 0
