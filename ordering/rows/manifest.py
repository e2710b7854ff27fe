"""What the reading tasks deliver to each bucket of a shuffle, and whether it is what the window was judged by (R12).

A stage that has to be done again, because an executor was lost or a fetch failed, reads Kafka again: what it meets then
goes to the buckets alone, for the reports were taken before. So every reading task puts a manifest into every bucket,
and who takes a bucket's rows demands exactly one of each task, with the digest of the reports that the driver judged.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ordering.errors import ReconcilerError, WorkerLostError

Accounts = Mapping[int, bytes]
"""Reading task -> digest of its reports."""

_HINT = "the window is read again; if this comes again, look whether messages are deleted or compacted while they wait"


class Manifest(NamedTuple):
    """A reading task's word to one bucket: a digest of all it read, the blocks it put there; or what it met."""

    task: int
    digest: bytes
    blocks: int
    error: ReconcilerError | None = None


def check_delivery(manifests: Iterable[Manifest], blocks: Mapping[int, int], accounts: Accounts) -> None:
    """Raise unless one bucket got exactly what the judged reading put there. `blocks`: received, by reading task.

    Raises the error that a reading task met, else WorkerLostError: a new reading may succeed.
    """
    manifests = list(manifests)
    for manifest in manifests:
        if manifest.error is not None:
            raise manifest.error
    came = Counter(manifest.task for manifest in manifests)
    for task in sorted(accounts.keys() | came.keys() | blocks.keys()):
        if task not in accounts or came[task] != 1:
            fact = f"of reading task {task} {came[task]} manifests came to a bucket, not {int(task in accounts)}"
            raise WorkerLostError(fact, hint=_HINT)
    for manifest in manifests:
        if manifest.digest != accounts[manifest.task]:
            raise WorkerLostError(f"reading task {manifest.task} was done again and read something else", hint=_HINT)
        if manifest.blocks != blocks.get(manifest.task, 0):
            fact = f"of reading task {manifest.task} {blocks.get(manifest.task, 0)} of {manifest.blocks} blocks came"
            raise WorkerLostError(fact, hint=_HINT)


def check_answers(buckets: Iterable[int], parts: int) -> None:
    """Raise WorkerLostError unless each bucket, from 1 to `parts`, has answered exactly once."""
    answers = Counter(buckets)
    if answers != Counter(range(1, parts + 1)):
        wrong = sorted(b for b in answers.keys() | set(range(1, parts + 1)) if answers[b] != (1 <= b <= parts))
        raise WorkerLostError(f"of {parts} buckets of a window not each answered once: {wrong[:10]}", hint=_HINT)
