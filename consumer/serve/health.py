"""`python -m consumer.serve.health HOST:PORT`: exits with 0 if `reconciler serve` answers there, with TLS or without.

The container's health check. It sends nothing secret, so the certificate is not verified: it names other hosts.
"""

import http.client
import ssl
import sys

_TIMEOUT_S = 2.0


def answers(address: str) -> bool:
    """Whether the process at `HOST:PORT` says that it is well, in at most some seconds."""
    lenient = ssl.create_default_context()
    lenient.check_hostname, lenient.verify_mode = False, ssl.CERT_NONE
    return any(
        _is_well(connection)
        for connection in (
            http.client.HTTPConnection(address, timeout=_TIMEOUT_S),
            http.client.HTTPSConnection(address, timeout=_TIMEOUT_S, context=lenient),
        )
    )


def _is_well(connection: http.client.HTTPConnection) -> bool:
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):  # nobody there, or the other of TLS and plain: that is the answer
        return False
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(0 if answers(sys.argv[1]) else 1)
