"""What target.uri may say, and what it may not."""

import pytest

from ordering.errors import ConfigError
from sinks.uri import parse_target_uri


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_postgresql(scheme: str) -> None:
    uri = parse_target_uri(f"{scheme}://us%40er:p%2Fw@host/my%20db?sslmode=verify-full&sslrootcert=/ca.pem")
    assert (uri.kind, uri.host, uri.port, uri.user, uri.password) == ("postgresql", "host", 5432, "us@er", "p/w")
    assert uri.place == "host:5432/my db"
    assert uri.options == (("sslmode", "verify-full"), ("sslrootcert", "/ca.pem"))
    assert "p/w" not in repr(uri)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgresql://u:p@host", "database"),
        ("postgresql://u:p@host/d?sslmod=require", "'sslmod'"),
        ("mysql://u:p@host?ssl=1", "'ssl'"),
        ("postgresql://host/d", "host or user"),
        ("postgresql://u:p@host:99999/d", "port"),
        ("oracle://u:p@host/d", "'oracle'"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        parse_target_uri(text)
    assert ":p@" not in str(caught.value)
