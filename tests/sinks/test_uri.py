"""What target.uri may say, and what it may not."""

from traceback import format_exception

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


@pytest.mark.parametrize("warehouse", ["/var/lake", "s3://lake/orders"])
def test_a_lake_whose_catalog_is_in_postgresql(warehouse: str) -> None:
    uri = parse_target_uri(f"iceberg+postgres://u:p@host/lake?warehouse={warehouse}&sslmode=require")
    assert (uri.kind, uri.place, uri.warehouse) == ("iceberg+postgresql", "host:5432/lake", warehouse)
    assert uri.options == (("sslmode", "require"),)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("postgresql://u:p@host", "database"),
        ("postgresql://u:p@host/d?sslmod=require", "'sslmod'"),
        ("postgresql://u:p@host/d?sslmode=full", "no sslmode 'full'"),
        ("mysql://u:p@host?ssl=1", "'ssl'"),
        ("mysql://u:p@host?ssl-mode=sure", "no ssl-mode 'sure'"),
        ("tidb://u:p@host?ssl-ca=a&ssl-ca=b", "'ssl-ca' twice"),
        ("mariadb://u:p@host?ssl-ca=", "'ssl-ca' without a value"),
        ("mysql://u:p@host?ssl-cert=c.pem", "ssl-cert and ssl-key together"),
        ("mysql://u:p@host?sslmode=require", "'sslmode'"),
        ("postgresql://host/d", "host or user"),
        ("postgresql://u:p@host:99999/d", "port"),
        ("oracle://u:p@host/d", "'oracle'"),
        ("mysql://u:p@[::1", "no URI"),
        ("mysql://u:p@[h]:3306", "no URI"),
        ("mysql://u:p@h\u2100", "no URI"),
        ("mysql://u:p@host#?ssl-ca=/ca.pem", "#"),
        ("sqlite:////tmp/a#b", "#"),
        ("sqlite:////tmp/a?b", "no options"),
        ("sqlite:////tmp/a%00b", "NUL"),
        ("mysql://u%00:p@host", "NUL"),
        ("postgresql://u:p@host/d%00x", "NUL"),
        ("mysql://u:p@host?ssl-mode=verify-ca", "any public certificate"),
        ("mysql://u:p@host?server-public-key-path=/k.pem", "not ssl-mode=disabled"),
        ("tidb://u:p@host?server-public-key-path=/k.pem&ssl-mode=required", "not ssl-mode=disabled"),
        ("mysql://u:p@host?get-server-public-key=yes", "no get-server-public-key 'yes'"),
        ("mysql://u:p@host?get-server-public-key=true&ssl-ca=/ca.pem", "besides how the server is known"),
        ("postgresql://u:p@host/d?get-server-public-key=true", "'get-server-public-key'"),
        ("mysql://u:p@..:3306", "no name and no address"),
        ("postgresql://u:p@a..b/d", "no name and no address"),
        (f"tidb://u:p@{'a' * 64}:4000", "no name and no address"),
        ("iceberg+postgresql://u:p@host/d", "no warehouse, or more than one"),
        ("iceberg+postgresql://u:p@host/d?warehouse=/w&warehouse=/v", "no warehouse, or more than one"),
        (" iceberg+postgresql://u:p@host/d?warehouse=s3://lake/orders", "begins with a space"),
        ("\tmysql://u:p@host", "line break or tab"),
        ("sqlite:////var/or\nders", "line break"),
        ("iceberg+sqlite:////c.db?warehouse=/w&warehouse=/v", "one warehouse, and nothing else"),
        ("iceberg+sqlite:////c.db?warehouse=/w&sslmode=", "one warehouse, and nothing else"),
        (f"iceberg+postgresql://u:p@host/d?warehouse=/{'w/' * 350}w", "longer than 700"),
        ("iceberg+postgresql://u:p@host?warehouse=/w", "lacks the name of a database"),
        ("iceberg+postgresql://u:p@host/d?warehouse=w", "absolute"),
        ("iceberg+postgresql://u:p@host/d?warehouse=http://u:p@h/w", "no directory, and no s3"),
        ("iceberg+postgresql://u:p@host/d?warehouse=/w&ssl-mode=x", "'ssl-mode'"),
        ("postgresql://u:p@host/d?warehouse=/w", "'warehouse'"),
        ("iceberg+mysql://u:p@host/d?warehouse=/w", "'iceberg.mysql'"),
    ],
)
def test_what_is_refused(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        parse_target_uri(text)
    assert ":p@" not in "".join(format_exception(caught.value))


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("mysql://u:p@host?ssl-ca=/ca.pem", {"ssl-ca": "/ca.pem", "ssl-mode": "verify-identity"}),
        ("tidb://u:p@host?ssl-mode=VERIFY_CA&ssl-ca=/ca.pem", {"ssl-mode": "verify-ca", "ssl-ca": "/ca.pem"}),
        ("mariadb://u:p@host", {}),
        ("postgresql://u:p@host/d?sslrootcert=/ca.pem", {"sslrootcert": "/ca.pem", "sslmode": "verify-full"}),
        ("postgresql://u:p@host/d?sslmode=require", {"sslmode": "require"}),
        ("postgresql://u:p@host/d?require_auth=scram-sha-256", {"require_auth": "scram-sha-256"}),
    ],
)
def test_who_names_a_certificate_has_it_checked(text: str, options: dict[str, str]) -> None:
    assert dict(parse_target_uri(text).options) == options
