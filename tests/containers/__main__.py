"""`python -m tests.containers [ARGUMENT ...]`, which `./dev containers` runs: image, Compose file and manifests, run.

Exit code 3 where there is no engine or no base image; arguments go to pytest.
"""

import sys

import pytest

from consumer.embedded.errors import EmbeddedError
from tests.containers.engine import engine_to_use


def main(words: list[str]) -> int:
    """Run the tests, if they can be run here."""
    try:
        engine_to_use()
    except EmbeddedError as error:
        print(f"CONTAINERS: {error.fact}: nobody has run the image, the Compose file and the manifests")
        return 3
    return min(1, pytest.main(["--soak", "--containers", "-m", "containers", "tests/containers", *words]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
