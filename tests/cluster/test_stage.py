# SPDX-License-Identifier: MPL-2.0
"""The stage for Ray Data gives what a Segmenter gives, clip by clip."""

import pytest

from conftest import CORPUS, FRAMES, PROGRAM, corpus, make_clip

np = pytest.importorskip("numpy", reason="NumPy is not installed in this environment")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed in this environment")
pytest.importorskip("av", reason="PyAV is not installed in this environment")
sp = pytest.importorskip("superpixels", reason="the package superpixels is not installed in this environment")
from superpixel_stage import SuperpixelStage, decode

SETTINGS = {"superpixel_size": 20}


@pytest.fixture
def paths(tmp_path):
    """Three clips, longer than the frames that are handed on together."""
    found = [tmp_path / f"{number}.mkv" for number in range(3)]
    for path, pattern in zip(found, ("ball", "circular", "pinwheel")):
        make_clip(path, pattern=pattern, frames=70)
    return found


def test_rows_are_those_of_a_segmenter(paths):
    stage = SuperpixelStage(**SETTINGS)
    for path in paths:
        columns = [columns for columns in stage({"path": np.array([str(path)])})]
        assert len(columns) == 2
        rows = {name: np.concatenate([part[name] for part in columns]) for name in columns[0]}
        segmenter = sp.Segmenter(temporal=True, **SETTINGS)
        at = 0
        for number, (time, frame) in enumerate(decode(str(path))):
            labels = segmenter.segment(frame)
            own = slice(at, at + segmenter.n_regions)
            assert (rows["frame"][own] == number).all()
            assert (rows["pts_ns"][own] == time).all()
            assert (rows["area"][own] == np.bincount(labels.ravel())).all()
            assert (rows["track_id"][own] == segmenter.regions["track_id"]).all()
            assert (rows["vx"][own] == segmenter.motion["velocity"][:, 0]).all()
            assert (rows["age"][own] == segmenter.motion["age"]).all()
            assert (rows["y1"][own] == segmenter.regions["bounds"][:, 3]).all()
            at = own.stop
        assert at == len(rows["frame"])
        assert rows["frame"][-1] == 69


def test_ray_data_takes_it(paths, tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed in this environment")
    node = {"num_cpus": 2, "include_dashboard": False, "object_store_memory": 80 << 20, "_node_ip_address": "127.0.0.1"}
    ray.init(**node, log_to_driver=False, runtime_env={"working_dir": str(CORPUS.parent)})
    try:
        clips = ray.data.from_items([{"path": str(path)} for path in paths])
        rows = clips.map_batches(
            SuperpixelStage, fn_constructor_kwargs=SETTINGS, batch_size=1, num_cpus=1, concurrency=1
        )
        rows.write_parquet(str(tmp_path / "out"))
    finally:
        ray.shutdown()
    table = pq.read_table(tmp_path / "out")
    alone = SuperpixelStage(**SETTINGS)
    for path in paths:
        expected = [part for part in alone({"path": np.array([str(path)])})]
        mine = table.filter(np.array(table["path"].to_pylist()) == str(path)).sort_by(
            [("frame", "ascending"), ("label", "ascending")]
        )
        for name in ("frame", "label", "track_id", "area", "cx", "lab_a", "age"):
            assert (mine[name].to_numpy() == np.concatenate([part[name] for part in expected])).all(), name


def test_rows_are_of_upright_pictures(tmp_path):
    from test_frames import STEP, turn, write

    write(tmp_path / "a.mp4", first=50)
    turn(tmp_path / "a.mp4", (0, 1, -1, 0))
    rows = next(SuperpixelStage(superpixel_size=16)({"path": np.array([str(tmp_path / "a.mp4")])}))
    assert (rows["x1"].max(), rows["y1"].max()) == (64, 96)
    assert sorted(set(rows["pts_ns"].tolist())) == [number * STEP for number in range(10)]


def test_columns_are_those_of_the_program(paths, tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    paths[0].rename(source / "a.mkv")
    corpus("plan", source, tmp_path / "out", "--program", PROGRAM)
    corpus("run", tmp_path / "out", "--program", PROGRAM)
    schema = pq.read_schema(tmp_path / "out/clips/a.mkv/regions.parquet")
    rows = next(SuperpixelStage(**SETTINGS).rows(decode(str(source / "a.mkv"))))
    assert list(rows) == schema.names
    for name, column in rows.items():
        assert str(column.dtype) == str(schema.field(name).type.to_pandas_dtype().__name__), name
    assert FRAMES < 64 <= rows["frame"].max() + 1
