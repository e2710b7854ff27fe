"""When a topic ends: the last table that it is known to have carried is gone (R6)."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ordering.events import DdlEvent, TableName
from ordering.progress import TopicProgress
from ordering.topic_lifecycle import after, carrying, end_of
from tests.ordering.ddls import DDLS, NAMES, ddl

TOPICS = st.builds(TopicProgress, st.just("id"), st.frozensets(NAMES), st.booleans())
A, B = TableName("d", "a"), TableName("d", "b")
IN_ORDER = st.lists(DDLS, max_size=6).map(lambda ddls: sorted(ddls, key=lambda d: d.commit_ts))


@given(TOPICS, IN_ORDER)
def test_what_is_foreseen_is_what_comes_to_pass(topic: TopicProgress, ddls: list[DdlEvent]) -> None:
    foreseen, now, emptied = end_of(topic, "a", ddls), topic, 0
    for one in ddls:
        before, now = now, after(now, "a", one)
        if now.ended and (not before.ended or (one.position.topic == "a" and one.removes)):
            emptied = one.commit_ts
    if foreseen is None:
        assert not now.ended
    else:
        assert now.ended
        assert foreseen == emptied


@given(TOPICS, IN_ORDER)
def test_nothing_is_guessed_of_a_topic_that_was_not_read_from_its_first_message(
    topic: TopicProgress, ddls: list[DdlEvent]
) -> None:
    topic = replace(topic, complete=False)
    assert end_of(topic, "a", ddls) is None
    for one in ddls:
        topic = after(topic, "a", one)
        assert not topic.ended


@given(TOPICS, IN_ORDER, st.frozensets(NAMES))
def test_a_topic_that_carries_a_table_has_not_ended(
    topic: TopicProgress, ddls: list[DdlEvent], seen: frozenset[TableName]
) -> None:
    for one in ddls:
        topic = after(topic, "a", one)
        assert not (topic.ended and topic.tables)
    again = carrying(topic, seen)
    assert again.tables == topic.tables | seen
    assert again.ended == (topic.ended and not seen)


def test_a_topic_that_has_carried_nothing_yet_has_not_ended() -> None:
    empty = TopicProgress("id", complete=True)
    assert end_of(empty, "t", [ddl(3, topic="u", removes=(A,))]) is None
    assert not after(empty, "t", ddl(3, topic="u", removes=(A,))).ended


def test_a_rename_ends_the_old_names_topic_and_dropping_a_database_all_of_it() -> None:
    topic = TopicProgress("id", frozenset({A}), complete=True)
    assert end_of(topic, "t", [ddl(3, removes=(A,), adds=(B,))]) == 3
    assert end_of(topic, "t", [ddl(3, topic="other", drops="d")]) == 3
    assert end_of(topic, "t", [ddl(3, topic="other", drops="e")]) is None


def test_a_table_that_comes_back_through_its_topic_keeps_it_alive() -> None:
    topic = TopicProgress("id", frozenset({A}), complete=True)
    assert end_of(topic, "t", [ddl(3, removes=(A,)), ddl(4, adds=(A,))]) is None
    assert end_of(topic, "t", [ddl(3, removes=(A,)), ddl(4, adds=(A,)), ddl(5, removes=(A,))]) == 5
    assert not after(after(topic, "t", ddl(3, removes=(A,))), "t", ddl(4, adds=(A,))).ended


def test_a_table_is_made_where_the_message_says() -> None:
    made = replace(ddl(3, adds=(A,)), adds=(TableName("e", "a"),))
    assert after(TopicProgress("id", complete=True), "t", made).tables == {A}
