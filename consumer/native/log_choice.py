"""Which way of reading was chosen, in the log: on this machine, and on executors that lack the core."""

from functools import cache

import structlog

from consumer.native import Wanted, chosen
from consumer.native.kafka_client import kafka_library

log = structlog.get_logger()


def tell_choice(wanted: Wanted) -> None:
    """Log what tasks read with on this machine. Raises ConfigError as `chosen`."""
    found = chosen(wanted)
    if found.core is not None:
        through = kafka_library().why
        log.info("tasks read with the compiled core", **({"messages_through_python": through} if through else {}))
    elif wanted is not False:
        tell = log.warning if found.is_broken else log.info
        tell(
            "tasks read in Python, not with the compiled core: the result is the same and takes twice the CPU time",
            why=found.why,
        )


@cache
def tell_missing(why: str) -> None:
    """Log, once a reason, that a task elsewhere could not use the core."""
    if chosen("auto").core is not None:  # else it is known of this machine
        log.warning("a task reads in Python: slower, with the same result", why=why)
