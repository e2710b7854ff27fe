"""Values that servers spell in several ways get one text each."""

import random
from decimal import Decimal

import pytest

from sinks.compare.documents import decimal_text
from sinks.compare.spelling import _float, _json, _real, _vector


@pytest.mark.parametrize(
    "same",
    [
        ['{"a": 1, "b": [1.0, "x"]}', '{"b":[1,"x"],"a":10e-1}', '{"b": [1.00, "\\u0078"], "a": 1}'],
        ["100000000000000000000", "1e20", "1.0E+20"],
        ["-0.0", "0"],
        ['"é"', '"\\u00e9"'],
    ],
)
def test_documents_that_mean_the_same_have_one_text(same: list[str]) -> None:
    assert len({_json(text) for text in same}) == 1


def test_documents_that_differ_have_different_texts() -> None:
    texts = [
        "1", '"1"', '{"#": "1e0"}', '{"#": 1}', "[1]", '{"{}": []}', "{}", "[]", '["{}"]', '[["a", 1]]', '{"a": 1}',
        '{"a": "1"}', "true", '"true"', "null", '"null"', '""', "1.0000000000000000001", '{"a": 1, "a": 2}', '{"a": 2}',
        "NaN", '"NaN"', "no document", "1e1", "18446744073709551615", "18446744073709551614", "[[]]", '{"a": {}}',
    ]  # fmt: skip
    assert len({_json(text) for text in texts}) == len(texts)


def test_numbers_are_told_apart_by_value_alone() -> None:
    chance = random.Random(3)
    texts = [f"{chance.choice(['', '-'])}{chance.randrange(300)}.{chance.randrange(100):03}e{chance.randrange(-3, 3)}"
             for _ in range(3000)]  # fmt: skip
    texts += [format(Decimal(text), "f") for text in texts]
    found: dict[str, Decimal] = {}
    for text in texts:
        assert found.setdefault(decimal_text(text), Decimal(text)) == Decimal(text)
    assert len(found) == len(set(found.values()))


def test_each_float_has_one_text_and_neighbours_have_others() -> None:
    assert _real("1e300") == _real("1" + "0" * 300) != _real("1.0000000000000002e300")
    assert _real("0.00001") == _real("1E-05") != _real("0.000010000000000000002")
    assert _float("0.1") == _float("0.100000001490116119384765625") != _float("0.10000001")
    assert _vector("[1,2.5,1e-7]") == _vector("[1, 2.50, 0.0000001]") != _vector("[1,2.5]")
    with pytest.raises(ValueError, match="32 bits"):
        _float("1e39")


@pytest.mark.parametrize("text", ["9e20_0", "\u0661e\u0662\u0660", " 1e20", "inf", "nan", "1e999"])
def test_what_only_python_takes_for_a_number_is_none(text: str) -> None:
    """Somebody may have written it by hand beside a float that it would mean."""
    for spell in (_real, _float):
        with pytest.raises(ValueError, match=r"number|range"):
            spell(text)
