"""Which consistency applies a window how, before and after a crash."""

from dataclasses import replace

import pytest

from consumer.pipeline.apply_mode import ApplyMode, library_mode, mode_of
from ordering.timestamps import CheckpointTs, ResolvedTs
from ordering.window import Window

RECORDED = Window(CheckpointTs(0), CheckpointTs(0), ResolvedTs(9), ResolvedTs(9))
REWOUND = replace(RECORDED, rewound=True)
SNAPSHOT = ApplyMode(net=True, by_tasks=False, begun=False)
TRANSACTION = ApplyMode(net=False, by_tasks=False, begun=False)
TASKS = ApplyMode(net=True, by_tasks=True, begun=False)
BEGUN = ApplyMode(net=True, by_tasks=True, begun=True)


@pytest.mark.parametrize(
    ("consistency", "recorded", "mode"),
    [
        ("snapshot", None, SNAPSHOT),
        ("snapshot", RECORDED, BEGUN),
        ("snapshot", REWOUND, SNAPSHOT),
        ("transaction", None, TRANSACTION),
        ("transaction", RECORDED, BEGUN),
        ("transaction", REWOUND, SNAPSHOT),
        ("row", None, TASKS),
        ("row", RECORDED, BEGUN),
        ("row", REWOUND, BEGUN),
    ],
)
def test_the_mode_of_the_next_window(consistency: str, recorded: Window | None, mode: ApplyMode) -> None:
    assert mode_of(consistency, recorded) == mode


@pytest.mark.parametrize("recorded", [None, RECORDED])
def test_the_library_leaves_rows_where_they_are(recorded: Window | None) -> None:
    assert library_mode("snapshot", recorded) == BEGUN
    assert library_mode("transaction", recorded) == replace(BEGUN, net=False)
