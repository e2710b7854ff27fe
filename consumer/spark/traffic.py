"""What passes between Spark's processes on a cluster: rows, and the logins that tasks get with their work.

On one machine all of it stays on loopback, in pipes or in sockets of a private directory. On a cluster Spark neither
encrypts nor asks who speaks by itself (Spark documentation, "Security"). YARN and Kubernetes hand the secret that it
takes to the executors; a standalone cluster's master, workers and applications have to be given the same one.
"""

from collections.abc import Mapping

import structlog

_ON = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
_SECRET = "spark.authenticate.secret"  # noqa: S105 a name
_HANDED_OUT = ("k8s://", "yarn")
log = structlog.get_logger()


def traffic_settings(master: str, settings: Mapping[str, str]) -> Mapping[str, str]:
    """Spark's settings that authenticate and encrypt, where a cluster can have them; `settings` come before them."""
    if master.startswith("local") or settings.get("spark.authenticate") == "false":
        return {}
    has_secret = master.startswith(_HANDED_OUT) or any(name.startswith(_SECRET) for name in settings)
    return _ON if has_secret else {}


def warn_of_open_traffic(master: str, settings: Mapping[str, str]) -> None:
    """Log once per start that a cluster's connections are open to who can listen or connect."""
    chosen = {**traffic_settings(master, settings), **settings}
    if master.startswith("local") or chosen.get("spark.network.crypto.enabled") == "true":
        return
    log.warning(
        "spark's connections are neither authenticated nor encrypted: rows and logins pass in clear",
        master=master,
        hint=f'give the cluster and [spark] the same "{_SECRET}"; the rest is set then',
    )
