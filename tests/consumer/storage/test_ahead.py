"""What a reading task does ahead: the same runs, the same errors at the same place, and nothing left behind."""

import threading
from collections.abc import Iterator

import pytest

from consumer.storage.ahead import MOST_AHEAD, FilesAhead, made_ahead
from consumer.storage.layout import RowFile


def file(number: int, size: int = 10) -> RowFile:
    return RowFile("s", number, f"{number}.csv", size, 0, "csv")


def counted(upto: int, made: list[int], error: Exception | None = None) -> Iterator[int]:
    for number in range(upto):
        made.append(number)
        yield number
    if error is not None:
        raise error


def test_runs_are_the_same_and_one_is_made_ahead() -> None:
    made: list[int] = []
    runs = made_ahead(counted(5, made))  # type: ignore[type-var, arg-type]  # numbers stand for runs
    assert next(runs) == 0
    assert list(runs) == [1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]


def test_an_error_comes_behind_the_runs_before_it() -> None:
    runs = made_ahead(counted(2, [], ValueError("broken")))  # type: ignore[type-var, arg-type]
    assert [next(runs), next(runs)] == [0, 1]
    with pytest.raises(ValueError, match="broken"):
        next(runs)


def test_who_stops_early_leaves_no_thread() -> None:
    made: list[int] = []
    runs = made_ahead(counted(9, made))  # type: ignore[type-var, arg-type]
    next(runs)
    runs.close()  # type: ignore[attr-defined]
    assert len(made) <= 2
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("run-ahead")]


def test_the_next_file_is_read_meanwhile_unless_it_is_large() -> None:
    asked, arrived = [], threading.Event()

    def read(path: str) -> bytes:
        asked.append(path)
        if path == "2.csv":
            arrived.set()
        return path.encode()

    files = FilesAhead(read)
    assert files.content(file(1), file(2)) == b"1.csv"
    assert arrived.wait(60)
    assert files.content(file(2), file(3, MOST_AHEAD + 1)) == b"2.csv"
    assert files.content(file(3, MOST_AHEAD + 1), None) == b"3.csv"
    files.close()
    assert asked == ["1.csv", "2.csv", "3.csv"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("file-ahead")]


def test_an_error_of_the_next_file_is_its_own() -> None:
    def read(path: str) -> bytes:
        if path == "2.csv":
            raise OSError("gone")
        return b"x"

    files = FilesAhead(read)
    assert files.content(file(1), file(2)) == b"x"
    with pytest.raises(OSError, match="gone"):
        files.content(file(2), None)
    files.content(file(1), file(2))
    files.close()  # nobody asks for it
