"""Every foreseen failure, by who must act.

    ReconcilerError              fact, where, hint; exit_code
    ├── ConfigError        2     the user: usage, config file, environment
    │   └── ClusterUnreachableError  worth a retry: no master of Spark answers
    ├── InputError         3     the operator: the input is broken at a position, or lost (R8)
    │   ├── BeginningLostError       retention deleted what is needed: an archive may have it
    │   ├── AnotherProtocolError     a message of a protocol that is not the expected one
    │   ├── LateEventError           an event below the checkpoint that was never applied
    │   └── UnfitRowError            a row that the schema known now does not fit: counts once the row does (R14)
    ├── SourceError        3     Kafka, or a store that messages refer to, refuses us
    │   ├── SourceUnreachableError   worth a retry
    │   └── BodyMissingError         worth a retry: it may only be late
    ├── TargetError        4     the target refuses a statement, a value, a right
    │   ├── TableMismatchError       the table is missing, or not what rows need
    │   ├── TransactionLimitError    a unit is too large for one transaction
    │   ├── RowCountError            a statement changed more rows than it may, or fewer
    │   ├── DriftError               the target lacks rows, or holds some that upstream does not have
    │   └── TargetUnreachableError   worth a retry
    │       └── TargetBusyError      worth one at once: only a transaction was rolled back
    ├── LeadershipLostError 5    another instance took over
    │   └── LeaderLivesError         another instance leads, and who wants to lead can't wait any longer
    ├── DifferencesError   6     `verify` or `prove` found differences
    ├── UnjudgedError      7     they found none, but could not compare all that was to be compared
    ├── NotAppliedError    8     what was waited for, or replayed, is not in the target
    ├── WorkerLostError    1     a Spark worker died; worth a retry
    ├── LocalDiskError     1     this machine's disk is full or fails; worth a retry
    └── CoreError          1     the compiled core crashed at a message: another try would end as this one

Anything else that escapes is a bug and ends with exit code 1.
"""

_HINT = "\n  hint: "
_LONGEST = 10_000
"""Characters of each part of an error: a server's own text may have hundreds of millions, and is logged and kept."""


class ReconcilerError(Exception):
    """A failure that was foreseen: what happened, where, and what to do about it."""

    exit_code = 1

    def __init__(self, fact: str, *, where: str = "", hint: str = "") -> None:
        self.fact, self.where, self.hint = map(_bounded, (fact, where, hint))
        super().__init__(self.fact, self.where, self.hint)

    def in_a_line(self) -> str:
        """Fact, place and hint, for what keeps or shows one line."""
        return str(self).replace(_HINT, "; ", 1)

    def __str__(self) -> str:
        """Fact and place in one line, the hint in the next."""
        line = f"{self.fact} ({self.where})" if self.where else self.fact
        return f"{line}{_HINT}{self.hint}" if self.hint else line

    def __reduce__(self) -> tuple[object, ...]:
        """Keep keyword-only fields when an error crosses a process boundary."""
        return (_rebuild, (type(self), self.fact, self.where, self.hint))


def _bounded(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}... ({len(text)} characters)"


def _rebuild(kind: type[ReconcilerError], fact: str, where: str, hint: str) -> ReconcilerError:
    return kind(fact, where=where, hint=hint)


class ConfigError(ReconcilerError):
    """The command line, the config file or the environment is wrong."""

    exit_code = 2


class ClusterUnreachableError(ConfigError):
    """No master of the Spark cluster answers."""


class InputError(ReconcilerError):
    """A message can't be used, or input that should be there is gone (R8)."""

    exit_code = 3


class BeginningLostError(InputError):
    """What is needed next is not in Kafka any more: an archive may hold it."""


class AnotherProtocolError(InputError):
    """A message is of another protocol of TiCDC than the changefeed's config says, or lacks what makes it usable."""


class LateEventError(InputError):
    """An event at or below the checkpoint that the ledger never saw applied: TiCDC broke its promise."""


class UnfitRowError(InputError):
    """A row that can't be read with the schema that is known now.

    Whether that is an error is known only once the row is known to be applied with this schema (R14): a DDL that comes
    before it may not have been seen yet, and one that came after it may have been executed already.
    """


class SourceError(ReconcilerError):
    """Kafka, or what its messages refer to, refuses what we ask."""

    exit_code = 3


class SourceUnreachableError(SourceError):
    """Kafka does not answer."""


class PackedBatchError(SourceUnreachableError):
    """A batch that Kafka's client can't unpack: it is damaged, or holds more than that client takes."""


class BodyMissingError(SourceError):
    """What a message refers to, a claim-check file or a row upstream, can't be had, or not yet."""


class TargetError(ReconcilerError):
    """The target refuses what we ask."""

    exit_code = 4


class TableMismatchError(TargetError):
    """The target's table is missing, or has not the columns or the key that rows need: no row is at fault."""


class TransactionLimitError(TargetError):
    """A unit is larger than what the target takes in one transaction: no row of it is at fault."""


class RowCountError(TargetError):
    """A statement changed another number of rows than it may: the unit is rolled back, and no row is at fault."""


class DriftError(TargetError):
    """The target held other rows than the events say were there, and the config says to stop at that."""


class TargetUnreachableError(TargetError):
    """The target does not answer, or cut the connection, or asks for a new try."""


class TargetBusyError(TargetUnreachableError):
    """The target rolled a transaction back that others were in the way of: a deadlock, a lock timeout."""


class LeadershipLostError(ReconcilerError):
    """Another instance raised the epoch of this changefeed."""

    exit_code = 5


class LeaderLivesError(LeadershipLostError):
    """Another instance leads this changefeed, and lives."""


class DifferencesError(ReconcilerError):
    """Target and upstream were compared, and differ."""

    exit_code = 6


class UnjudgedError(ReconcilerError):
    """Target and upstream were compared and nothing differs, but something could not be compared."""

    exit_code = 7


class NotAppliedError(ReconcilerError):
    """What was waited for is not in the target yet and the time is over; or a message that was replayed stays held."""

    exit_code = 8


class WorkerLostError(ReconcilerError):
    """A Spark task failed for no reason of the input's: its worker or executor died."""


class LocalDiskError(ReconcilerError):
    """A temporary file of this machine can't be written or read."""


class CoreError(ReconcilerError):
    """The compiled core crashed at a message: a bug of ours, which `spark.native = false` goes around."""


NO_ROW_AT_FAULT = (TargetUnreachableError, TransactionLimitError, RowCountError, DriftError, TableMismatchError)
"""What a target says that is not about one of the rows: no other try with fewer rows, or in another way, helps."""
TRANSIENT = (
    SourceUnreachableError,
    BodyMissingError,
    TargetUnreachableError,
    WorkerLostError,
    LocalDiskError,
    ClusterUnreachableError,
)
