"""Long chains of operators in SQL, for a parser makes a chain as deep as it is long.

SQLite takes expressions of 1,000 levels (its documentation, "Implementation Limits", "Maximum Depth Of An Expression
Tree"); upstream's tables have up to 4,096 columns, and a partition any number of values.
"""

from collections.abc import Sequence

_MOST = 100
"""So many terms stand side by side."""


def chained(operator: str, terms: Sequence[str]) -> str:
    """Terms with an operator between them for which brackets change nothing, such as AND, OR and ||."""
    if len(terms) <= _MOST:
        return operator.join(terms)
    middle = len(terms) // 2
    return f"({chained(operator, terms[:middle])}){operator}({chained(operator, terms[middle:])})"
