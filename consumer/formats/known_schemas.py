"""Which schemas of upstream's tables a changefeed knows, and what of them has to be saved with the progress.

A row above the base names the schema that was in force at its commitTs (above the checkpoint, but for a window of
whole transactions that a crash has cut in two: all of it is read again). A schema's version lies a little below
the commitTs of the DDL that made it, so the newest few versions at or below the base are kept, and all above.
"""

from collections.abc import Iterable, Mapping

import xxhash

from consumer.formats.message_format import MessageFormat
from consumer.formats.sent_schema import SchemaIdentity, SentSchema, kept_schema, kept_text
from ordering.errors import InputError

_KEPT_VERSIONS = 3
"""Of each table, at or below the base. One would do but for the moment between a version and its DDL."""
MOST_SCHEMAS = 50_000
"""In all: names of tables that are gone must not fill the target."""


class KnownSchemas:
    """The schemas of one changefeed, as far as its format keeps any."""

    def __init__(self, format_: MessageFormat, kept: Iterable[str] = ()) -> None:
        found = [kept_schema(text) for text in kept]
        self.format = format_.knowing(found) if found else format_
        self._saved = {one.identity: one for one in found}
        self._new: dict[SchemaIdentity, SentSchema] = {}

    def learn(self, told: Iterable[SentSchema]) -> set[SchemaIdentity]:
        """Take what tasks met; return what was not known. Raises InputError where two schemas of one name differ."""
        new: dict[SchemaIdentity, SentSchema] = {}
        for one in told:
            known = self._saved.get(one.identity) or self._new.get(one.identity) or new.get(one.identity)
            if known is None:
                new[one.identity] = one
            elif known != one:
                raise InputError(
                    f"table {one.database}.{one.table} has two schemas of version {one.version}"[:400],
                    hint="several changefeeds, or table routes, write tables of one name: give each its own topic",
                )
        if new:
            self._new |= new
            self.format = self.format.knowing(new.values())
        return set(new)

    @property
    def has_new(self) -> bool:
        """Whether any schema is not saved."""
        return bool(self._new)

    def due(self, base_ts: int) -> tuple[tuple[tuple[str, str], ...], tuple[str, ...]]:
        """What has to be saved with a progress of this base: new definitions, and outdated ones."""
        if not self._new:
            return (), ()
        everything = {**self._saved, **self._new}
        gone = outdated(everything, base_ts)
        new = ((name_of(one.identity), kept_text(one)) for one in self._new.values() if one.identity not in gone)
        return tuple(new), tuple(name_of(identity) for identity in gone & self._saved.keys())

    def saved(self, base_ts: int) -> None:
        """What was due at this base is saved. The format goes on knowing all, for this process."""
        if self._new:
            everything = {**self._saved, **self._new}
            gone = outdated(everything, base_ts)
            self._saved = {identity: one for identity, one in everything.items() if identity not in gone}
            self._new = {}


def outdated(schemas: Mapping[SchemaIdentity, SentSchema], base_ts: int) -> set[SchemaIdentity]:
    """The schemas that no row above the base can name, and the oldest of too many."""
    newest = sorted(schemas, key=lambda identity: identity.version, reverse=True)
    count: dict[tuple[str, str], int] = {}
    gone: set[SchemaIdentity] = set(newest[MOST_SCHEMAS:])
    for identity in newest:
        table = identity.database, identity.table
        count[table] = count.get(table, 0) + (identity.version <= base_ts)
        if count[table] > _KEPT_VERSIONS:
            gone.add(identity)
    return gone


def name_of(identity: SchemaIdentity) -> str:
    """What a schema is called in the target: names may be longer than a key may be."""
    return xxhash.xxh3_128_hexdigest("\0".join((identity.database, identity.table, str(identity.version))).encode())
