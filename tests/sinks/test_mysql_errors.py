"""Which errors of a MySQL-family server are tried again, and which end a run."""

from types import SimpleNamespace
from typing import Any, cast

import pymysql
import pytest

from ordering.errors import TargetBusyError, TargetError, TargetUnreachableError
from sinks.mysql.connection import MysqlConnection

ERRORS = [
    (1213, "Deadlock found when trying to get lock", TargetBusyError),
    (1317, "Query execution was interrupted", TargetBusyError),
    (3100, "Error on observer while running replication hook 'before_commit'.", TargetBusyError),
    (3101, "Plugin instructed the server to rollback the current transaction.", TargetBusyError),
    (1047, "WSREP has not yet prepared node for application use", TargetUnreachableError),
    (1290, "The MySQL server is running with the --super-read-only option", TargetUnreachableError),
    (3032, "The server is currently in offline mode", TargetUnreachableError),
    (1047, "Unknown command", TargetError),
    (1290, "The MySQL server is running with the --secure-file-priv option", TargetError),
    (3098, "The table does not comply with the requirements by an external plugin.", TargetError),
]


@pytest.mark.parametrize(("code", "text", "kind"), ERRORS)
def test_what_passes_by_itself_is_tried_again(code: int, text: str, kind: type[TargetError]) -> None:
    """Members of a group that change their parts, a DBA who ends a statement."""
    at = cast("Any", SimpleNamespace(where="db:3306"))
    error = MysqlConnection._as_error(at, pymysql.OperationalError(code, text))
    assert type(error) is kind
    assert str(code) in error.fact


@pytest.mark.parametrize(
    ("code", "advice"),
    [(1787, "binlog_format"), (3748, "binlog_format"), (1792, "transaction_read_only"), (3100, "window-rows")],
)
def test_settings_that_a_run_can_not_live_with_are_named(code: int, advice: str) -> None:
    at = cast("Any", SimpleNamespace(where="db:3306"))
    assert advice in MysqlConnection._as_error(at, pymysql.OperationalError(code, "Statement violates")).hint
