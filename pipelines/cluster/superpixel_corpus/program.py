# SPDX-License-Identifier: MPL-2.0
"""A process of `superpixel-clip serve`, which does one piece of work after the other: starting one opens devices and plugins."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field

from .devices import VARIABLE

# Pieces of one process. Decoders are foreign code and may lose memory.
PER_PROCESS = 64
# How long a process may take to end once it has said so, in seconds.
PATIENCE = 10.0


@dataclass
class Ended:
    """How a piece ended: the program's `last` line, empty where it said nothing; else why, in words.

    `fresh`: first of its process.
    """

    last: dict = field(default_factory=dict)
    error: str = ""
    late: bool = False
    fresh: bool = True


class Slot:
    """Where one piece runs at a time. A piece that fails takes its process with it, and the next one starts another."""

    def __init__(self, device: str | None = None) -> None:
        """`device` is the only one that processes see; without it they see what this process does."""
        self.device = device
        self.process: subprocess.Popen | None = None
        self.setting: tuple = ()
        self.pieces = 0
        self.is_stopped = False

    def run(self, program: str, words: list[str], timeout: float, most: int, anew: bool) -> Ended:
        """Does a piece, given as the words of a command line, in a process that has done fewer than `most`, or in a new one if `anew`.

        Raises OSError where the program does not start.
        """
        until = time.monotonic() + timeout if timeout else float("inf")
        # Ray gives a worker other devices from task to task.
        setting = (program, os.environ.get(VARIABLE))
        if anew or setting != self.setting or self.pieces >= most or not self._is_idle():
            self.close()
        if self.process is None:
            self._start(program)
            self.setting = setting
        self.pieces += 1
        self.noise.truncate(0)
        line = json.dumps({"id": self.pieces, "arguments": words}) + "\n"
        ended = Ended(fresh=self.pieces == 1)
        try:
            self.process.stdin.write(line.encode())
            ended.last = self._answer(until)
        except BrokenPipeError:
            if not ended.fresh:
                # It has ended before it was asked.
                return self.run(program, words, timeout, most, anew=True)
        except TimeoutError:
            self.close(at_once=True)
            ended.late = True
            return ended
        if ended.last.get("event") != "done":
            ended.error = str(ended.last.get("error") or self._end())
            self.close()
        return ended

    def close(self, at_once: bool = False) -> None:
        """Ends the process, which is idle unless it is to be killed `at_once`."""
        process, self.process, self.pieces = self.process, None, 0
        if process is None:
            return
        if at_once:
            process.kill()
        try:
            process.stdin.close()
            process.wait(PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            process.kill()
            process.wait()
        process.stdout.close()
        self.noise.close()

    def stop(self) -> None:
        """Kills the process, from another thread: the one that waits for a piece finds that it has ended."""
        self.is_stopped = True
        if (process := self.process) is not None:
            process.kill()

    def _start(self, program: str) -> None:
        # Appended to, so that it can be emptied while the program has it open.
        self.noise = tempfile.TemporaryFile("a+b", buffering=0)  # noqa: SIM115  (closed with the process)
        command = [program, "serve", "--parent", str(os.getpid())]
        environment = os.environ if self.device is None else os.environ | {VARIABLE: self.device}
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.noise, bufsize=0, env=environment
            )
        except OSError:
            self.noise.close()
            raise
        self.rest = b""
        if self.is_stopped:
            self.process.kill()

    def _is_idle(self) -> bool:
        """Whether there is a process that waits for work."""
        return self.process is not None and self.process.poll() is None

    def _answer(self, until: float) -> dict:
        """The line that ends the piece; empty where the output ends before it."""
        while (line := self._line(until)) is not None:
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue  # of a library that prints
            if (
                isinstance(said, dict)
                and said.get("event") in ("done", "failed")
                and said.get("id") in (self.pieces, None)
            ):
                return said
        return {}

    def _line(self, until: float) -> bytes | None:
        """The next line of the output; None at its end."""
        waiting = select.poll()
        waiting.register(self.process.stdout, select.POLLIN)
        while b"\n" not in self.rest:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if waiting.poll(1000 * min(left, 3600.0)):
                more = os.read(self.process.stdout.fileno(), 1 << 16)
                if not more:
                    return None
                self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line

    def _end(self) -> str:
        """Why the process has ended, in words."""
        try:
            status = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "its output has ended, the process has not"
        self.noise.seek(0)
        noise = self.noise.read().decode(errors="replace").strip().splitlines()[-3:]
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
        return " | ".join([how, *noise])
