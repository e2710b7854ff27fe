"""What can go wrong with an embedded server: always something that the operator of this machine can mend."""


class EmbeddedError(Exception):
    """An embedded server cannot be provided or did not start. Reads as fact, detail, hint."""

    def __init__(self, fact: str, *, detail: str = "", hint: str = "") -> None:
        """Keep the three parts apart, for callers that print them in their own way."""
        self.fact = fact
        self.detail = detail
        self.hint = hint
        super().__init__("\n".join(part for part in (fact, detail, hint and f"hint: {hint}") if part))
