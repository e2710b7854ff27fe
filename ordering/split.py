"""R5's first step: every row change as halves, each about one handle key.

An UPDATE that keeps its handle key is one WRITE, for a full row replaces whatever is there. One that moves the key
(sent so with `output-raw-change-event`) is a DELETE of the old key and a WRITE of the new, which is what TiCDC itself
sends by default ("TiCDC Behavior Changes": split UPDATE events).
"""

from collections.abc import Iterator, Sequence

from ordering.events import Half, Kind, RowEvent

KeyValues = tuple[str | None, ...]


def key_of(image: dict[str, str | None], names: Sequence[str]) -> KeyValues:
    """The handle key of an image. Raises KeyError if a column of the key is not there."""
    return tuple(image[name] for name in names)


def split(event: RowEvent, names: Sequence[str]) -> Iterator[tuple[Half, KeyValues]]:
    """Yield the halves of a row change, the WRITE first: it stands for the message where messages are counted."""
    if event.kind is Kind.DELETE:
        yield Half.DELETE, key_of(event.old or {}, names)
        return
    new_key = key_of(event.new or {}, names)
    yield Half.WRITE, new_key
    if event.kind is Kind.UPDATE:
        # `old` may hold only the changed columns (only-output-updated-columns, content-compatible)
        old_key = key_of({**(event.new or {}), **(event.old or {})}, names)
        if old_key != new_key:
            yield Half.DELETE, old_key
