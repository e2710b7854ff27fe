"""A cursor over the words of a DDL statement: what every reader of DDL steps along.

`sql` is the statement as it is to be executed: what the words were read from, without its comments.
"""

from ordering.errors import InputError
from sinks.ddl.parse.lexer import Word, WordKind, words_of

__all__ = ["Word", "WordKind", "Words"]
_SHOWN = 200


class Words:
    """The statement's words and a position among them.

    `features`: whether what stands in TiDB's own comments, `/*T![ttl] ... */`, counts; it says how tables are stored.
    """

    def __init__(self, sql: str, *, features: bool = False) -> None:
        read = words_of(sql, features=features)
        self.sql, self.words, self.at = read.text, read.words, 0

    @property
    def ended(self) -> bool:
        """Whether nothing is left."""
        return self.at >= len(self.words)

    def peek(self, ahead: int = 0) -> str:
        """A coming word in upper case; "" at the end or before a quoted one."""
        place = self.at + ahead
        if place >= len(self.words) or self.words[place].kind is not WordKind.PLAIN:
            return ""
        return self.words[place].text.upper()

    def skip(self, *wanted: str) -> bool:
        """Step over these words if they come next."""
        if all(self.peek(i) == word for i, word in enumerate(wanted)):
            self.at += len(wanted)
            return True
        return False

    def skip_any(self, *wanted: str) -> str:
        """Step over the next word if it is one of these; which it was, or ""."""
        word = self.peek()
        if word in wanted:
            self.at += 1
            return word
        return ""

    def skip_to(self, *wanted: str) -> str:
        """Step over everything up to and including one of these words; which it was, or ""."""
        while not self.ended:
            word = self.peek()
            self.at += 1
            if word in wanted:
                return word
        return ""

    def take(self) -> Word:
        """The next word, whatever it is. Raises InputError at the end."""
        if self.ended:
            raise InputError(f"DDL statement ends too early: {self.sql[:_SHOWN]}")
        self.at += 1
        return self.words[self.at - 1]

    def name(self) -> str:
        """The next word as a name, quoted or not."""
        return self.take().text

    def expect(self, *wanted: str) -> None:
        """Step over these words. Raises InputError if others come."""
        if not self.skip(*wanted):
            raise self.unexpected(f"expected {' '.join(wanted)}")

    def unexpected(self, detail: str) -> InputError:
        """What to raise where the statement is not as known."""
        rest = self.sql[self.words[self.at].start :][:_SHOWN] if not self.ended else "its end"
        return InputError(f"DDL statement can't be read: {detail} at {rest!r}")

    def in_brackets(self) -> str:
        """The source text between the bracket that comes next and its partner, brackets left out.

        Raises InputError if no bracket comes.
        """
        self.expect("(")
        first = self.words[self.at - 1]
        depth = 1
        while depth:
            word = self.take()
            if word.kind is WordKind.PLAIN:
                depth += (word.text == "(") - (word.text == ")")
        return self.sql[first.stop : word.start].strip()

    def skip_clause(self) -> str:
        """Step over everything up to the next comma outside of brackets, or the end; its source text."""
        start = self.at
        while not self.ended and self.peek() not in {",", ")"}:
            if self.peek() == "(":
                self.in_brackets()
            else:
                self.at += 1
        return self.sql[self.words[start].start : self.words[self.at - 1].stop] if self.at > start else ""
