"""The embedded MySQL: where its program comes from, and what is said where there is none."""

import os
from pathlib import Path

import pymysql
import pytest

from consumer.embedded import EmbeddedError
from tests.embedded import MySqlServer
from tests.embedded.mysql import FETCHED, VARIABLE, find_mysql, mysql_program
from tests.embedded.mysql_fetch import LackingError, fetch, main


@pytest.mark.service
def test_it_is_mysql_as_it_comes(mysql_server: MySqlServer) -> None:
    """Its own defaults: a login by caching_sha2_password, no LOAD DATA LOCAL, a binary log with GTIDs."""
    connection = pymysql.connect(host="127.0.0.1", port=mysql_server.port, user="root", password="root")
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION(), @@version_comment, @@local_infile, @@log_bin, @@sql_mode LIKE '%STRICT%'")
        (found,) = cursor.fetchall()
        cursor.execute("SELECT plugin FROM mysql.user WHERE user = 'root'")
        assert {plugin for (plugin,) in cursor.fetchall()} == {"caching_sha2_password"}
    connection.close()
    assert "MariaDB" not in f"{found[0]} {found[1]}"
    assert found[2:] == (0, 1, 1)


def test_without_one_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(EmbeddedError, match="none, which is not there"):
        find_mysql()
    monkeypatch.delenv(VARIABLE)
    assert find_mysql() is None
    with pytest.raises(EmbeddedError, match=r"\./dev mysql"):
        mysql_program()


def test_a_given_one_runs_without_the_libraries_of_another_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mysqld"
    program.touch()
    monkeypatch.setenv(VARIABLE, str(program))
    assert mysql_program() == [str(program), "--no-defaults"]


@pytest.mark.parametrize("apt", ["", "exit 100", "echo http://mirror.example/debian Other Other"])
def test_where_it_can_not_be_had_that_is_told_apart_from_a_fault(
    apt: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No apt; an archive out of reach; another distribution. Nothing half-made is left."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("apt-get", "dpkg-deb") if apt else ():
        (programs / name).write_text(f"#!/bin/sh\n{apt}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs) + (os.pathsep + "/bin" if apt else ""))
    monkeypatch.setenv("TICDC_RECONCILER_CACHE", str(tmp_path / "cache"))
    with pytest.raises(LackingError):
        fetch()
    assert main() == 3
    assert VARIABLE in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{FETCHED}.lock"]
