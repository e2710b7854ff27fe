"""Which keys of a changefeed may be changed, and why the others may not.

Every change needs a restart of the changefeed: a run reads its config once, at its start.
"""

import re
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from consumer.config.changefeed_filter import read_filter
from consumer.config.model import Config
from consumer.serve.api.errors import ConflictError
from consumer.wiring import target_of
from ordering.errors import InputError
from ordering.progress import Progress
from sinks.uri import parse_target_uri

REFUSED = {
    "changefeed": "it names the progress, the consumer group and the ledger: create another changefeed",
    "source.topics": "rows of a new topic at or below the checkpoint would be missing: create another changefeed",
    "source.start-ts": "it counts for a new changefeed only: `reconciler progress rewind` goes back",
    "source.time-zone": "what was written was read with the old one: create another changefeed, into a new target",
    "source.storage": "files of another directory are another changefeed's: create another changefeed",
    "sink": "rows so far would lie in other tables than later ones: create another changefeed, into a new target",
    "source.protocol": "the topics hold messages of the old one: create another changefeed, with a new topic",
    "spark": "all changefeeds share one Spark: change _serve.toml and restart the process",
}
"""Key, or section -> why it stays."""
AT_FIRST = frozenset({"source.topics", "source.protocol"})
"""What may be corrected all the same while nothing has been applied: no progress depends on it yet."""
CHANGEABLE = re.compile(
    r"(filter|limits|quarantine|redis|proof)\..+|target\.(uri|consistency|invalid-dates|volatile-defaults|cdc-write-source"
    r"|concurrent-indexes|on-drift|audit|audit-days)|(target\.warehouse-options|source\.(bootstrap-servers|kafka|claim-check|upstream"
    r"|unproven-beginning|equal-rows|ignored-watermarks|storage-options|csv|archive(-options|-protocol|-csv)?|lossy-values|watermark-(from|changefeed|keyspace)"
    r"|schema-registry(-ca)?|avro-enable-watermark))(\..+)?"
)


def merged(old: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The values with some replaced, key by key within a section, lists as a whole; null takes a key out."""
    values = dict(old)
    for name, value in change.items():
        known = values.get(name)
        if value is None:
            values.pop(name, None)
        elif isinstance(value, Mapping):
            values[name] = merged(known if isinstance(known, Mapping) else {}, value)
        else:
            values[name] = value
    return values


def changed_keys(old: Any, new: Any, key: str = "") -> list[str]:
    """The keys that differ, dotted, as deep as tables go."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = sorted({*old, *new})
        found = (changed_keys(old.get(n), new.get(n), f"{key}.{n}" if key else str(n)) for n in names)
        return [inner for some in found for inner in some]
    if isinstance(old, Mapping) or isinstance(new, Mapping):
        return changed_keys(old or {}, new or {}, key) if old in (None, {}) or new in (None, {}) else [key]
    return [] if old == new else [key]


def check_keys(keys: list[str]) -> None:
    """Raise ConflictError for a key that must stay, with the reason. Those of `AT_FIRST` are not judged here."""
    for key in keys:
        if key in AT_FIRST:
            continue
        for fixed, why in REFUSED.items():
            if key == fixed or key.startswith(f"{fixed}."):
                raise ConflictError(f"{key} can't be changed", where=f"key {key!r}", hint=why)
        if not CHANGEABLE.fullmatch(key):
            raise ConflictError(
                f"{key} can't be changed", where=f"key {key!r}", hint="`reconciler help serve` lists what can"
            )


def check_unbegun(config: Config, keys: list[str], *, led: bool) -> None:
    """Raise ConflictError for a key of `AT_FIRST` once something was applied; of `led`, also while an instance leads.

    The target is asked: what this process knows may be older. Raises TargetError if it does not answer.
    """
    key = next((one for one in keys if one in AT_FIRST), None)
    if key is None:
        return
    with closing(target_of(config)) as target:
        stored = target.stored(config.changefeed)
        lives = led and target.is_led(config.changefeed)
    if lives:
        hint = "stop the other instance first; it reads its own file"
        raise ConflictError("another instance leads this changefeed", where=f"key {key!r}", hint=hint)
    known = Progress() if stored is None else stored.progress
    if not known.untouched or known.window is not None or known.executed:
        raise ConflictError(f"{key} can't be changed any more", where=f"key {key!r}", hint=REFUSED[key])


def check_same_place(old: Config, new: Config) -> None:
    """Raise ConflictError if the target would be another one: its progress is there. Logins and TLS may change."""
    before, after = parse_target_uri(old.target.uri), parse_target_uri(new.target.uri)
    if (before.kind, before.place, before.warehouse) != (after.kind, after.place, after.warehouse):
        fact = f"the target would move from {before.place} to {after.place}, or its warehouse"
        hint = "rows and progress are in the old one: create another changefeed"
        raise ConflictError(fact, where="key 'target.uri'", hint=hint)


def check_filter(new: Config, progress: Progress) -> None:
    """Raise ConflictError if the filter would take in rows whose past is not in the target."""
    if not progress.filter_digest:
        return
    try:
        filters = read_filter(new.filter)
        filters.check_change(progress.filter_digest, new.changefeed, torn=progress.window is not None)
    except InputError as error:
        raise ConflictError(error.fact, where=error.where, hint=error.hint) from error
