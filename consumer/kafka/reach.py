"""Why no broker answers, in words: a name that nobody knows, a port where nobody listens, a silent host.

Asked before Kafka's own client, which takes ten seconds and says "unable to bootstrap" in all these cases.
"""

import socket

_WAIT_S = 3.0
_PORT = 9092


def unreachable(bootstrap: str) -> str:
    """What is wrong with each of the addresses; empty once one can be connected to."""
    said = []
    for address in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, _, port = address.rpartition(":") if ":" in address else (address, "", str(_PORT))
        fault = _fault(host.strip("[]"), int(port))
        if not fault:
            return ""
        said.append(f"{host}:{port} {fault}")
    return "; ".join(said)


def _fault(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), _WAIT_S).close()
    except socket.gaierror:
        return "is no host that is known here (DNS)"
    except ConnectionRefusedError:
        return "refuses connections: nothing listens there"
    except TimeoutError:
        return f"does not answer within {_WAIT_S:.0f} s: a firewall, or a wrong address"
    except OSError as error:
        return f"can't be connected to: {error.strerror or error}"
    return ""
