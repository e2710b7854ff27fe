"""The embedded TiDB starts from a program or a packed one, and leaves nothing outside of its directory."""

import lzma
from pathlib import Path

import pymysql
import pytest

from consumer.embedded import EmbeddedError, TidbServer
from consumer.embedded.tidb import VARIABLE, tidb_program

pytestmark = pytest.mark.service


def test_it_answers_and_keeps_its_files_to_itself(
    tidb_server: TidbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with TidbServer(tmp_path / "own", config="[performance]\ntxn-entry-size-limit = 1000000\n") as server:
        assert server.port != tidb_server.port
        connection = pymysql.connect(host="127.0.0.1", port=server.port, user="root")
        with connection.cursor() as cursor:
            cursor.execute("SELECT SLEEP(0.5)")
            cursor.execute("SHOW CONFIG WHERE name = 'performance.txn-entry-size-limit'")
            assert cursor.fetchall()[0][-1] == "1000000"
        connection.close()
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_a_packed_program_is_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "tidb-server.xz"
    packed.write_bytes(lzma.compress(b"#!/bin/sh\n"))
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, str(packed))
    program = tidb_program()
    assert program.read_bytes() == b"#!/bin/sh\n"
    before = program.stat()
    assert before.st_mode & 0o100
    assert tidb_program() == program
    assert program.stat().st_mtime_ns == before.st_mtime_ns


def test_without_one_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EmbeddedError, match=VARIABLE):
        tidb_program()
