"""Whether a held message's row is what a key means now: row keys are values, and those of another key may be equal."""

from consumer.codec import canal_json
from consumer.codec.row_images import TableKeys
from ordering.events import Kind, TableName


def is_row_of(message: canal_json.Envelope, row: bytes, table: TableName, key: tuple[str, ...]) -> bool:
    """Whether a message is about a row, where this key tells rows apart: about its new one or the one that it left."""
    try:
        keys = TableKeys(table, key)
        (image, *_), old = message.data or [], message.old
        if message.type == Kind.UPDATE.name and old:
            return row in keys.keys(image, old[0])
        return row == keys.key(image)
    except (*canal_json.UNREADABLE, ValueError):
        return False
