"""What an operator may do with the changefeeds of the process: create, change, pause, resume, delete.

The files of the directory are the truth: each change is in them before it is answered, so it survives a restart. At one
changefeed one operation is done at a time.
"""

import threading
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
import tomlkit
from tomlkit.exceptions import TOMLKitError

from consumer.config.model import Config, config_of
from consumer.config.text import read_text
from consumer.operate.check import Finding, findings
from consumer.operate.progress import reset_progress
from consumer.serve.api.asking import ServerRequests
from consumer.serve.api.errors import BusyError, ConflictError, RequestError
from consumer.serve.api.models import ConfigShown
from consumer.serve.changefeed import Feed
from consumer.serve.config import files
from consumer.serve.config.changes import (
    changed_keys,
    check_filter,
    check_keys,
    check_same_place,
    check_unbegun,
    merged,
)
from consumer.serve.config.edited import EditedKey, as_text, change_to, differences
from consumer.serve.config.references import check_destination, check_references, check_size
from consumer.serve.config.shown import shown
from consumer.serve.fleet import STOP_S, Fleet
from consumer.serve.settings import Api, check_spark
from consumer.serve.status import progress_of

_WAIT_S = 10.0
"""So long an operation waits for another one at the same changefeed, and a check for others."""
_CHECKS_MOST = 4
"""Checks at once: each connects to Kafka, Redis and a target, and may wait for them."""
T = TypeVar("T")
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change did."""

    keys: list[str]
    restarted: bool


@dataclass(frozen=True, slots=True)
class Preview:
    """What a change would do: the body that does it, and each key before and after, as it may be shown."""

    change: dict[str, Any]
    keys: list[EditedKey]
    restarts: bool


class Operations:
    """All of them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.checks, self.untold = ServerRequests(), ServerRequests()
        """What is asked for configs that are not kept, and of changefeeds that are not there yet."""
        self._checks = threading.BoundedSemaphore(_CHECKS_MOST)

    def create(self, text: str) -> Feed:
        """Keep a new config and start it. Raises ConfigError, RequestError, ConflictError."""
        config = self._accepted(text)
        path = self._fleet.folder / f"{config.changefeed}.toml"
        with self._fleet.lock:
            if config.changefeed in self._fleet.feeds or path.exists():
                hint = "change it, or delete it first"
                raise ConflictError(f"changefeed {config.changefeed!r} exists", where=str(path), hint=hint)
            files.write(path, text)
            feed = self._fleet.add(path)
        feed.start()
        log.info("created", changefeed=feed.name, file=str(path))
        return feed

    def check(self, text: str) -> list[Finding]:
        """What `check` says of a config that is not kept. Raises ConfigError, RequestError, BusyError."""
        config = self._accepted(text)
        if not self._checks.acquire(timeout=_WAIT_S):
            raise BusyError("other configs are being checked", where="changefeeds/check", hint="try again soon")
        try:
            return list(findings(config))
        finally:
            self._checks.release()

    def _accepted(self, text: str) -> Config:
        """A config that may be created. Raises ConfigError, RequestError."""
        folder = self._fleet.folder
        values = _parsed(text)
        check_size(values)
        check_references(values, folder, self._fleet.settings.api)
        config = config_of(text, folder / "the new changefeed")
        check_spark(config, self._fleet.settings, folder)
        return config

    def config(self, feed: Feed) -> ConfigShown:
        """Its file, as it may be shown. Raises ConfigError, RequestError."""
        values = shown(_parsed(read_text(feed.path)))
        return ConfigShown(file=str(feed.path), config=values, text=as_text(values))

    def change(self, feed: Feed, change: Mapping[str, Any]) -> Changed:
        """Change a config, and restart the changefeed if it runs. Raises ConfigError, RequestError, ConflictError."""
        with _alone(feed):
            text, keys = self._allowed(feed, change)
            if not keys:
                return Changed([], restarted=False)
            with _at_rest(feed) as ran:
                check_unbegun(readable(feed), keys, led=True)
                files.write(feed.path, text)
                feed.load()
            log.info("changed", changefeed=feed.name, keys=keys, restarted=ran)
            return Changed(keys, restarted=ran)

    def preview(self, feed: Feed, edited: str) -> Preview:
        """What it would be to make its file, as it is shown, this text; refuses as `change` does."""
        old = _parsed(read_text(feed.path))
        change = change_to(shown(old), _parsed(edited))
        _, keys = self._allowed(feed, change)
        return Preview(change, differences(shown(old), shown(merged(old, change)), keys), restarts=feed.is_to_run)

    def _allowed(self, feed: Feed, change: Mapping[str, Any]) -> tuple[str, list[str]]:
        """The file's text after a change, and the keys that differ. Raises ConfigError, RequestError, ConflictError."""
        old = readable(feed)
        text, keys = _changed(feed, change, self._fleet.settings.api)
        if keys:
            check_keys(keys)
            check_unbegun(old, keys, led=False)
            new = config_of(text, feed.path)
            check_same_place(old, new)
            check_filter(new, progress_of(feed))
        return text, keys

    def pause(self, feed: Feed) -> None:
        """Stop it until it is resumed, also across a restart of the process."""
        with _alone(feed):
            self._fleet.set_paused(feed.name, paused=True)
            feed.set_aside = False
            feed.ask_to_stop()
            feed.join(time.monotonic() + STOP_S)
            log.info("paused", changefeed=feed.name)

    def resume(self, feed: Feed) -> None:
        """Read its file again and start it; one that runs goes on.

        Raises ConfigError if the file is wrong, ConflictError if the window of its last run does not end in time.
        """
        with _alone(feed):
            if not feed.goes_on:
                _await_end(feed, "resume it once its state says that it has ended, or try again")
                self._fleet.reload(feed)
                feed.start()
            self._fleet.set_paused(feed.name, paused=False)
            log.info("resumed", changefeed=feed.name)

    def delete(self, feed: Feed, *, progress: bool) -> None:
        """Stop it and remove its file; `progress`: forget its progress in the target too. Rows stay."""
        with _alone(feed):
            config = readable(feed) if progress else None
            with _at_rest(feed, restart_if_done=False):
                if config is not None:
                    reset_progress(config)
                files.remove(feed.path)
            self._fleet.remove(feed)
            log.info("deleted", changefeed=feed.name, progress=progress)

    @contextmanager
    def stopped(self, feed: Feed) -> Iterator[Config]:
        """Stop it meanwhile, if it runs: for what may only be done while no instance leads."""
        with _alone(feed), _at_rest(feed):
            yield readable(feed)


