"""A process and all that it started: memory and CPU, sampled while it runs."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import psutil


@dataclass(frozen=True)
class Sample:
    """Resident memory in bytes at a moment: the driver, its JVM, Spark's Python workers."""

    at: float
    driver: int
    jvm: int
    workers: int
    worker: int = 0
    """The largest of them."""

    @property
    def tree(self) -> int:
        """All of them together."""
        return self.driver + self.jvm + self.workers


@dataclass
class TreeSampler:
    """Samples the tree below a process in a thread of its own, until it is closed or the process ends."""

    pid: int
    interval_s: float = 0.1
    samples: list[Sample] = field(default_factory=list)
    others: Sequence[int] = ()
    """Roots of further trees, which ran before: only what they use from now on counts."""
    _cpu: dict[int, float] = field(default_factory=dict)
    _before: dict[int, float] = field(default_factory=dict)

    def __enter__(self) -> Self:
        for process in self._of_others():
            times = process.cpu_times()
            self._before[process.pid] = times.user + times.system
        self._closing, self._sampled = threading.Event(), threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        root = psutil.Process(self.pid)
        while not self._closing.is_set() and root.is_running():
            sample = self._sample(root)
            with self._sampled:
                if sample.driver:
                    self.samples.append(sample)
                self._sampled.notify_all()
            self._closing.wait(self.interval_s)

    def _sample(self, root: psutil.Process) -> Sample:
        sizes = {"driver": 0, "jvm": 0, "workers": 0, "worker": 0}
        for process in [root, *_children(root), *self._of_others()]:
            try:
                with process.oneshot():
                    role = "driver" if process.pid == root.pid else "jvm" if process.name() == "java" else "workers"
                    size = process.memory_info().rss
                    sizes[role] += size
                    if role == "workers":
                        sizes["worker"] = max(size, sizes["worker"])
                    times = process.cpu_times()
                    self._cpu[process.pid] = times.user + times.system - self._before.get(process.pid, 0.0)
            except psutil.Error:  # it ended meanwhile
                continue
        return Sample(time.monotonic(), **sizes)

    def _of_others(self) -> list[psutil.Process]:
        roots = [psutil.Process(pid) for pid in self.others]
        return [process for root in roots for process in (root, *_children(root))]

    def wait_for(self, count: int, deadline_s: float = 60.0) -> None:
        """Return once so many further samples have been taken."""
        with self._sampled:
            goal = len(self.samples) + count
            if not self._sampled.wait_for(lambda: len(self.samples) >= goal, deadline_s):
                raise TimeoutError(f"no {count} samples of process {self.pid} within {deadline_s:.0f} s: did it end?")

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all processes of the tree, as far as they were seen."""
        return sum(self._cpu.values())

    def peak_mb(self, part: str) -> int:
        """The highest sample of `driver`, `jvm`, `workers`, `worker` or `tree`, in MB."""
        return max((int(getattr(sample, part)) for sample in self.samples), default=0) >> 20


def _children(root: psutil.Process) -> list[psutil.Process]:
    try:
        return list(root.children(recursive=True))
    except psutil.Error:
        return []
