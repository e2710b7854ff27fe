"""Expiry: snapshots that no read as of a TSO from a given one on needs, and the files that nothing names any more.

Of each table all snapshots above that TSO stay, and the last one at or below it, so tables can still be joined as of
any TSO from it on. The pointers of all tables move in one transaction, under the catalog's lock: a leader finds that a
pointer has moved, and does its window again.

Files go by what is there, not by what has just expired: also what a crash has left goes. A file that is being written
is younger than its table's pointer: whoever moves a pointer makes those who began before do their window again. Only
files older than that go, so that no jump of the clock deletes what a leader is about to name. `YOUNGEST_S` on top of
it is for readers.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Snapshot

from sinks.iceberg.session import LakeSession
from sinks.iceberg.table import CHECKPOINT, LakeTable

YOUNGEST_S = 86_400.0
"""A file that nothing names is deleted once it is so old: a reader may have opened it while it was named."""


@dataclass(frozen=True, slots=True)
class Expired:
    """What has gone."""

    tables: int
    snapshots: int
    files: int
    bytes: int


def expire(session: LakeSession, since: int, youngest_s: float = YOUNGEST_S) -> Expired:
    """Expire what only reads as of a TSO below `since` need. Raises TargetError and its kinds."""
    session.begin_alone()
    try:
        with session.using_warehouse():
            snapshots = sum(_expire_table(table, since) for table in list(session.tables()))
            session.write_metadata()
        session.move_pointers()
    except BaseException:
        session.rollback()
        raise
    session.commit()
    with session.using_warehouse():
        found = [_delete_unnamed(session, table, youngest_s) for table in list(session.tables())]
    return Expired(len(found), snapshots, sum(files for files, _ in found), sum(size for _, size in found))


def unneeded(metadata: TableMetadata, since: int) -> list[int]:
    """The snapshots that no read as of `since` or later needs; never a current, tagged or branched one."""
    kept = {metadata.current_snapshot_id, *(ref.snapshot_id for ref in metadata.refs.values())}
    known = [(checkpoint_of(snapshot), snapshot.snapshot_id) for snapshot in metadata.snapshots]
    last = max((at for at, (ts, _) in enumerate(known) if ts is not None and ts <= since), default=-1)
    return [number for _, number in known[: max(last, 0)] if number not in kept]


def checkpoint_of(snapshot: Snapshot) -> int | None:
    """The checkpoint that a snapshot names; None for another program's."""
    text = (snapshot.summary or {}).get(CHECKPOINT)
    return None if text is None else int(text)


def _expire_table(table: LakeTable, since: int) -> int:
    gone = unneeded(table.metadata, since)
    if gone:
        table.expire(gone)
    return len(gone)


def _delete_unnamed(session: LakeSession, table: LakeTable, youngest_s: float) -> tuple[int, int]:
    """Delete the files of a table's directory that nothing names and that are old; how many, and their bytes."""
    io = session.io
    named = set(map(io.place, _named(session, table)))
    latest = min(time.time(), io.written_s(table.pointer)) - youngest_s
    listed = list(io.listed(table.metadata.location))
    unnamed = [found for found in listed if found.place not in named and found.written_s < latest]
    io.remove([found.place for found in unnamed])
    return len(unnamed), sum(found.size for found in unnamed)


def _named(session: LakeSession, table: LakeTable) -> Iterator[str]:
    """Locations that a table's pointer, its log of metadata files and its snapshots lead to."""
    metadata = table.metadata
    yield table.pointer
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (one.statistics_path for one in metadata.statistics)
    seen: set[str] = set()
    for snapshot in metadata.snapshots:
        yield snapshot.manifest_list
        for manifest in snapshot.manifests(session.io):
            if manifest.manifest_path in seen:
                continue
            seen.add(manifest.manifest_path)
            yield manifest.manifest_path
            for entry in manifest.fetch_manifest_entry(session.io, discard_deleted=True):
                yield entry.data_file.file_path
