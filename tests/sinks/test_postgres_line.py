"""A PostgreSQL that is none, and answers without an end: what it says is cut, whatever it is."""

import os
import resource
import socket
import struct
from itertools import islice
from pathlib import Path

import pytest

from ordering.errors import InputError, TargetError
from sinks.postgres import answers
from sinks.postgres.connection import PostgresConnection
from sinks.uri import parse_target_uri
from tests.sinks.hostile_servers import PG_ROWS, endless_postgres, served, told

MOST = 8 << 20
ROW = told(b"D", struct.pack(">hi", 1, 1) + b"x")
NOTICE = told(b"N", b"SNOTICE\0C00000\0M" + b"x" * 1000 + b"\0\0")
ENDLESS = {
    "rows": (PG_ROWS, ROW * 1000),
    "empty rows": (PG_ROWS, told(b"D", struct.pack(">hi", 1, -1)) * 1000),
    "a row": (PG_ROWS + b"D" + struct.pack(">Ihi", 1 << 30, 1, (1 << 30) - 10), b"x" * 65536),
    "columns": (told(b"1") + told(b"2") + b"T" + struct.pack(">IH", 1 << 30, 65535), b"c" * 65536),
    "an error": (b"E" + struct.pack(">I", 1 << 30) + b"M", b"x" * 65536),
    "notices": (told(b"1"), NOTICE * 100),
    "notifications": (told(b"1"), told(b"A", struct.pack(">I", 7) + b"channel\0payload\0") * 100),
    "settings": (told(b"1"), told(b"S", b"name\0" + b"x" * 1000 + b"\0") * 100),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_an_answer_without_an_end_is_cut(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may name a target may name a server that fills the memory of all changefeeds."""
    monkeypatch.setattr(answers, "MOST_ANSWERED", MOST)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with served(endless_postgres(*ENDLESS[name])) as port, pytest.raises(TargetError) as caught:
        PostgresConnection(parse_target_uri(f"postgresql://u@127.0.0.1:{port}/d?sslmode=disable"))
    assert "an answer of more than 8 MiB" in caught.value.fact
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb < 400 << 10


@pytest.mark.parametrize("name", ["an error", "notices", "notifications", "settings"])
def test_nor_is_one_to_a_login_heard_out(name: str) -> None:
    answer, piece = ENDLESS[name]
    serve = endless_postgres(answer.removeprefix(told(b"1")), piece, login=True)
    with served(serve) as port, pytest.raises(TargetError) as caught:
        PostgresConnection(parse_target_uri(f"postgresql://u@127.0.0.1:{port}/d?sslmode=disable"))
    assert "an answer of more than 1 MiB to a login" in caught.value.fact


@pytest.mark.service
def test_genuine_answers_are_counted_one_by_one(postgres_server: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they may be longer, and so may rows that are not held: what the kernel holds back is less than this."""
    monkeypatch.setattr(answers, "MOST_ANSWERED", 64 << 20)
    connection = PostgresConnection(parse_target_uri(postgres_server.uri))  # type: ignore[attr-defined]
    text, many = "repeat('x', 4000000)", 30
    for _ in range(10):
        assert len(connection.value(f"SELECT {text}")) == 4_000_000
    rows = connection.stream(f"SELECT {text} FROM generate_series(1, {many})")
    assert len(list(islice(rows, many))) == many
    rows.close()  # type: ignore[attr-defined]  # a generator
    with pytest.raises(TargetError, match="an answer of more than 64 MiB"):
        connection.query(f"SELECT {text}, pg_sleep(0.03) FROM generate_series(1, {many})")


def test_no_text_of_a_server_is_kept_whole() -> None:
    error = InputError("x" * 10**6, where="y" * 10**6, hint="z" * 10**6)
    assert len(str(error)) < 31_000
    assert str(error.fact).endswith("(1000000 characters)")


def test_a_file_that_got_a_closed_sockets_number_is_left_alone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, Path(__file__).open() as file:
        answer = answers._Answer(ours.fileno(), "too long")
        os.dup2(file.fileno(), ours.fileno())
        before = len(list(Path("/proc/self/fd").iterdir()))
        answer.look()
        assert len(list(Path("/proc/self/fd").iterdir())) == before
        assert not answer.is_cut
