"""R5's first step: every row change as halves, each about one handle key.

An UPDATE that keeps its handle key is one WRITE, for a full row replaces whatever is there. One that moves the key
(sent so with `output-raw-change-event`) is a DELETE of the key that it left and a WRITE of the new, which is what TiCDC
itself sends by default (TiCDC documentation, "TiCDC Behavior Changes": split UPDATE events).
"""

from ordering.events import Kind, RowOp
from ordering.rows.identity import ordinal
from ordering.timestamps import CommitTs

_GONE, _DELETE, _WRITE = Kind.DELETE, RowOp.DELETE, RowOp.WRITE  # an enum's member takes longer to look up than a row


def split(kind: Kind, commit_ts: CommitTs, *, moved: bool) -> tuple[int, int | None]:
    """The ordinals of a row change's halves: of the one about its own key, and of the one about the key it left.

    `moved`: an UPDATE whose old image has another handle key. The first half stands for the message where messages are
    counted.
    """
    if kind is _GONE:
        return ordinal(commit_ts, _DELETE), None
    return ordinal(commit_ts, _WRITE), ordinal(commit_ts, _DELETE) if moved else None
