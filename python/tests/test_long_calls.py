# SPDX-License-Identifier: MPL-2.0
"""Calls with many images: Ctrl-C ends them soon, what is done is kept, and they say how far they are."""

import contextlib
import io
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest
import superpixels as sp
from superpixels._progress import Bar


@pytest.fixture
def batch(picture):
    # As long as nobody waits: some minutes.
    return np.broadcast_to(picture, (20_000, *picture.shape))


def calls(batch, threads):
    yield lambda **more: sp.slic(batch, n_segments=100, threads=threads, **more)
    yield lambda **more: sp.slic(list(batch), n_segments=100, threads=threads, **more)
    yield lambda **more: sp.slic(batch, n_segments=100, threads=threads, mask=np.ones(batch.shape[1:3], bool), **more)
    yield lambda **more: sp.Segmenter(n_segments=100, threads=threads).segment(batch, **more)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("threads", [0, 1, 3])
def test_signals_end_a_call(batch, threads):
    class Enough(Exception):
        pass

    def end(*_):
        rung.append(time.perf_counter())
        raise Enough

    before = signal.signal(signal.SIGALRM, end)
    try:
        for call in calls(batch, threads):
            rung = []
            # Two signals: one may come while the arrays are made, where Python itself handles it.
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            begin = time.perf_counter()
            with pytest.raises(Enough):
                call()
            # Handled soon after it came; machines are noisy, and all of the call takes minutes.
            assert rung and rung[0] - begin < 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_is_done_is_kept(picture, batch):
    class Enough(Exception):
        pass

    def report(done, _):
        if done >= 3:
            raise Enough

    # Labels of all of them would take 800 MB.
    batch = batch[:1000]
    out = np.full(batch.shape[:3], 9999, np.uint16)
    want = sp.slic(picture, n_segments=100)
    for call in (
        lambda: sp.slic(batch, n_segments=100, threads=1, out=out, progress=report),
        lambda: sp.Segmenter(n_segments=100, threads=1).segment(batch, out=out, progress=report),
    ):
        out[:] = 9999
        with pytest.raises(Enough):
            call()
        assert (out[:3] == want).all() and (out[-1] == 9999).all()
    # The next call works as ever.
    assert np.array_equal(sp.slic(picture, n_segments=100), want)


def test_a_segmenter_goes_on(picture, batch):
    segmenter = sp.Segmenter(n_segments=100, temporal=True)

    def report(done, _):
        raise KeyError(done)

    with pytest.raises(KeyError):
        segmenter.segment(batch, progress=report)
    tracks = segmenter.regions["track_id"]
    segmenter.segment(picture)
    assert len(np.intersect1d(tracks, segmenter.regions["track_id"])) > 50


@pytest.mark.parametrize("threads", [0, 1])
def test_reports(picture, threads):
    picture = picture[:61, :82]
    small = np.broadcast_to(picture, (200, *picture.shape))
    for call, count in zip(calls(small, threads), (200, 200, 200, 200)):
        reports, threads_of = [], set()

        def report(done, total):
            reports.append((done, total))
            threads_of.add(threading.get_ident())

        call(progress=report)
        done = [done for done, _ in reports]
        assert done == sorted(done) and reports[-1] == (count, count) and {total for _, total in reports} == {count}
        assert threads_of == {threading.get_ident()}
    reports = []
    sp.snic(picture, progress=lambda *numbers: reports.append(numbers))
    assert reports == [(1, 1)]


def test_bars(picture, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        sp.slic([picture] * 3, progress=True)
        sp.slic(picture, progress=False)
        sp.slic(picture, progress=None)
    assert text.getvalue().endswith("\r3 of 3 images\n") and text.getvalue().count("\n") == 1
    with contextlib.redirect_stderr(text := io.StringIO()):
        bar = Bar(3)
        for done in (1, 3, 3):
            bar(done, 3)
    assert text.getvalue() == "\r1 of 3 images\r3 of 3 images\n"

    class Tqdm:
        def __init__(self, total, unit):
            made.append(self)
            self.total, self.unit, self.n, self.is_closed = total, unit, 0, False

        def update(self, more):
            self.n += more

        def close(self):
            self.is_closed = True

    made = []
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Tqdm))
    sp.lsc([picture] * 3, progress=True)
    [bar] = made
    assert (bar.total, bar.n, bar.is_closed, bar.unit) == (3, 3, True, "image")


@pytest.mark.parametrize("bad", [1, 0.5, "yes", []])
def test_what_is_no_progress(picture, bad):
    with pytest.raises(TypeError, match="progress must be True, False or callable"):
        sp.slic(picture, progress=bad)
    with pytest.raises(TypeError, match="progress must be True, False or callable"):
        sp.Segmenter().segment(picture, progress=bad)
