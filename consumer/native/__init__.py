"""The compiled core, through ctypes: scans batches of messages, keeps the last event of each row, and encodes rows.

A second implementation of what `Scan`, `Reduction` and `ChunkEncoder` do in Python, who say what is right: it takes
what is usual and hands the rest back. `chosen` tells whether it is used in this process; where it is not, Python does
all.
"""

import ctypes
import os
import platform
from array import array
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from consumer.native.prototypes import PROTOTYPES
from consumer.native.source import fingerprint
from ordering.errors import ConfigError, CoreError

Wanted = Literal["auto", True, False]
"""Of `spark.native`: where it can be used, always, never."""
ABI = 6
"""Of the functions and structures below; `core_abi` of a library tells what it was built for."""
_NOT_WANTED, _NOT_BUILT = "spark.native is false", "it was not built when this was installed"
LIBRARY = Path(__file__).with_name("_core.so")
AT_ONCE = 8 << 20
"""Bytes of messages that are copied for one call."""
MOST_APART = 256
"""Messages or lines that Python is given at most where one after the other is not usual."""
MOST_KEYS = 16
"""Columns of a handle key that the core reads."""
MOST_COLUMNS = 8192
"""Of a table in CSV or the Simple protocol that the core reads."""
NOT_USUAL, USUAL, UNKNOWN_TABLE = 0, 1, 2
NO_MEMORY, CRASHED = -1, -2
WHOLE_KNOWN, GONE_KNOWN, LEFT_OUT = 1, 2, 4
"""What is known of a table: the types of whole rows, of rows that go; or that its events don't count."""


class StaleCore(OSError):  # noqa: N818 it is no error of the caller
    """The library was built from another source than the one that lies beside it."""


class CoreCrash(Exception):  # noqa: N818 it is no error of the caller
    """The core met a wrong address or a trap, at this message of the batch. This process may not use it any more."""

    def __init__(self, at: int) -> None:
        super().__init__(at)
        self.at = at


def crashed(at: int) -> CoreCrash:
    """The crash to raise; from here on Python does this process's work."""
    _State.crashed = True
    return CoreCrash(at)


def crash_error(what: str, where: str) -> CoreError:
    """What is raised of a crash; `what`: of which the core was reading one."""
    hint = f"set spark.native = false, which reads it in Python, and report this {what}"
    return CoreError(f"the compiled core crashed while it read a {what}", where=where, hint=hint)


class Batch(ctypes.Structure):
    """Messages for one call of the core."""

    _fields_ = (
        ("bytes", ctypes.c_void_p),
        ("lens", ctypes.c_void_p),
        ("offsets", ctypes.c_void_p),
        ("messages", ctypes.c_void_p),
        ("count_from", ctypes.c_int64),
        ("count_to", ctypes.c_int64),
        ("count", ctypes.c_uint64),
        ("largest", ctypes.c_uint32),
    )


