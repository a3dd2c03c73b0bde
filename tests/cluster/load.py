#!/usr/bin/env python3
# SPDX-License-Identifier: MPL-2.0
"""The driver alone, with a corpus of empty files and workers that only write markers: load.py [CLIPS] (100,000 by default)

Prints seconds of plan, run and resume, and the most memory; ends with status 1 where plan or resume takes more than 60 s or all of it
more than 1 GB.
"""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipelines/cluster"))
from superpixel_corpus import manifest, report, scratch, source
from superpixel_corpus.driver import Driver, Options
from superpixel_corpus.storage import Folder
from superpixel_corpus.task import Outcome

MOST_SECONDS, MOST_BYTES = 60, 1e9


class Idle:
    """Workers that are done at once."""

    def __init__(self, destination):
        self.destination, self.ended, self.tickets = destination, [], 0

    def slots(self):
        return 1000

    def submit(self, task):
        self.tickets += 1
        summary = {"schema": 1, "frames": 100, "key": task.key, "short": False}
        summary |= dict.fromkeys(("width", "height", "tracks", "regions", "adjacency"), 1)
        self.destination.write(f"{task.output}/clip.json", json.dumps(summary).encode(), lambda _: False)
        self.ended.append((self.tickets, Outcome(summary=summary, seconds=1.0)))
        return self.tickets

    def finished(self, patience):
        ended, self.ended = self.ended, []
        return ended

    def close(self):
        pass


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    times = {}
    with tempfile.TemporaryDirectory() as place:
        videos, destination = Folder(f"{place}/in"), Folder(f"{place}/out")
        scratch.begin(destination, scratch.name_run())
        for number in range(count):
            path = videos.root / f"{number // 1000:04}/{number:07}.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        start = time.monotonic()
        header = manifest.Header(str(videos), {}, "0")
        found = source.find(videos, destination, {"mp4"}, lambda *_: None)
        clips = source.without_collisions(manifest.make(header, found), destination, lambda *_: None)
        manifest.write(destination, header, clips)
        times["plan"] = time.monotonic() - start
        workers = Idle(destination)
        options = Options("none", (), 1, 2, 30.0, 60.0)
        for step, share in (("first half", 0.5), ("second half", 1.0)):
            start = time.monotonic()
            header, clips = manifest.read(destination)
            known = manifest.state(destination, clips)
            times[f"resume, {len(known.done)} done"] = time.monotonic() - start
            start = time.monotonic()
            told = report.Report(f"load {step}", count, len(known.done), workers.slots())
            todo = known.left[: int(count * share) - len(known.done)]
            Driver(header, destination, options, workers, told).run(todo, lambda _: None)
            report.save(destination, told, {})
            times[f"run, {step}"] = time.monotonic() - start
        start = time.monotonic()
        known = manifest.state(destination, clips)
        assert len(known.done) == count
        times["resume, all done"] = time.monotonic() - start
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    for name, seconds in times.items():
        print(f"{name}: {seconds:.1f} s")
    print(f"{count} clips, {most / 1e6:.0f} MB")
    slow = [name for name, seconds in times.items() if not name.startswith("run") and seconds > MOST_SECONDS]
    return 1 if slow or most > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
