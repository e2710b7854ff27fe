"""`ignore-update-only-columns`: UPDATEs that change no more than columns of little interest (`updated_at`).

As TiCDC's `pkg/filter/update_only_columns_filter.go` has it: an UPDATE is left out if every column that it changes is
named, and none of them is part of the primary key or of a unique one. Names that a table lacks count for nothing; where
it has none of them, no UPDATE is left out. One that changes nothing is.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Texts = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class OnlyColumns:
    """The names of one event filter."""

    names: frozenset[str]
    """In lower case unless `case_sensitive`."""
    case_sensitive: bool = False

    @property
    def text(self) -> str:
        """The same for the same columns."""
        return f"only {sorted(self.names)}{' as spelled' * self.case_sensitive}"

    def named(self, columns: Iterable[str]) -> set[str]:
        """Which of a table's columns it names."""
        return {column for column in columns if (column if self.case_sensitive else column.lower()) in self.names}

    def covers(self, changed: set[str], columns: Iterable[str]) -> bool:
        """Whether it names all that changed. `columns`: the whole row's."""
        named = self.named(columns)
        return bool(named) and changed <= named


def only_columns(names: Iterable[str], *, case_sensitive: bool) -> OnlyColumns | None:
    """The names as the config has them; None for none."""
    found = frozenset(name if case_sensitive else name.lower() for name in names)
    return OnlyColumns(found, case_sensitive) if found else None


def changed_columns(old: Texts, new: Texts) -> set[str]:
    """What an UPDATE changed: as messages spell values, with the old image whole."""
    return {column for column, text in new.items() if old.get(column) != text}


def touches(changed: Iterable[str], keys: Sequence[tuple[str, ...]]) -> bool:
    """Whether a column of a key changed, or may have: where the table has no handle key, or is not known.

    `keys`: the handle key, then the unique ones; "" stands for what is no whole column (`TableSchema`).
    """
    columns = {column.lower() for key in keys for column in key}
    return not keys or not keys[0] or "" in columns or any(column.lower() in columns for column in changed)
