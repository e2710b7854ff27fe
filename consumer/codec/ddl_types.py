"""How Canal-JSON calls a DDL of which TiDB's number is known (`ActionType`): the Open Protocol and files name that.

Source: TiDB's `pkg/meta/model/job.go`, and TiCDC's `pkg/sink/codec/canal/helper.go` (`convertDdlEventType`).
"""

_NUMBERS = {
    "CREATE": (3,), "RENAME": (14, 47), "CINDEX": (7, 9, 32), "DINDEX": (8, 10, 33), "ERASE": (4,), "TRUNCATE": (11,),
    "ALTER": (5, 6, 12, 13, 15, 17, 18, 19, 20, 22, 23, 37, 38, 41, 61, 64, 71, 72),
}  # fmt: skip
_NAMES = {number: name for name, numbers in _NUMBERS.items() for number in numbers}


def ddl_type(number: int) -> str:
    """The name of a kind of DDL."""
    return _NAMES.get(number, "QUERY")
