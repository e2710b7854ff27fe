"""What Spark's workers unpickle brings no module along that each of them would have to load."""

import subprocess
import sys

from pyspark import cloudpickle

from consumer.spark.daemon import TASKS
from consumer.tasks.order import OrderTask, ReadTask, RowsOnly
from consumer.tasks.write import WriteTask

LOOK = """
import pickle, sys
from importlib import import_module
for name in {tasks!r}:
    import_module(name)
before = set(sys.modules)
pickle.loads({pickled!r})
print(sorted(set(sys.modules) - before))
"""


def test_tasks_bring_no_modules_along() -> None:
    pickled = cloudpickle.dumps((ReadTask, OrderTask, RowsOnly, WriteTask))
    code = LOOK.format(tasks=TASKS, pickled=pickled)
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert told.stdout.strip() == "[]"
