"""The process's own file, `_serve.toml` in the directory of the changefeeds: Spark, and who is paused.

One process has one Spark, so its settings stand here and nowhere else. No changefeed's id can begin with `_`.
"""

from pathlib import Path

import tomlkit
from pydantic import BaseModel, ConfigDict, ValidationError

from consumer.config.faults import said_of
from consumer.config.model import Config, SparkSection
from consumer.config.text import read_text, values_of
from consumer.runtime.secrets import hide_variables
from ordering.errors import ConfigError

NAME = "_serve.toml"


class Api(BaseModel):
    """What configs that come through the API may refer to: nothing, unless it stands here."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=lambda name: name.replace("_", "-"))
    variables: list[str] = []
    """Names of environment variables, or patterns of them with `*`: `ORDERS_*`."""
    files: list[str] = []
    """Paths of files with secrets or certificates, or patterns of them: `/run/secrets/orders-*`. `*` stands for
    anything within one part of a path."""
    claim_check_locations: list[str] = []
    """Places below which claim-check files may be: `s3://bucket/orders`."""
    storage_locations: list[str] = []
    """Places below which `source.storage`, `source.archive` and a warehouse of `target.uri` may be."""
    directories: list[str] = []
    """Directories in which targets that are files of this machine may be: SQLite, Iceberg."""


class Settings(BaseModel):
    """What stands in `_serve.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    spark: SparkSection = SparkSection()
    paused: list[str] = []
    api: Api = Api()


def load_settings(folder: Path) -> Settings:
    """Read `_serve.toml`, and hide the variables that it lists; without one, the defaults. Raises ConfigError."""
    path = folder / NAME
    if not path.exists():
        return Settings()
    values = values_of(read_text(path), path)
    try:
        found = Settings.model_validate(values.values)
    except ValidationError as error:
        hint = "it may hold [spark], `paused` (a list of ids) and [api]: see `reconciler help serve`"
        raise ConfigError(
            f"the file is wrong: {said_of(error, Settings, values.secrets)}", where=str(path), hint=hint
        ) from None
    hide_variables(found.api.variables)
    return found


def with_paused(text: str, paused: list[str]) -> str:
    """The file's text with another list of who is paused; comments stay."""
    document = tomlkit.parse(text)
    document.pop("paused", None)
    values = tomlkit.document()
    values["paused"] = paused
    return tomlkit.dumps(values) + tomlkit.dumps(document)


def check_spark(config: Config, settings: Settings, folder: Path) -> None:
    """Raise ConfigError where a changefeed wants another Spark than the process has."""
    if config.spark not in (SparkSection(), settings.spark):
        raise ConfigError(
            f"changefeed {config.changefeed!r} has a [spark] section that differs from the one of {NAME}",
            where=f"key 'spark'; {folder / NAME}",
            hint=f"all changefeeds of a process share one Spark: move the section to {NAME}, or run it by itself",
        )
