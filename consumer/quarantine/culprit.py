"""Which message is at fault where a row can't be encoded or is refused by the target."""

from collections.abc import Iterable
from dataclasses import dataclass

from consumer.large_messages.fetch import Bodies
from consumer.tasks.encoding.chunk_encoder import RowError
from consumer.tasks.second_look import MessagePlace, Sought, place_of_row
from ordering.errors import ReconcilerError, TargetError
from sinks.rows.bisect_refused import RowRefusedError
from sinks.target import Target


@dataclass(frozen=True, slots=True)
class Refusal:
    """A row that does not get into the target: why, and where the message lies that holds it, if that is known."""

    failure: ReconcilerError
    place: MessagePlace | None
    copies: tuple[MessagePlace, ...] = ()
    """The place, and those of repetitions of the same event."""

    @property
    def placed(self) -> ReconcilerError:
        """The failure, with the message's place."""
        if self.place is None:
            return self.failure
        where = "; ".join(filter(None, (f"{self.place.name}, {self.place.position}", self.failure.where)))
        return type(self.failure)(self.failure.fact, where=where, hint=self.failure.hint)


def sought_of(error: RowError | RowRefusedError, target: Target, bodies: Bodies) -> Sought:
    """What to look for."""
    if isinstance(error, RowError):
        return Sought(fingerprint=error.row)
    return Sought(None, error.row, target.catalog().get(error.row.table), target.encoder, bodies)


def refusal_of(
    error: RowError | RowRefusedError, places: Iterable[MessagePlace], applied: int, *, net_effect: bool
) -> Refusal:
    """What is refused, out of the places where such a row was found. `applied`: the checkpoint."""
    failure: ReconcilerError
    if isinstance(error, RowError):
        failure = error.error
    else:
        failure = TargetError(error.fact, where=error.where, hint=error.hint)
    places = list(places)
    place = place_of_row(places, applied, net_effect=net_effect)
    if place is None:
        return Refusal(failure, None)
    copies = (p for p in places if (p.commit_ts, p.row, p.deletes) == (place.commit_ts, place.row, place.deletes))
    return Refusal(failure, place, tuple(sorted(copies)))
