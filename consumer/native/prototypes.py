"""The types of the compiled core's functions, as `native/core.c` has them."""

import ctypes
from typing import Any

PROTOTYPES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "core_abi": (ctypes.c_int, ()),
    "core_new": (ctypes.c_void_p, (ctypes.c_uint64,)),
    "core_free": (None, (ctypes.c_void_p,)),
    "core_rows": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "core_bytes": (ctypes.c_uint64, (ctypes.c_void_p,)),
    "core_reading": (ctypes.c_void_p, (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)),
    "core_reading_free": (None, (ctypes.c_void_p,)),
    "core_learn": (
        ctypes.c_int,
        (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32),
    ),
    "core_add": (
        ctypes.c_int,
        (
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64,
            ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64,
        ),
    ),
    "core_take": (ctypes.c_int, (ctypes.c_void_p,) * 4),
    "core_runs": (ctypes.c_uint32, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)),
    "core_give_back": (None, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)),
    "core_buckets": (None, (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.c_void_p)),
    "core_block": (
        ctypes.c_void_p,
        (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64)),
    ),
    "core_clear": (None, (ctypes.c_void_p,)),
    "core_add_block": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)),
    "core_group": (ctypes.c_int, (ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint32))),
    "core_select": (
        ctypes.c_uint32,
        (
            ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32),
            ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p,
        ),
    ),
    "core_missed": (ctypes.c_uint64, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)),
    "core_halves": (
        ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint64)),
    ),
    "core_lines": (
        ctypes.c_int,
        (
            ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int,
            ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint64),
        ),
    ),
    "core_schemas": (ctypes.c_void_p, (ctypes.c_uint64,)),
    "core_schemas_free": (None, (ctypes.c_void_p,)),
    "core_schemas_learn": (
        ctypes.c_int,
        (
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64,
        ),
    ),
    "core_simple": (ctypes.c_int, (ctypes.c_void_p,) * 3),
    "core_csv_new": (ctypes.c_void_p, (ctypes.c_uint32,)),
    "core_csv_free": (None, (ctypes.c_void_p,)),
    "core_csv": (
        ctypes.c_int, (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p),
    ),
}  # fmt: skip
"""Result and arguments by name."""