class _Taking(ctypes.Structure):
    _fields_ = (
        ("prints", ctypes.c_void_p),
        ("contents", ctypes.c_void_p),
        ("commits", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
        ("taken", ctypes.c_uint64),
        ("lefts", ctypes.c_uint64),
        ("deletes", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("counted", ctypes.c_uint64),
        ("head", ctypes.c_void_p * 3),
        ("head_len", ctypes.c_uint64 * 3),
        ("at", ctypes.c_uint64),
    )


class Head(NamedTuple):
    """With which bytes a table's messages name it: the raw JSON of `database`, `table` and `pkNames`."""

    database: bytes
    table: bytes
    primary_key: bytes


class Taken(NamedTuple):
    """What a call took; the arrays hold 64 bits for each row event of a table that counts."""

    status: int
    messages: int
    prints: memoryview
    contents: memoryview
    commits: memoryview
    left: memoryview
    """Fingerprints of the keys that UPDATEs left."""
    events: int
    size: int
    deletes: int
    head: Head | None
    """Where `status` is UNKNOWN_TABLE."""


class CoreSource(Protocol):
    """Where messages lie that the core takes."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def fill(self, batch: Batch, begin: int) -> None:
        """Say where those from number `begin` on lie. Which offsets count as new is said already."""
        ...


class Joined:
    """Messages as Python holds them, with `offset()`; `values`: theirs, which are copied one behind the other."""

    def __init__(self, messages: Sequence[Any], values: Sequence[bytes], lens: "array[int]") -> None:
        self._messages, self._bytes, self._lens = messages, b"".join(values), lens
        self._offsets: array[int] | None = None

    def __len__(self) -> int:
        return len(self._lens)

    def fill(self, batch: Batch, begin: int) -> None:
        """See `CoreSource.fill`. Offsets are told only where not all messages count as new."""
        place = ctypes.cast(ctypes.c_char_p(self._bytes), ctypes.c_void_p).value or 0
        batch.bytes, batch.lens = place + sum(self._lens[:begin]), _place(self._lens, begin)
        if batch.count_from <= self._messages[begin].offset() and self._messages[-1].offset() < batch.count_to:
            return
        if self._offsets is None:
            self._offsets = array("q", [message.offset() for message in self._messages])
        batch.offsets = _place(self._offsets, begin)


def joined_parts(
    messages: Sequence[Any], refused: tuple[type[Exception], ...] = ()
) -> Iterator[tuple[Sequence[Any], Joined | None]]:
    """Messages in parts that are copied for one call; None: one of a part has no value, or raises what is `refused`."""
    lacking: tuple[type[Exception], ...] = (TypeError, *refused)
    try:
        values = [message.value() for message in messages]
        lens = array("I", map(len, values))
    except lacking:
        yield messages, None
        return
    if sum(lens) <= AT_ONCE or len(messages) == 1:
        yield messages, Joined(messages, values, lens)
        return
    del values
    half = len(messages) // 2
    yield from joined_parts(messages[:half], refused)
    yield from joined_parts(messages[half:], refused)


def _place(numbers: "array[int]", begin: int) -> int:
    return numbers.buffer_info()[0] + begin * numbers.itemsize


class Choice(NamedTuple):
    """What reads in this process: the core, or Python and why."""

    core: "Core | None"
    why: str = ""

    @property
    def is_broken(self) -> bool:
        """Whether a library is there and can't be used: nobody wanted that."""
        return self.core is None and self.why not in (_NOT_BUILT, _NOT_WANTED)


class _State:
    crashed = False


class Core:
    """The library's functions, with their types."""

    def __init__(self, path: Path) -> None:
        """Raise OSError or AttributeError if it is not there, or is another."""
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self._check_source(fingerprint())
        for name, (result, arguments) in PROTOTYPES.items():
            function = getattr(self.library, name)
            function.restype, function.argtypes = result, arguments
        if (abi := self.library.core_abi()) != ABI:
            raise OSError(f"{path} was built for version {abi} of its interface, not {ABI}")

    def _check_source(self, now: str) -> None:
        """Raise StaleCore where the source that lies beside is another one."""
        told = getattr(self.library, "core_source", None)
        if told is not None:
            told.restype = ctypes.c_char_p
        built = "without a fingerprint" if told is None else told().decode()
        if now and built != now:
            raise StaleCore(f"it is stale: built from source {built}, native/ is {now}; `./dev core` builds it again")


def chosen(wanted: Wanted) -> Choice:
    """What is to read in this process. Raises ConfigError where the core is demanded and can't be used."""
    if wanted is False:
        return Choice(None, _NOT_WANTED)
    found = Choice(None, "it has crashed in this process") if _State.crashed else load(LIBRARY)
    if wanted is True and found.core is None:
        raise ConfigError(
            f"the compiled core can't be used, though spark.native is true: {found.why}",
            where=platform.node(),
            hint='install on every executor where there is a C compiler, or set spark.native = "auto"',
        )
    return found


@cache
def load(path: Path) -> Choice:
    """The core in a library, or why there is none."""
    if not path.is_file():
        return Choice(None, _NOT_BUILT)
    try:
        return Choice(Core(path))
    except StaleCore as error:
        return Choice(None, str(error))
    except (OSError, AttributeError) as error:
        return Choice(None, f"it can't be loaded: {error}")


class Rows:
    """The last event of each row, see `ordering.rows.net_effect.NetEffect`. Not for several threads."""

    def __init__(self, core: Core) -> None:
        self._library = core.library
        self.pointer = there(self._library.core_new(seed()))

    def __del__(self) -> None:
        if pointer := getattr(self, "pointer", None):
            self._library.core_free(pointer)

    def __len__(self) -> int:
        return int(self._library.core_rows(self.pointer))

    @property
    def bytes_held(self) -> int:
        """Of keys and images."""
        return int(self._library.core_bytes(self.pointer))

    def add(self, key: bytes, order: int, image: bytes, back: int) -> None:
        """Take one half."""
        if self._library.core_add(self.pointer, key, len(key), order, image, len(image), back) != 0:
            raise MemoryError

    def blocks(self, buckets: int, run_digits: int) -> "list[tuple[int, bytes]]":
        """(bucket, its halves in MessagePack) in the order in which they came; nothing is held afterwards.

        `run_digits`: see `consumer.tasks.reduction.bucket_hash`.
        """
        bucket_of = array("I", bytes(4 * len(self)))
        place = bucket_of.buffer_info()[0]
        self._library.core_buckets(self.pointer, buckets, run_digits, place)
        blocks, size = [], ctypes.c_uint64()
        for bucket in dict.fromkeys(bucket_of):
            at = there(self._library.core_block(self.pointer, place, bucket, ctypes.byref(size)))
            blocks.append((bucket, ctypes.string_at(at, size.value)))
        self._library.core_clear(self.pointer)
        return blocks


class Reading:
    """What is known of a range's tables, and the events of a window: commitTs above `low`, up to `high`."""

    def __init__(self, core: Core, low: int, high: int) -> None:
        self._library = core.library
        self.pointer = there(self._library.core_reading(low, high, seed()))
        self._room = 0
        self._out = _Taking()
        self._arrays: list[array[int]] = []

    def __del__(self) -> None:
        if pointer := getattr(self, "pointer", None):
            self._library.core_reading_free(pointer)

    def learn(self, head: Head, prefix: bytes, names: Sequence[bytes], flags: int) -> bool:
        """Make a table known, or change its flags. False: there is no room for it."""
        texts = [*head, prefix, *names]
        lens = array("I", map(len, texts))
        learned = self._library.core_learn(
            self.pointer, b"".join(texts), lens.buffer_info()[0], len(texts), flags
        )  # fmt: skip
        if learned == NO_MEMORY:
            raise MemoryError
        return bool(learned)

    def take(self, rows: Rows, source: CoreSource, begin: int, largest: int, new: tuple[int, int]) -> Taken:
        """Take messages from number `begin` on, up to the first that is not usual.

        `new`: the offsets from where to where they count as new. What is given is good until the next call, and as
        long as the messages are. Raises CoreCrash, MemoryError.
        """
        count, out = len(source) - begin, self._room_for(len(source))
        batch = Batch(count=count, largest=largest, count_from=new[0], count_to=new[1])
        source.fill(batch, begin)
        status = self._library.core_take(rows.pointer, self.pointer, ctypes.byref(batch), ctypes.byref(out))
        if status == CRASHED:
            self.pointer, rows.pointer = 0, 0  # what they point to may be broken
            raise crashed(begin + out.at)
        if status == NO_MEMORY:
            raise MemoryError
        prints, contents, commits, left = (memoryview(one).cast("B") for one in self._arrays)
        end = 8 * out.taken
        return Taken(
            status, out.at, prints[:end], contents[:end], commits[:end], left[: 8 * out.lefts],
            out.counted, out.size, out.deletes, self._head() if status == UNKNOWN_TABLE else None,
        )  # fmt: skip

    def _head(self) -> Head:
        return Head(*(ctypes.string_at(self._out.head[i], self._out.head_len[i]) for i in range(3)))

    def _room_for(self, count: int) -> _Taking:
        if count > self._room:
            self._room = count
            self._arrays = [array("Q", bytes(8 * count)) for _ in range(4)]
            out = self._out
            out.prints, out.contents, out.commits, out.left = (one.buffer_info()[0] for one in self._arrays)
        return self._out


def seed() -> int:
    """Of hashes: nobody who writes messages may know it, or he could make all of them the same."""
    return int.from_bytes(os.urandom(8), "little")


def there(pointer: int | None) -> int:
    """The pointer. Raises MemoryError where the core had no memory to make what it should point to."""
    if pointer is None:
        raise MemoryError
    return pointer
