"""What is known of a table of the target in which several tables of upstream, its shards, are merged.

The rule, for each *part* (a column, or an index that is not unique):

    the target has a part from when the first shard gets it until the last one has lost it;
    in rows of a shard that lacks a column, it holds its default, or what it held before the shard lost it

So a shard's DDL changes the target at once, or nothing, and never waits: a part that comes must be one that rows of the
others can do without, one that goes stays for them. A shard may not get a column back whose old values are still there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ordering.events import TableName

Shards = Iterable[TableName]
Parts = Mapping[str, str]
"""Parts by kind and name, as `column c`; what defines each, "" where that is not known."""


class MergeConflictError(Exception):
    """A shard's DDL that can't be followed without loss; the text says why, without naming the DDL."""


@dataclass(frozen=True, slots=True)
class MergedTable:
    """`parts`: what the target's table has, as far as DDLs have told; `whole`: whether that is all of it.

    `lacks`: the parts that a shard does not have; `left`: those of them that it had, whose values may still be there.
    """

    parts: Parts = field(default_factory=dict)
    whole: bool = False
    lacks: Mapping[TableName, frozenset[str]] = field(default_factory=dict)
    left: Mapping[TableName, frozenset[str]] = field(default_factory=dict)

    def lacking(self, shards: Shards, part: str) -> list[TableName]:
        """The shards that are known to lack a part."""
        return sorted(shard for shard in shards if part in self.lacks.get(shard, ()))

    def added(self, shard: TableName, others: Shards, part: str, definition: str) -> "tuple[MergedTable, bool]":
        """After a shard got a part; and whether the target has to get it too. Raises MergeConflictError."""
        known = self.parts.get(part)
        if known is None:
            lacks = {one: self.lacks.get(one, frozenset()) | {part} for one in others}
            return replace(self, parts={**self.parts, part: definition}, lacks={**self.lacks, **lacks}), True
        _check_known(part, known)
        _check_equal(part, known, definition)
        if part in self.left.get(shard, ()):
            message = f"the {part} comes back while other shards have kept it: its rows still hold what it held before"
            raise MergeConflictError(message)
        return replace(self, lacks=_without(self.lacks, shard, {part})), False

    def dropped(self, shard: TableName, others: Shards, part: str) -> "tuple[MergedTable, bool]":
        """After a shard lost a part; and whether the target has to lose it too. Raises MergeConflictError."""
        if part in self.lacks.get(shard, ()):  # DROP COLUMN IF EXISTS
            return self, False
        _check_known(part, self.parts.get(part))
        others = list(others)
        if len(self.lacking(others, part)) == len(others):
            return self._forgotten(part), True
        return replace(self, lacks=_with(self.lacks, shard, part), left=_with(self.left, shard, part)), False

    def without(self, shard: TableName, parts: Iterable[str], *, is_gone: bool) -> "MergedTable":
        """After these parts went with another one that a shard lost; `is_gone`: from the target, too."""
        table = self
        for part in parts:
            table = table._forgotten(part) if is_gone else replace(table, lacks=_with(table.lacks, shard, part))
        return table

    def _forgotten(self, part: str) -> "MergedTable":
        parts = {name: told for name, told in self.parts.items() if name != part}
        lacks, left = (
            {one: rest for one, some in known.items() if (rest := some - {part})} for known in (self.lacks, self.left)
        )
        return replace(self, parts=parts, lacks=lacks, left=left)

    def joined(self, shard: TableName, others: Shards, parts: Parts) -> "MergedTable":
        """After a further shard was made with these parts. Raises MergeConflictError naming what differs."""
        if not self.whole:
            message = "the target's table was there before, and no CREATE TABLE has told how its shards are defined"
            raise MergeConflictError(message)
        for part, definition in parts.items():
            if part not in self.parts:
                message = f"it has the {part}, which the merged table has not"
                raise MergeConflictError(message)
            if part.startswith("column "):
                _check_known(part, self.parts[part])
            _check_equal(part, self.parts[part], definition)
        missing = self.parts.keys() - parts.keys()
        for part in sorted(missing):
            if not self.lacking(others, part):
                message = f"it lacks the {part}, which all its shards have"
                raise MergeConflictError(message)
        lacks = {**_without(self.lacks, shard, self.parts), **({shard: frozenset(missing)} if missing else {})}
        return replace(self, lacks=lacks, left=_without(self.left, shard, self.parts))

    def emptied(self, shard: TableName) -> "MergedTable":
        """After all rows of a shard are gone: nothing holds what they held."""
        return replace(self, left=_without(self.left, shard, self.parts))

    def gone(self, shard: TableName) -> "MergedTable":
        """After a shard is gone."""
        lacks = {one: some for one, some in self.lacks.items() if one != shard}
        return replace(self, lacks=lacks, left={one: some for one, some in self.left.items() if one != shard})

    def renamed(self, shard: TableName, name: TableName) -> "MergedTable":
        """After a shard has another name."""
        lacks, left = (
            {name if one == shard else one: some for one, some in known.items()} for known in (self.lacks, self.left)
        )
        return replace(self, lacks=lacks, left=left)

    def doubted(self, parts: Iterable[str]) -> "MergedTable":
        """After a shard was changed in a way that is not followed: what defines these is no longer known."""
        return replace(self, parts={**self.parts, **dict.fromkeys(parts, "")}, whole=False)

    def given(self, shard: TableName, part: str) -> "MergedTable":
        """After a shard got a part in a way that is not followed."""
        return replace(self, lacks=_without(self.lacks, shard, {part}), left=_without(self.left, shard, {part}))

    def kept(self, shard: TableName, part: str) -> "MergedTable":
        """After a shard lost a part in a way that is not followed: it counts as having it, and can't get it back."""
        return replace(self, left=_with(self.left, shard, part))

    def never_had(self, shard: TableName, parts: Iterable[str]) -> "MergedTable":
        """After a shard came that the target has nothing of: a row of it that has one of these parts is refused."""
        return replace(self, lacks={**self.lacks, shard: frozenset(parts)})

    def unsure(self, shard: TableName) -> "MergedTable":
        """After a change of a shard of which nothing is known: it may have all."""
        return replace(self, lacks={one: some for one, some in self.lacks.items() if one != shard})

    def stored(self) -> dict[str, Any]:
        """As the progress keeps it."""
        shards = sorted({*self.lacks, *self.left})
        return {
            "parts": dict(sorted(self.parts.items())),
            "whole": self.whole,
            "shards": [[*one, sorted(self.lacks.get(one, ())), sorted(self.left.get(one, ()))] for one in shards],
        }

    @classmethod
    def restored(cls, state: Mapping[str, Any]) -> "MergedTable":
        """What `stored` gave."""
        shards = [(TableName(*one[:2]), frozenset(one[2]), frozenset(one[3])) for one in state["shards"]]
        lacks = {shard: some for shard, some, _ in shards if some}
        return cls(state["parts"], state["whole"], lacks, {shard: some for shard, _, some in shards if some})


Merged = Mapping[TableName, MergedTable]
"""By their places in the target."""


def merged_at(merged: Merged, place: TableName) -> MergedTable | None:
    """What is known of the merged table at a place; the target may spell that in another case than the routes."""
    return next((table for at, table in merged.items() if at.folded == place.folded), None)


def _check_known(part: str, known: str | None) -> None:
    if known == "":
        message = f"what the {part} is in the merged table is not known, since a DDL about it was not followed"
        raise MergeConflictError(message)


def _check_equal(part: str, known: str, definition: str) -> None:
    if known and definition and known != definition:
        message = f"the {part} is {definition} there, and {known} in the merged table"
        raise MergeConflictError(message)


def _with(known: Mapping[TableName, frozenset[str]], shard: TableName, part: str) -> dict[TableName, frozenset[str]]:
    return {**known, shard: known.get(shard, frozenset()) | {part}}


def _without(
    known: Mapping[TableName, frozenset[str]], shard: TableName, parts: Iterable[str]
) -> dict[TableName, frozenset[str]]:
    rest = known.get(shard, frozenset()) - frozenset(parts)
    return {one: rest if one == shard else some for one, some in known.items() if one != shard or rest}
