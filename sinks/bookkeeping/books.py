"""All that a target keeps about changefeeds, each table's SQL in a module of its own."""

from dataclasses import dataclass
from typing import Self

from sinks.bookkeeping.audit import AuditTable
from sinks.bookkeeping.ddl_log import DdlLog
from sinks.bookkeeping.definitions import DefinitionTable
from sinks.bookkeeping.load_files import LoadTable
from sinks.bookkeeping.progress_rows import ProgressTable
from sinks.bookkeeping.proofs import ProofTable
from sinks.bookkeeping.quarantine import QuarantineTable
from sinks.bookkeeping.stops import StopTable
from sinks.bookkeeping.tables import Book
from sinks.bookkeeping.upstream_schemas import UpstreamSchemaTable
from sinks.bookkeeping.write_permits import PermitTable


@dataclass(frozen=True, slots=True)
class Books:
    """The tables of ours in one target."""

    progress: ProgressTable
    permits: PermitTable
    ddl_log: DdlLog
    quarantine: QuarantineTable
    definitions: DefinitionTable
    schemas: UpstreamSchemaTable
    loads: LoadTable
    proofs: ProofTable
    stops: StopTable
    audit: AuditTable

    @classmethod
    def over(cls, book: Book) -> Self:
        """All of them over one session."""
        return cls(
            ProgressTable(book),
            PermitTable(book),
            DdlLog(book),
            QuarantineTable(book),
            DefinitionTable(book),
            UpstreamSchemaTable(book),
            LoadTable(book),
            ProofTable(book),
            StopTable(book),
            AuditTable(book),
        )
