"""The feeds of the service tests."""

from tests.service.conftest import sqlite_feed

__all__ = ["sqlite_feed"]
