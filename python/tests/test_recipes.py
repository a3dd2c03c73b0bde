# SPDX-License-Identifier: MPL-2.0
"""The recipes run, docs/python-recipes.md says what they say, and the notebook runs and holds no outputs.

Run as a program it writes the page from the recipes.
"""

import ast
import json
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
    "torch_batch": r"\(4, 240, 320\) on cuda:\d, \d+ regions|skipped: torch (is not installed|finds no CUDA device)",
    "scatter_mean": r"\d{3} regions with 8 features\n(the same in torch|skipped: torch is not installed)",
    "region_graph": r"\d+ nodes with 4 features, \d+ edges\n(Data|skipped: torch_geometric is not installed)",
    "mask_propagation": r"frame 11: intersection over union (1\.00|0\.9\d)",
    "lime_explanation": r"the region that speaks most for red is around \((8|9|1[0-3])\d, [2-7]\d\)",
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
import pytest  # noqa: E402


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(name, tmp_path):
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert re.search(RECIPES[name], done.stdout), done.stdout
    assert len((EXAMPLES / f"{name}.py").read_text().splitlines()) <= LINES


def test_the_notebook_runs(tmp_path, monkeypatch):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "notebook"}
    for cell in notebook()["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), "superpixels.ipynb", "exec"), space)
    assert space["kept"].sum() > 0
