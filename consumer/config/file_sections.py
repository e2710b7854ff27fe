"""The sections of a config that say how files of the storage sink are written."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from consumer.config import validators as checks
from consumer.config.table_sections import Section


class CsvSection(Section):
    """The format of CSV files: the keys and defaults of the changefeed's `[sink.csv]`."""

    delimiter: Annotated[str, Field(min_length=1, max_length=3)] = ","
    """The separator between two fields: one to three characters."""
    quote: Annotated[str, Field(max_length=1)] = '"'
    """The quote around texts; `""`: none, special characters are then escaped by a backslash."""
    null: Annotated[str, Field(min_length=1)] = "\\N"
    """The text that means NULL."""
    include_commit_ts: bool = True
    """Must be true, upstream too: without commitTs nothing can be ordered."""
    binary_encoding_method: Literal["", "base64", "hex"] = ""
    """How binary values are written. Empty: base64; a file whose values could also be hexadecimal is refused."""
    terminator: str = ""
    """The end of a line; `""`: CRLF or LF."""
    output_old_value: bool = False
    """Both values work: the files themselves show it."""
    output_field_header: bool = False
    """Both values work: the files themselves show it."""

    @model_validator(mode="after")
    def _can_be_told_apart(self) -> Self:
        spelled = self.delimiter, self.quote, self.null, self.terminator
        checks.csv_rules(*spelled, include_commit_ts=self.include_commit_ts)
        return self
