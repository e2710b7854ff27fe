"""The process's own file, `_serve.toml` in the directory of the changefeeds: Spark, and who is paused.

One process has one Spark, so its settings stand here and nowhere else. No changefeed's id can begin with `_`.
"""

from pathlib import Path

import tomlkit
from pydantic import BaseModel, ConfigDict, ValidationError

from consumer.config import Config, Spark, said_of
from consumer.config_text import read_text, values_of
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


class Settings(BaseModel):
    """What stands in `_serve.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    spark: Spark = Spark()
    paused: list[str] = []
    api: Api = Api()


def load_settings(folder: Path) -> Settings:
    """Read `_serve.toml`; without one, the defaults. Raises ConfigError."""
    path = folder / NAME
    if not path.exists():
        return Settings()
    values = values_of(read_text(path), path)
    try:
        return Settings.model_validate(values.values)
    except ValidationError as error:
        hint = "it holds [spark], as a changefeed's config does, `paused`, a list of ids, and [api]: see docs/serve.md"
        raise ConfigError(f"the file is wrong: {said_of(error, values.secrets)}", where=str(path), hint=hint) from None


def with_paused(text: str, paused: list[str]) -> str:
    """The file's text with another list of who is paused; comments stay."""
    document = tomlkit.parse(text)
    document.pop("paused", None)
    values = tomlkit.document()
    values["paused"] = paused
    return tomlkit.dumps(values) + tomlkit.dumps(document)


def check_spark(config: Config, settings: Settings, folder: Path) -> None:
    """Raise ConfigError where a changefeed wants another Spark than the process has."""
    if config.spark not in (Spark(), settings.spark):
        raise ConfigError(
            f"changefeed {config.changefeed!r} has a [spark] section that differs from the one of {NAME}",
            where=f"key 'spark'; {folder / NAME}",
            hint=f"all changefeeds of a process share one Spark: move the section to {NAME}, or run it by itself",
        )
