"""The tables of an Iceberg catalog that a transaction touches, and their files.

    begin -> files of all touched tables written and synced -> pointers and progress -> commit

The pointers are rows of the catalog's database (`sinks.iceberg.catalogs`), beside our own tables: one transaction moves
all of them, each only from where it was read.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import FromInputFile, ToOutputFile
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from ordering.events import TableName
from sinks.iceberg.catalogs import CATALOG, CatalogDatabase
from sinks.iceberg.files import LakeFiles
from sinks.iceberg.objects import StoreFiles
from sinks.iceberg.table import COLUMNS, PROPERTIES, LakeTable

_UNSAFE = re.compile(r"[^\w-]", re.ASCII)
"""What the name of a directory does without."""
_PLACE = "catalog_name = %s AND table_namespace = %s AND table_name = %s"


class LakeSession:
    """A connection to the catalog, and the tables that its transaction has touched."""

    def __init__(self, database: CatalogDatabase, files: LakeFiles | StoreFiles) -> None:
        self.where = database.where
        self.database = database
        self.io = files
        self._read: dict[str, TableMetadata] = {}
        self._tables: dict[TableName, LakeTable] = {}

    def run(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """See `DatabaseSession.run`."""
        return self.database.run(sql, parameters)

    def query(self, sql: str, parameters: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """See `DatabaseSession.query`."""
        return self.database.query(sql, parameters)

    def value(self, sql: str, parameters: Sequence[Any] | None = None) -> Any:
        """See `DatabaseSession.value`."""
        return self.database.value(sql, parameters)

    def has_table(self, name: str) -> bool:
        """Whether there is this table of ours."""
        return self.database.has_table(name)

    def begin(self) -> None:
        """See `DatabaseSession.begin`."""
        self._tables.clear()  # what was read before may have changed since
        self.database.begin()

    def begin_alone(self) -> None:
        """Begin a transaction beside which no pointer moves."""
        self._tables.clear()
        self.database.begin_alone()

    def save_point(self) -> None:
        """See `DatabaseSession.save_point`: never called."""

    def back_to_point(self) -> None:
        """See `DatabaseSession.back_to_point`: never called."""

    def rollback(self) -> None:
        """Drop the transaction, and the files that it has written."""
        self._tables.clear()
        self.database.rollback()
        self.io.discard()

    def close(self) -> None:
        """Close the connection."""
        self.database.close()

    def write_files(self, checkpoint_ts: int) -> None:
        """Write data files, then metadata, of all touched tables, and sync them: a power failure leaves them, too.

        The tables change no more in this transaction.
        """
        try:
            with self.using_warehouse():
                for table in self._tables.values():
                    table.apply(checkpoint_ts)
                self.write_metadata()
        except (pa.ArrowException, ArithmeticError, ValueError) as error:
            raise TargetError(f"rows can't be written: {error}", where=self.where) from error

    @contextmanager
    def using_warehouse(self) -> Iterator[None]:
        """What the warehouse's files raise, as errors of the target."""
        try:
            yield
        except (PermissionError, FileNotFoundError) as error:
            fact = "refuses us" if isinstance(error, PermissionError) else "lacks a file"
            raise TargetError(f"the warehouse {fact}: {error}", where=self.io.root) from error
        except OSError as error:
            raise TargetUnreachableError(f"the warehouse does not answer: {error}", where=self.io.root) from error

    def check_warehouse(self) -> None:
        """Ask the warehouse for a file's name. Raises TargetError and its kinds."""
        with self.using_warehouse():
            next(iter(self.io.listed(self.io.root)), None)

    def move_pointers(self) -> None:
        """Let the catalog name what was written."""
        for table in self._tables.values():
            if table.moved_to:
                self._move(table)

    def commit(self) -> None:
        """Commit. Files stay if it fails: a COMMIT whose end is not known may have happened."""
        if any(table.is_open for table in self._tables.values()):
            raise TargetError("tables were changed, but the progress was not saved with them", where=self.where)
        self.io.keep()
        self.database.commit()
        for table in self._tables.values():
            if table.moved_to:
                self._read.pop(table.pointer, None)
        self._tables.clear()

    def write_metadata(self) -> None:
        """Write the metadata of all touched tables, and sync what was written. Raises OSError."""
        for table in self._tables.values():
            found = table.finished()
            if found is not None:
                metadata, table.moved_to = found
                ToOutputFile.table_metadata(metadata, self.io.new_output(table.moved_to))
                self._read[table.moved_to] = metadata
        self.io.sync()

    def _move(self, table: LakeTable) -> None:
        moved = self.run(
            "UPDATE ticdc_reconciler.iceberg_tables SET metadata_location = %s, previous_metadata_location = %s"  # noqa: S608
            f" WHERE {_PLACE} AND metadata_location = %s",
            (table.moved_to, table.pointer, CATALOG, *table.name, table.pointer),
        )
        if moved != 1:
            raise TargetBusyError(f"another writer has changed table {table.name}", where=self.where)

    def names(self) -> list[TableName]:
        """All tables of the catalog."""
        look = "SELECT table_namespace, table_name FROM ticdc_reconciler.iceberg_tables WHERE catalog_name = %s"
        return [TableName(*row) for row in self.query(look, (CATALOG,))]

    def databases(self) -> set[str]:
        """All namespaces."""
        look = "SELECT namespace FROM ticdc_reconciler.iceberg_namespace_properties WHERE catalog_name = %s"
        return {name for (name,) in self.query(look, (CATALOG,))}

    def tables(self) -> Iterator[LakeTable]:
        """All tables that this changefeed's kind has made: others are none of ours."""
        for name in self.names():
            table = self.table(name)
            if table.fact(COLUMNS) is not None:
                yield table

    def table(self, name: TableName) -> LakeTable:
        """A table, as this transaction leaves it. Raises TargetError where there is none."""
        if name not in self._tables:
            look = f"SELECT metadata_location FROM ticdc_reconciler.iceberg_tables WHERE {_PLACE}"  # noqa: S608
            pointer = self.value(look, (CATALOG, *name))
            if pointer is None:
                raise TargetError(f"table {name} is missing in the catalog", where=self.where)
            self._tables[name] = LakeTable(name, self._metadata(pointer), pointer, self.io)
        return self._tables[name]

    def _metadata(self, pointer: str) -> TableMetadata:
        if pointer not in self._read:
            with self.using_warehouse():
                self._read[pointer] = FromInputFile.table_metadata(self.io.new_input(pointer))
        return self._read[pointer]

    def create(self, name: TableName, schema: Schema) -> LakeTable:
        """A new, empty table; its directory has a name of its own, as tables are renamed."""
        self.create_database(name.database)
        place = "/".join(_UNSAFE.sub("_", part) for part in name)
        location = f"{self.io.root}/{place}-{uuid4().hex[:8]}"
        metadata = new_table_metadata(schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, PROPERTIES)
        pointer = load_location_provider(location, {}).new_table_metadata_file_location()
        with self.using_warehouse():
            ToOutputFile.table_metadata(metadata, self.io.new_output(pointer))
        insert = "INSERT INTO ticdc_reconciler.iceberg_tables VALUES (%s, %s, %s, %s, NULL, 'TABLE')"
        self.run(insert, (CATALOG, *name, pointer))
        self._read[pointer] = metadata
        return self.table(name)

    def drop(self, name: TableName) -> None:
        """A table goes; its files stay, for readers of its snapshots."""
        self._tables.pop(name, None)
        self.run(f"DELETE FROM ticdc_reconciler.iceberg_tables WHERE {_PLACE}", (CATALOG, *name))  # noqa: S608

    def rename(self, old: TableName, new: TableName) -> None:
        """A table gets another name."""
        self._tables.pop(old, None)
        self.create_database(new.database)
        change = "UPDATE ticdc_reconciler.iceberg_tables SET table_namespace = %s, table_name = %s"
        if self.run(f"{change} WHERE {_PLACE}", (*new, CATALOG, *old)) != 1:
            raise TargetError(f"table {old} is missing in the catalog", where=self.where)

    def create_database(self, name: str) -> None:
        """Make a namespace where there is none."""
        insert = "INSERT INTO ticdc_reconciler.iceberg_namespace_properties VALUES (%s, %s, 'exists', 'true')"
        self.run(f"{insert} ON CONFLICT DO NOTHING", (CATALOG, name))

    def drop_database(self, name: str) -> None:
        """A namespace goes, with its tables."""
        for table in self.names():
            if table.database == name:
                self.drop(table)
        delete = "DELETE FROM ticdc_reconciler.iceberg_namespace_properties WHERE catalog_name = %s AND namespace = %s"
        self.run(delete, (CATALOG, name))
