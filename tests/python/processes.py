#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""What docs/processes.md says of processes that fork: processes.py [--cuda]

Each case is a process of its own with a time limit. --cuda runs those of the CUDA backend instead, which need a device (a real or an
emulated one). Needs the plugin in GST_PLUGIN_PATH. Prints what is wrong and ends with status 1.
"""

import ctypes
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst  # noqa: E402  (the version comes first)

# Seconds that a child may take, and a case.
CHILD, CASE = 20, 120
ROUNDS = 5
# Each process loads the kernels.
CUDA_ROUNDS = 2


def start(frames, backend="cpu"):
    pipeline = Gst.parse_launch(
        f"videotestsrc num-buffers={frames} pattern=ball ! video/x-raw,format=GRAY8,width=320,height=240 ! "
        f"superpixel backend={backend} threads=2 ! fakesink sync=false"
    )
    pipeline.set_state(Gst.State.PLAYING)
    return pipeline


def finish(pipeline):
    """Plays to the end; returns "end", or what went wrong."""
    bus = pipeline.get_bus()
    message = bus.timed_pop_filtered(CHILD * Gst.SECOND, Gst.MessageType.EOS | Gst.MessageType.ERROR)
    pipeline.set_state(Gst.State.NULL)
    if message is None:
        return "no end"
    if message.type == Gst.MessageType.EOS:
        return "end"
    error, details = message.parse_error()
    return f"{error.message} ({details})"


def play(queue, backend):
    """The whole work of a process that multiprocessing starts."""
    Gst.init(None)
    queue.put(finish(start(10, backend)))


def play_in_process(method, backend="cpu"):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=play, args=(queue, backend))
    process.start()
    process.join(CHILD + 10)
    if process.is_alive():
        process.kill()
        raise AssertionError(f"{method}: the process hangs")
    assert process.exitcode == 0, f"{method}: status {process.exitcode}"
    result = queue.get(timeout=1)
    assert result == "end", f"{method}: {result}"


def fork(work):
    """Runs `work` in a forked process, and returns how that ended: 0, or the status as os.waitpid gives it."""
    child = os.fork()
    if child == 0:
        signal.alarm(CHILD)
        try:
            work()
        except BaseException as error:
            print(f"in the child: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1]


def fork_before_the_first_pipeline(backend="cpu"):
    Gst.init(None)
    assert Gst.ElementFactory.make("superpixel") is not None
    for _ in range(ROUNDS if backend == "cpu" else CUDA_ROUNDS):
        play_in_process("fork", backend)
    # The parent can go on.
    result = finish(start(10, backend))
    assert result == "end", result


def start_beside_a_running_pipeline(backend="cpu"):
    Gst.init(None)
    pipeline = start(-1, backend)
    time.sleep(0.5)
    for method in ("spawn", "forkserver"):
        play_in_process(method, backend)
    pipeline.set_state(Gst.State.NULL)


def exit_beside_a_running_pipeline(backend="cpu"):
    Gst.init(None)
    pipeline = start(-1, backend)
    time.sleep(0.5)
    for _ in range(ROUNDS):
        # At once, as multiprocessing does, and with all that libraries run at the exit of a program.
        assert fork(lambda: os._exit(0)) == 0
        assert fork(lambda: ctypes.CDLL(None).exit(0)) == 0
    pipeline.set_state(Gst.State.NULL)


def an_error_after_a_fork():
    """A child of a process that has used the device gets an error that says what to do, at once."""
    Gst.init(None)
    result = finish(start(10, "cuda"))
    assert result == "end", result

    def open_device():
        pipeline = Gst.parse_launch("videotestsrc ! superpixel backend=cuda ! fakesink")
        change = pipeline.set_state(Gst.State.PAUSED)
        message = pipeline.get_bus().pop_filtered(Gst.MessageType.ERROR)
        pipeline.set_state(Gst.State.NULL)
        assert change == Gst.StateChangeReturn.FAILURE and message is not None, "the device opens"
        error, details = message.parse_error()
        assert "forked" in f"{error.message} {details}", f"{error.message} ({details})"

    for _ in range(CUDA_ROUNDS):
        assert fork(open_device) == 0
    result = finish(start(10, "cuda"))
    assert result == "end", result


CASES = [fork_before_the_first_pipeline, start_beside_a_running_pipeline, exit_beside_a_running_pipeline]


def main():
    arguments = sys.argv[1:]
    cases = {case.__name__: case for case in CASES}
    if "--cuda" in arguments:
        cases = {name: functools.partial(case, "cuda") for name, case in cases.items()}
        cases["an_error_after_a_fork"] = an_error_after_a_fork
    for name in arguments:
        if name in cases:
            cases[name]()
            return
    failed = 0
    for name in cases:
        begun = time.monotonic()
        try:
            status = subprocess.run([sys.executable, __file__, *arguments, name], timeout=CASE, check=False).returncode
        except subprocess.TimeoutExpired:
            status = "it hangs"
        print(f"{name}: {'ok' if status == 0 else f'FAILED ({status})'}, {time.monotonic() - begun:.1f} s", flush=True)
        failed += status != 0
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
