"""What an operator may do with the changefeeds of the process: create, change, pause, resume, delete.

The files of the directory are the truth: each change is in them before it is answered, so it survives a restart. At one
changefeed one operation is done at a time.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import structlog
import tomlkit
from tomlkit.exceptions import TOMLKitError

from consumer.config import Config, config_of
from consumer.config_text import read_text
from consumer.recovery import reset_progress
from consumer.serving import files
from consumer.serving.faults import ConflictError, RequestError
from consumer.serving.feed import Feed
from consumer.serving.fleet import STOP_S, Fleet
from consumer.serving.references import check_destination, check_references
from consumer.serving.rules import changed_keys, check_filter, check_keys, check_same_place, merged
from consumer.serving.settings import Api, check_spark
from consumer.serving.shapes import ConfigShown
from consumer.serving.shown import shown
from consumer.serving.telling import progress_of

_WAIT_S = 10.0
"""So long an operation waits for another one at the same changefeed."""
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Changed:
    """What a change did."""

    keys: list[str]
    restarted: bool


class Operations:
    """All of them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def create(self, text: str) -> Feed:
        """Keep a new config and start it. Raises ConfigError, RequestError, ConflictError."""
        folder = self._fleet.folder
        check_references(_parsed(text), folder, self._fleet.settings.api)
        config = config_of(text, folder / "the new changefeed")
        check_spark(config, self._fleet.settings, folder)
        path = folder / f"{config.changefeed}.toml"
        with self._fleet.lock:
            if config.changefeed in self._fleet.feeds or path.exists():
                hint = "change it, or delete it first"
                raise ConflictError(f"changefeed {config.changefeed!r} exists", where=str(path), hint=hint)
            files.write(path, text)
            feed = self._fleet.add(path)
        feed.start()
        log.info("created", changefeed=feed.name, file=str(path))
        return feed

    def config(self, feed: Feed) -> ConfigShown:
        """Its file, as it may be shown. Raises ConfigError, RequestError."""
        return ConfigShown(file=str(feed.path), config=shown(_parsed(read_text(feed.path))))

    def change(self, feed: Feed, change: Mapping[str, Any]) -> Changed:
        """Change a config, and restart the changefeed if it runs. Raises ConfigError, RequestError, ConflictError."""
        with _alone(feed):
            old = readable(feed)
            text, keys = _changed(feed, change, self._fleet.settings.api)
            if not keys:
                return Changed([], restarted=False)
            check_keys(keys)
            new = config_of(text, feed.path)
            check_same_place(old, new)
            check_filter(new, progress_of(feed))
            with _at_rest(feed) as ran:
                files.write(feed.path, text)
                feed.load()
            log.info("changed", changefeed=feed.name, keys=keys, restarted=ran)
            return Changed(keys, restarted=ran)

    def pause(self, feed: Feed) -> None:
        """Stop it until it is resumed, also across a restart of the process."""
        with _alone(feed):
            self._fleet.set_paused(feed.name, paused=True)
            feed.ask_to_stop()
            feed.join(time.monotonic() + STOP_S)
            log.info("paused", changefeed=feed.name)

    def resume(self, feed: Feed) -> None:
        """Read its file anew and start it; one that runs goes on. Raises ConfigError if the file is wrong."""
        with _alone(feed):
            if not feed.is_running:
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


def _parsed(text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = tomlkit.parse(text).unwrap()
    except (TOMLKitError, RecursionError, ValueError) as error:
        raise RequestError(f"this is not valid TOML: {str(error)[:200]}", where="body", hint="see README.md") from error
    return found


def readable(feed: Feed) -> Config:
    """Its config. Raises ConflictError where its file can't be used."""
    if feed.config is None:
        hint = "mend the file and resume the changefeed"
        raise ConflictError("its file can't be used", where=str(feed.path), hint=hint)
    return feed.config


def _changed(feed: Feed, change: Mapping[str, Any], allowed: Api) -> tuple[str, list[str]]:
    """The file's new text, in which comments and all that was not changed stay, and the keys that differ."""
    text = read_text(feed.path)
    old = _parsed(text)
    new = merged(old, change)
    keys = changed_keys(old, new)
    check_references(dict(change), feed.path.parent, allowed)
    check_destination(old, change)
    document = tomlkit.parse(text)
    try:
        _put(document, change)
        return tomlkit.dumps(document), keys
    except (TOMLKitError, ValueError, TypeError, RecursionError) as error:
        fact = f"this can't be written as TOML: {str(error)[:200]}"
        raise RequestError(fact, where="body", hint="see the sample in README.md") from error


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
    """Stop it meanwhile; whether it ran. Raises ConflictError if its window does not end in time."""
    ran = feed.is_running
    feed.ask_to_stop()
    if not feed.join(time.monotonic() + STOP_S):
        hint = "it is paused now; resume it once its state says that it has ended, or try again"
        raise ConflictError(f"its window did not end within {STOP_S:.0f} s", where=f"changefeed {feed.name}", hint=hint)
    done = False
    try:
        yield ran
        done = True
    finally:
        if ran and (restart_if_done or not done):
            feed.start()
