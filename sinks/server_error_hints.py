"""What helps against what a server refuses, by the code that it gives: said beside its own words."""

_LOGIN = "check user and password of target.uri; characters that URIs reserve are percent-encoded (@ is %40)"
_RIGHTS = "GRANT the right to the user of target.uri; `reconciler help security` lists the least rights"
_ADDRESS = "check host and port of target.uri, and that the server runs and can be reached from here"
_FULL = "make room on the server's disk, or raise its limit; the run goes on from where it was"
_ROWS = "set the server's binlog_format to ROW: with GTIDs, STATEMENT allows no temporary table in a transaction"
_MYSQL = {
    1044: _RIGHTS,  # access to a database
    1045: f"{_LOGIN}; or the server knows this user from another host only",
    1049: "create the database, or correct target.uri",
    1114: _FULL,
    1142: _RIGHTS,
    1143: _RIGHTS,
    1227: _RIGHTS,
    1370: _RIGHTS,
    1698: f"{_LOGIN}; root of MariaDB logs in by its socket alone: use a user of its own",
    1787: _ROWS,
    1792: "SET GLOBAL transaction_read_only = 0, if this server is meant to be written to",
    1820: "the password has expired: set a new one with ALTER USER",
    2002: _ADDRESS,
    2003: _ADDRESS,
    2013: "see the server's log; if each start says this, another kind of server listens at the port of target.uri",
    2005: "the name of the host in target.uri is not known here: check its spelling, or name an address",
    3100: (
        "if it comes again and again: raise group_replication_transaction_size_limit of the servers, or set"
        " limits.window-rows lower"
    ),
    3118: "the account is locked: ALTER USER ... ACCOUNT UNLOCK",
    3748: _ROWS,
}
_POSTGRES = {
    "28000": "check the user of target.uri and the server's pg_hba.conf",
    "28P01": _LOGIN,
    "3D000": "create the database, or correct target.uri",
    "42501": _RIGHTS,
    "53100": _FULL,
    "55000": "see the server's log for the object's state",
}


def mysql_advice(code: int) -> str:
    """Against an error of MySQL, MariaDB or TiDB; empty where nothing is known."""
    return _MYSQL.get(code, "")


def login_advice(text: str) -> str:
    """Against a login that PostgreSQL refuses: its client tells no code then, only words."""
    if "cleartext" in text:
        return "name the server's authority (sslrootcert=FILE); require_auth=password trusts whoever answers"
    if 'database "' in text and "does not exist" in text:
        return "create the database (CREATE DATABASE), or correct the name at the end of target.uri"
    return "check user, password, database and ssl options of target.uri, and the server's pg_hba.conf"


def postgres_advice(state: str) -> str:
    """Against an SQLSTATE of PostgreSQL; empty where nothing is known."""
    return _POSTGRES.get(state, "")
