"""`reconciler status` as text: one line that judges, then what it is judged by."""

from collections.abc import Iterator
from typing import Any

from consumer.cli.ddl import ddl_line
from consumer.cli.shared import cut
from consumer.proof.report import ProofVerdict, repair_hint
from sinks.bookkeeping.ddl_log import DECIDED, REPLACED, DdlState
from sinks.wording import plural

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_LONG_S = 10 * _MINUTE
"""A topic whose watermarks are older may be dead."""
_STANDS_S = 30
"""A partition whose watermark is so much older than another's holds it back in a way that people notice."""
_NAMED = 3
"""Partitions that the line of the state names."""
_MISSED = 3
"""A leader that is silent for so many leases is taken for dead; it tells more often than once a lease."""
_STATE = 400
"""Characters of what Kafka says."""
_ERROR = 1500
"""Characters of the error that ended a run, with its hint."""
_LEAST_S = 0.05
_DECIDED = {state.value for state in DECIDED}
_SHORT_S = 10
"""Below this a tenth of a second is told."""


def status_lines(found: dict[str, Any], lease_s: float) -> Iterator[str]:
    """The lines of a status as `consumer.operate.status.status_of` gives it; `lease_s`: `limits.lease-seconds`."""
    source, leader = found["source"], found["leader"]
    yield f"changefeed   {found['changefeed']} -> {found['target']}"
    yield f"state        {verdict(found, lease_s)}"
    yield from _stopped(found, lease_s)
    yield _checkpoint(found)
    lag = source.get("lag_seconds")
    unknown = "-" if found["checkpoint_ts"] == 0 else "unknown"
    yield "lag          " + (unknown if lag is None else f"{duration(lag)} behind the watermark")
    yield (
        f"events       {found['events']:,}, duplicates {found['duplicates']:,} (proven {found['duplicates_proven']:,}),"
        f" filtered {found['filtered']:,}, quarantined {found['quarantined']:,},"
        f" rows written {found['rows_written']:,}, DDLs {found['ddls']:,}, windows {found['windows']:,}"
    )
    alive = f", last sign of life {duration(leader['silent_seconds'])} ago" if leader else ""
    yield f"leader       {leader['name'] if leader else '-'}, epoch {found['leader_epoch']}{alive}"
    yield f"stand-bys    {', '.join(one['name'] for one in found['stand_bys']) or '-'}"
    yield f"ledger       {found['ledger']['state']}"
    if not found["core"]["used"]:
        yield f"core         tasks on this machine read in Python: {found['core']['why']}"
    for one in found["drift"]:
        missing, unexpected = (plural(one[kind], "row") for kind in ("missing", "unexpected"))
        yield f"drift        {one['table']}: {missing} missing, {unexpected} unexpected"
    yield from _proof(found["proof"])
    if found["archived"]:
        yield f"archive      read instead of the topics: {cut(found['archived'], _STATE)}"
    for name in found["retired_topics"]:
        yield f"retired      topic {name}: nothing more is expected from it; `reconciler topic return` takes that back"
    yield f"kafka        {cut(source['state'], _STATE)}; held back by: {_held_back(source)}"
    yield from _standing_still(source)
    yield from (_partition(one) for one in source.get("partitions", []))
    yield from (f"  DDL {ddl_line(told)}" for told in found["ddl_history"])


def _stopped(found: dict[str, Any], lease_s: float) -> Iterator[str]:
    """With which error the last run ended, while none is running."""
    stop = found["last_stop"]
    if stop is not None and not _is_led(found, lease_s):
        at = stop["at"][:19].replace("T", " ")
        yield f"stopped      {at} UTC, exit code {stop['exit_code']}: {cut(stop['error'], _ERROR)}"


def _is_led(found: dict[str, Any], lease_s: float) -> bool:
    """Whether an instance leads that has given a sign of life."""
    return found["leader"] is not None and found["leader"]["silent_seconds"] <= _MISSED * lease_s


def _checkpoint(found: dict[str, Any]) -> str:
    """What the target holds, and how old that is against the clock."""
    behind, saved = found.get("lag_now_seconds"), found["updated_at"]
    if found["checkpoint_ts"] == 0:
        return "checkpoint   none yet"
    age = "" if behind is None else f", {duration(max(behind, 0))} ago"
    told = f"saved {saved[:19].replace('T', ' ')}" if saved else "nothing saved yet"
    return f"checkpoint   {found['checkpoint_ts']} ({found['checkpoint_time']} UTC{age}), {told}"


def _running(found: dict[str, Any], lease_s: float) -> str:
    """Whether somebody leads. Who was killed stays the leader in the target until another one takes over."""
    leader = found["leader"]
    if _is_led(found, lease_s):
        return "running"
    if found["last_stop"] is not None:
        return f"stopped by an error, exit code {found['last_stop']['exit_code']}"
    if leader is None:
        return "not running"
    silent = duration(leader["silent_seconds"])
    return f"not running as far as can be seen: {leader['name']} led, and has given no sign of life for {silent}"


