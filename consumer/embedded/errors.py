"""What can go wrong with an embedded server: always something that the operator of this machine can fix."""

from ordering.errors import ConfigError


class EmbeddedError(ConfigError):
    """An embedded server cannot be provided or did not start. Reads as fact, detail, hint."""

    def __init__(self, fact: str, *, detail: str = "", where: str = "", hint: str = "") -> None:
        self.detail = detail
        super().__init__(fact, where=where, hint=hint)

    def __str__(self) -> str:
        """Fact, detail (mostly a log's last lines) and hint, each on lines of its own."""
        return "\n".join(part for part in (self.fact, self.detail, self.hint and f"hint: {self.hint}") if part)