async def questioned(feed: Feed, look: Callable[[Config], T]) -> T:
    """What a look at a changefeed's servers finds. Raises BusyError, NoAnswerError, ConflictError, and what it does."""
    config = readable(feed)
    return await feed.questions.ask(f"changefeed {feed.name}", lambda: look(config))


async def ordered(feed: Feed, do: Callable[[], T]) -> T:
    """Do something to a changefeed. Raises BusyError, NoAnswerError, and what it does."""
    return await feed.orders.ask(f"changefeed {feed.name}", do)


async def at_rest(operations: Operations, feed: Feed, do: Callable[[Config], T]) -> T:
    """Do something while the changefeed is stopped. Raises what `ordered` and `Operations.stopped` do."""

    def stopped() -> T:
        with operations.stopped(feed) as config:
            return do(config)

    return await ordered(feed, stopped)


def _parsed(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)  # tomlkit takes time that doubles with each part of a dotted key
    except (RecursionError, ValueError) as error:
        raise RequestError(
            f"this is not valid TOML: {str(error)[:200]}",
            where="body",
            hint="`reconciler help configuration` has a sample",
        ) from error


def readable(feed: Feed) -> Config:
    """Its config. Raises ConflictError where its file can't be used, or names another file's changefeed."""
    if feed.config is None:
        hint = "fix the file and resume the changefeed"
        raise ConflictError("its file can't be used", where=str(feed.path), hint=hint)
    if not feed.has_own_id:  # what is done with it would be done to the other one
        hint = "delete this one, without its progress; or give it another id in its file and resume it"
        fact = f"its file has the id {feed.config.changefeed!r}, which is another file's"
        raise ConflictError(fact, where=str(feed.path), hint=hint)
    return feed.config


def _changed(feed: Feed, change: Mapping[str, Any], allowed: Api) -> tuple[str, list[str]]:
    """The file's new text, in which comments and all that was not changed stay, and the keys that differ."""
    check_size(change)
    text = read_text(feed.path)
    old = _parsed(text)
    new = merged(old, change)
    check_size(new)
    keys = changed_keys(old, new)
    check_references(dict(change), feed.path.parent, allowed)
    check_destination(old, change)
    try:
        document = tomlkit.parse(text)
        _put(document, change)
        return tomlkit.dumps(document), keys
    except (TOMLKitError, ValueError, TypeError, LookupError, RecursionError) as error:
        fact = f"this can't be written as TOML: {str(error)[:200]}"
        raise RequestError(fact, where="body", hint="`reconciler help configuration` has a sample") from error


def _put(table: Any, change: Mapping[str, Any]) -> None:
    for name, value in change.items():
        if value is None:
            table.pop(name, None)
        elif isinstance(value, Mapping) and isinstance(table.get(name), Mapping):
            _put(table[name], value)
        elif isinstance(value, Mapping):
            table[name] = {inner: kept for inner, kept in value.items() if kept is not None}
        else:
            table[name] = value


@contextmanager
def _alone(feed: Feed) -> Iterator[None]:
    if not feed.operating.acquire(timeout=_WAIT_S):
        raise ConflictError("another operation is under way", where=f"changefeed {feed.name}", hint="try again soon")
    try:
        yield
    finally:
        feed.operating.release()


@contextmanager
def _at_rest(feed: Feed, *, restart_if_done: bool = True) -> Iterator[bool]:
    """Stop it meanwhile; whether it ran. Raises ConflictError if its window does not end in time.

    The next operation that succeeds then starts it, as this one would have.
    """
    ran = feed.set_aside = feed.is_to_run
    feed.ask_to_stop()
    _await_end(feed, "it is paused now; resume it once its state says that it has ended, or try again")
    done = False
    try:
        yield ran
        done = True
    finally:
        if ran and (restart_if_done or not done):
            feed.start()


def _await_end(feed: Feed, hint: str) -> None:
    if not feed.join(time.monotonic() + STOP_S):
        raise ConflictError(f"its window did not end within {STOP_S:.0f} s", where=f"changefeed {feed.name}", hint=hint)