def verdict(found: dict[str, Any], lease_s: float) -> str:
    """What a person wants to know first: is it running, and if not, why."""
    ahead = [one for one in found["ddl_history"] if one["commit_ts"] >= found["checkpoint_ts"]]
    failed = [x["commit_ts"] for x in ahead if x["state"] == DdlState.FAILED.value and x["reason"] != REPLACED]
    if failed:
        return f"stopped by the DDL at {min(failed)}: see `reconciler ddl list CONFIG`"
    decided = [one["commit_ts"] for one in ahead if one["state"] in _DECIDED]
    if decided and not _is_led(found, lease_s):
        return f"not running; the DDL at {min(decided)} that stopped it is decided: start it again"
    if found["state"] == "new":
        stopped = f"{_running(found, lease_s)}; " if found["last_stop"] is not None else ""
        return f"new: {stopped}nothing has been applied yet"
    running = _running(found, lease_s)
    wrong = sum(one["verdict"] == ProofVerdict.DIFFERENT.value for one in found["proof"])
    running += f"; drift: {plural(wrong, 'table')} not as the events say" if wrong else ""
    lag = found["source"].get("lag_seconds")
    if lag is None and found["checkpoint_ts"] == 0 and found["source"].get("resolved_ts") is not None:
        return f"{running}; nothing has been applied yet"
    if lag is None:
        return f"{running}; how far it is behind is unknown: {_why_unknown(found['source'])}"
    behind = "everything up to the watermark is applied" if lag == 0 else f"{duration(lag)} behind"
    return f"{running}; {behind}{_why_old(found['source'])}"


def _proof(tables: list[dict[str, Any]]) -> Iterator[str]:
    """What proofs have found: what differs, with what to do, and what is not proven; of the rest a line in all."""
    for one in tables:
        if one["verdict"] == ProofVerdict.DIFFERENT.value:
            buckets = ", ".join(map(str, one["buckets"]))
            rows = f"{plural(one['rows'], 'row')}, {one['rows_expected']} expected, buckets {buckets} differ"
            what = one["reason"] or rows
            yield f"drift        {one['table']}: {what} at {one['checkpoint_time']} UTC; {repair_hint(one['table'])}"
        elif one["verdict"] == ProofVerdict.UNPROVEN.value:
            yield f"unproven     {one['table']}: {one['reason']}"
        if one["columns_left_out"]:
            yield f"unproven     {one['table']}: the columns {', '.join(one['columns_left_out'])}"
    equal = sorted(one["checkpoint_time"] for one in tables if one["verdict"] == ProofVerdict.EQUAL.value)
    if tables:
        oldest = f", the first of them at {equal[0]} UTC" if equal else ""
        bases = [one for one in tables if one["verdict"] == ProofVerdict.BASE.value]
        why = f": {bases[0]['reason']}" if bases and bases[0]["reason"] else ""
        begun = f"; {len(bases)} only a base for the next proof, {bases[0]['table']} first{why}" if bases else ""
        yield f"proof        {len(equal)} of {plural(len(tables), 'table')} proven equal{oldest}{begun}"


def _why_unknown(source: dict[str, Any]) -> str:
    if source["state"] != "connected":
        return "see the line `kafka` below"
    without = [_name(p) for p in source.get("partitions", []) if p["watermark_age_seconds"] is None]
    return "no watermark has been seen yet" + (f" in {_few(without)}" if without else "")


def _why_old(source: dict[str, Any]) -> str:
    """The partitions whose old watermark holds the others back; or that all watermarks are old."""
    ages = {_name(p): p["watermark_age_seconds"] for p in source.get("partitions", [])}
    held = [name for name in source.get("held_back_by", []) if ages.get(name) is not None]
    if not held:
        return ""
    youngest, oldest = min(age for age in ages.values() if age is not None), max(ages[name] for name in held)
    if oldest - youngest > _STANDS_S:
        return f"; held back by {_few(held)}, where the last watermark is {duration(oldest)} old"
    return f"; the newest watermark is {duration(youngest)} old: see whether TiCDC runs" if youngest > _LONG_S else ""


def _name(p: dict[str, Any]) -> str:
    return f"topic={p['topic']} partition={p['partition']}"


def _few(names: list[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def duration(seconds: float) -> str:
    """A time span in at most two units: `42 s`, `5 min 3 s`, `2 h 10 min`, `326 d 4 h`."""
    whole = round(seconds)
    if 0 < seconds < _LEAST_S:
        return "less than 0.1 s"
    if whole < _MINUTE:
        return f"{seconds:.1f} s" if whole < _SHORT_S and round(seconds, 1) != whole else f"{whole} s"
    for size, unit, smaller, rest in ((_DAY, "d", _HOUR, "h"), (_HOUR, "h", _MINUTE, "min"), (_MINUTE, "min", 1, "s")):
        if whole >= size:
            more = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {more} {rest}" if more else "")
    raise AssertionError(seconds)


def _partition(p: dict[str, Any]) -> str:
    age = p["watermark_age_seconds"]
    watermark = "no watermark yet" if age is None else f"watermark {p['resolved_time']}, {duration(age)} ago"
    return f"  {p['topic']}/{p['partition']}: offset {p['offset']} of {p['end_offset']}, {watermark}"


def _standing_still(source: dict[str, Any]) -> Iterator[str]:
    """Topics of which no watermark has risen for long while those of others have."""
    youngest: dict[str, float] = {}
    for one in source.get("partitions", []):
        age = one["watermark_age_seconds"]
        known = youngest.get(one["topic"], float("inf"))
        youngest[one["topic"]] = min(known, float("inf") if age is None else age)
    for name, age in youngest.items():
        if age > _LONG_S > min(youngest.values()):
            yield (
                f"  topic {name} gets no watermarks; if TiCDC will never write to it again:"
                f" `reconciler topic retire CONFIG {name}`"
            )


def _held_back(source: dict[str, Any]) -> str:
    """Who holds the others back; where all partitions stand alike nobody does."""
    names = source.get("held_back_by", [])
    alike = len(names) == len(source.get("partitions", [])) and source.get("resolved_ts") is not None
    return "-" if alike else ", ".join(names) or "-"
