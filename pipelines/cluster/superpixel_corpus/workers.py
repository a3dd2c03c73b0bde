# SPDX-License-Identifier: MPL-2.0
"""Where pieces of work run: threads that each wait for a program here, or tasks of a Ray cluster."""

from __future__ import annotations

import itertools
import os
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from .program import Slot
from .task import LOST, MACHINE, Outcome, Task, execute


class Workers(Protocol):
    """Takes pieces of work and hands back how they ended, in any order."""

    def slots(self) -> int:
        """How many pieces are worth having out at a time."""

    def submit(self, task: Task) -> int:
        """Takes a piece of work and returns its ticket."""

    def finished(self, patience: float) -> list[tuple[int, Outcome]]:
        """What has ended since the last call; waits so many seconds for it."""

    def close(self, at_once: bool = False) -> None:
        """Waits for nothing more, and with `at_once` ends what is under way."""


class Local:
    """This machine. Pieces run in processes, one of each thread, which waits for it."""

    # How long threads may take to clean up, in seconds.
    PATIENCE = 15.0

    def __init__(self, jobs: int, devices: Sequence[str] = ()) -> None:
        """The processes of a thread see one of `devices`, in turn; all that are visible where there are none in the list."""
        self.jobs = jobs
        self.waiting: queue.SimpleQueue[tuple[int, Task] | None] = queue.SimpleQueue()
        self.ended: queue.SimpleQueue[tuple[int, Outcome]] = queue.SimpleQueue()
        self.tickets = 0
        self.stopped = threading.Event()
        self.places = [Slot(device) for _, device in zip(range(jobs), itertools.cycle(devices or [None]))]
        # A process ends with the thread that started it, so that threads live as long as this.
        self.threads = [threading.Thread(target=self._work, args=(slot,), daemon=True) for slot in self.places]
        for thread in self.threads:
            thread.start()

    def _work(self, slot: Slot) -> None:
        while (item := self.waiting.get()) is not None and not self.stopped.is_set():
            ticket, task = item
            self.ended.put((ticket, execute(task, slot)))
        slot.close()

    def slots(self) -> int:
        return self.jobs

    def submit(self, task: Task) -> int:
        self.tickets += 1
        self.waiting.put((self.tickets, task))
        return self.tickets

    def finished(self, patience: float) -> list[tuple[int, Outcome]]:
        found = []
        try:
            found.append(self.ended.get(timeout=patience))
            while True:
                found.append(self.ended.get_nowait())
        except queue.Empty:
            return found

    def close(self, at_once: bool = False) -> None:
        for _ in range(self.jobs):
            self.waiting.put(None)
        if at_once:
            self.stopped.set()
            for slot in self.places:
                slot.stop()
        # Each cleans up behind itself; a thread that hangs does not hold up the report.
        end = time.monotonic() + self.PATIENCE
        for thread in self.threads:
            thread.join(max(0.0, end - time.monotonic()))


# That of a worker of Ray, which lives on from task to task; its process ends with it.
_slot: Slot | None = None


def execute_in_worker(task: Task) -> Outcome:
    """A task of Ray: goes on with the process that this worker has."""
    global _slot  # noqa: PLW0603  (Ray gives a task nothing else that lasts)
    _slot = _slot or Slot()
    return execute(task, _slot)


class Cluster:
    """A Ray cluster. Ray tries nothing again: the driver counts, so that a clip that kills its worker is found out."""

    # Tasks beyond those that fit, so that a node that becomes free does not wait for the driver.
    AHEAD = 1.25
    # How often it is looked how large the cluster is, in seconds.
    LOOK = 10.0

    def __init__(self, address: str, cpus: float, gpus: float, patience: Callable[[Task], float]) -> None:
        # A cut link shows after half a minute, not after seven; and no usage statistics leave the cluster.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_grpc_client_keepalive_time_ms", "10000")
        os.environ.setdefault("RAY_grpc_client_keepalive_timeout_ms", "10000")
        import ray
        from ray import cloudpickle

        import superpixel_corpus

        # Nodes need the program, but not this package.
        cloudpickle.register_pickle_by_value(superpixel_corpus)
        ray.init(address=address, log_to_driver=False, configure_logging=True, logging_level="warning")
        self.ray, self.cpus, self.gpus, self.patience = ray, cpus, gpus, patience
        self.remote = ray.remote(max_retries=0, num_cpus=cpus, num_gpus=gpus)(execute_in_worker)
        self.out: dict = {}
        self.tickets = 0
        self.seen = (-self.LOOK, 1)

    def slots(self) -> int:
        when, slots = self.seen
        if time.monotonic() - when >= self.LOOK:
            has = self.ray.cluster_resources()
            fitting = [has.get(name, 0) / need for name, need in (("CPU", self.cpus), ("GPU", self.gpus)) if need]
            slots = max(1, int(self.AHEAD * min(fitting, default=1)))
            self.seen = (time.monotonic(), slots)
        return slots

    def submit(self, task: Task) -> int:
        self.tickets += 1
        reference = self.remote.remote(task)
        self.out[reference] = (self.tickets, time.monotonic() + self.patience(task))
        return self.tickets

    def finished(self, patience: float) -> list[tuple[int, Outcome]]:
        if not self.out:
            time.sleep(patience)
            return []
        ready, _ = self.ray.wait(list(self.out), num_returns=1, timeout=patience)
        if ready:
            ready, _ = self.ray.wait(list(self.out), num_returns=len(self.out), timeout=0)
        found = [(self.out.pop(reference)[0], self._outcome(reference)) for reference in ready]
        now = time.monotonic()
        for reference, (ticket, until) in list(self.out.items()):
            if now > until:
                del self.out[reference]
                self.ray.cancel(reference, force=True)
                found.append((ticket, Outcome(LOST, "no answer from its node")))
        return found

    def _outcome(self, reference: object) -> Outcome:
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError as error:
            return Outcome(MACHINE, str(error).strip().splitlines()[-1])
        except errors.RayError as error:
            return Outcome(LOST, f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")

    def close(self, at_once: bool = False) -> None:  # noqa: ARG002  (Ray ends what is under way in either case)
        self.ray.shutdown()
