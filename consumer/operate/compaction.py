"""Compaction of an Iceberg target's tables, of whatever changefeed of its catalog they are."""

from contextlib import closing
from typing import TYPE_CHECKING, Any, cast

from consumer.config.model import Config
from consumer.filters.tables import table_filter
from consumer.wiring import target_of
from ordering.errors import ConfigError
from ordering.events import TableName
from sinks.wording import plural

if TYPE_CHECKING:
    from sinks.iceberg.compaction import Compaction
    from sinks.iceberg.session import LakeSession


def compact_tables(config: Config, patterns: tuple[str, ...], file_bytes: int) -> "Compaction":
    """Merge small data files of the tables that match, or of all. Raises TargetError, ConfigError."""
    matches = table_filter(patterns or ("*.*",), key="--tables")
    with closing(target_of(config)) as target:
        from sinks.iceberg.compaction import compact  # noqa: PLC0415 its libraries are an extra

        lake = cast("LakeSession", target.session.db)
        if target.applied(config.changefeed) is None:
            raise ConfigError(f"the catalog knows no changefeed {config.changefeed!r}", where="changefeed")
        if patterns and not any(matches(*name) for name in lake.names()):
            raise ConfigError(f"no table matches {' '.join(patterns)!r}", where="--tables")

        def wanted(name: TableName) -> bool:
            return matches(*name)

        return compact(lake, wanted, file_bytes)


def shown(found: "Compaction") -> tuple[dict[str, Any], str]:
    """What has come of it, for programs and for people."""
    tables = [
        {
            "table": str(one.table),
            "files": one.files,
            "bytes": one.bytes,
            "new_files": one.new_files,
            "new_bytes": one.new_bytes,
        }
        for one in found.tables
    ]
    lines = [
        f"{one.table}: {plural(one.files, 'file')} of {one.bytes:,} bytes became"
        f" {plural(one.new_files, 'file')} of {one.new_bytes:,} bytes"
        for one in found.tables
    ]
    if found.left:
        lines.append(f"{plural(found.left, 'file')} were replaced by windows meanwhile")
    return {"tables": tables, "left": found.left}, "\n".join(lines or ["there is nothing to merge"])
