# SPDX-License-Identifier: MPL-2.0
"""Gives out the pieces of all clips, counts tries, and writes down what failed and why."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .clip import Job
from .output import Refused, shown
from .program import PER_PROCESS
from .records import Clip, Header, is_failure
from .report import Report
from .storage import Place, words
from .task import DATA, MACHINE, REFUSED, Outcome, Task
from .workers import Workers

# How long the loop waits for news, in seconds.
TICK = 0.5


@dataclass(frozen=True)
class Options:
    """How a run works; `retries` are tries after the first."""

    program: str
    words: tuple[str, ...]
    threads: int
    retries: int
    stall: float
    timeout: float
    per_process: int = PER_PROCESS


class Driver:
    """One run over the clips that are left."""

    def __init__(self, header: Header, destination: Place, options: Options, workers: Workers, report: Report) -> None:
        self.header, self.destination, self.options = header, destination, options
        self.workers, self.report = workers, report
        self.jobs: dict[str, Job] = {}
        self.out: dict[int, tuple[Job, tuple[str, int]]] = {}
        self.ready: deque[tuple[Job, tuple[str, int]]] = deque()

    def run(self, clips: list[Clip], tell: Callable[[Report], None]) -> None:
        """Works until no clip is left. Clips under way are few, whatever their number."""
        waiting = iter(clips)
        while True:
            while len(self.out) < self.workers.slots() and self._give_one(waiting):
                pass
            if not self.out:
                return
            for ticket, outcome in self.workers.finished(TICK):
                self._take(*self.out.pop(ticket), outcome)
            tell(self.report)

    def _give_one(self, waiting: object) -> bool:
        if not self.ready:
            clip = next(waiting, None)
            if clip is None:
                return False
            try:
                job = Job(clip, self.header.split is not None, self.destination)
            except (Refused, OSError) as error:
                kind, why = (REFUSED, str(error)) if isinstance(error, Refused) else (MACHINE, words(error))
                self._write_failure(clip, "cuts", Outcome(kind, why), 1)
                return True
            self.jobs[clip.path] = job
            self._queue(job)
        job, piece = self.ready.popleft()
        self.out[self.workers.submit(self._task(job, piece))] = (job, piece)
        return True

    def _queue(self, job: Job) -> None:
        self.ready.extend((job, piece) for piece in job.next)

    def _task(self, job: Job, piece: tuple[str, int]) -> Task:
        clip, (work, number) = job.clip, piece
        options = self.options
        return Task(
            work=work,
            run=self.report.run,
            source=self.header.source,
            destination=str(self.destination),
            path=clip.path,
            key=clip.key,
            output=clip.output,
            parts=clip.parts,
            program=options.program,
            words=options.words,
            threads=options.threads,
            stall=options.stall,
            timeout=options.timeout,
            least=self.header.split or 0.0,
            number=number,
            per_process=options.per_process,
            # Nothing that another clip has left behind counts against this one twice.
            anew=job.tries.get(piece, 0) > 0,
        )

    def _take(self, job: Job, piece: tuple[str, int], outcome: Outcome) -> None:
        if job.clip.path not in self.jobs:
            return  # another part has failed for good
        tries = job.tries[piece] = job.tries.get(piece, 0) + 1
        if not outcome.kind:
            if piece[0] != "cuts":
                self.report.worked(outcome.summary.get("frames", 0) if piece[0] != "join" else 0, outcome)
            if job.took(piece, outcome.summary):
                del self.jobs[job.clip.path]
                self._guard(lambda: self.destination.forget(job.clip.failure))
                self.report.did(job.clip, outcome)
            else:
                self._queue(job)
        elif outcome.kind in (DATA, REFUSED) or tries > self.options.retries:
            self._give_up(job, piece, outcome, tries)
        else:
            self.report.tried(outcome)
            self.ready.append((job, piece))

    def _give_up(self, job: Job, piece: tuple[str, int], outcome: Outcome, tries: int) -> None:
        del self.jobs[job.clip.path]
        self.ready = deque(item for item in self.ready if item[0] is not job)
        self._write_failure(job.clip, piece[0], outcome, tries)

    def _write_failure(self, clip: Clip, work: str, outcome: Outcome, tries: int) -> None:
        record = {
            "path": clip.path,
            "key": clip.key,
            "kind": outcome.kind,
            "tries": tries,
            "error": shown(outcome.error),
            "work": work,
            "host": outcome.host,
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        content = (json.dumps(record, indent=2) + "\n").encode()
        self._guard(lambda: self.destination.write(clip.failure, content, is_failure))
        self.report.gave_up(clip, outcome)

    def _guard(self, write: Callable[[], None]) -> None:
        """Writes down what cannot be written in the report: other clips go on."""
        try:
            write()
        except Refused as error:
            self.report.note(str(error))
        except OSError as error:
            self.report.note(words(error))
