"""Whether a standalone Spark cluster answers; asked first, for Spark would wait for a minute and then end itself."""

import re
import socket
from contextlib import suppress

from ordering.errors import ClusterUnreachableError, ConfigError

_PREFIX, _PORT = "spark://", 7077
_WAIT_S = 3.0
_MASTER = re.compile(r"local(\[(\*|[1-9]\d*)( *, *\d+)?\])?|local-cluster\[.*\]|(spark|k8s)://.+|yarn", re.ASCII)


def check_master(master: str) -> None:
    """Raise ClusterUnreachableError if none of the masters of `spark://HOST:PORT,...` can be connected to.

    Raises ConfigError for what is no master. Other masters are left to Spark: local ones need no connection,
    Kubernetes and YARN have clients of their own.
    """
    if not _MASTER.fullmatch(master):
        hint = 'write "local[*]", "local[4]", "spark://HOST:7077", "k8s://https://HOST:6443" or "yarn"'
        raise ConfigError("this is no Spark master", where=f"spark.master = {master}", hint=hint)
    if not master.startswith(_PREFIX):
        return
    said = []
    for host, port in _addresses(master):
        try:
            socket.create_connection((host, port), _WAIT_S).close()
        except OSError as error:
            said.append(f"{host}:{port}: {error.strerror or error}")
        else:
            return
    raise ClusterUnreachableError(
        f"Spark is out of reach: {'; '.join(said)}",
        where=f"spark.master = {master}",
        hint='start the cluster, or correct spark.master; "local[*]" needs no cluster',
    )


def _addresses(master: str) -> list[tuple[str, int]]:
    """Hosts and ports. Raises ConfigError."""
    found = []
    for part in master.removeprefix(_PREFIX).split(","):
        host, _, port = part.rpartition(":") if ":" in part else (part, "", str(_PORT))
        with suppress(ValueError):
            found.append((host.strip("[]"), int(port)))
            continue
        hint = "write spark://HOST:PORT"
        raise ConfigError(f"{part!r} is no address of a Spark master", where=f"spark.master = {master}", hint=hint)
    return found
