"""Set up everything `make dev` and `make test` need, from PyPI and npm alone; does nothing when all is there.

Run as `python3 -m scripts.setup`. Each step carries a stamp: a hash of what it is made from. A step whose
stamp still fits is skipped, so a second run takes a fraction of a second.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells users of an older Python
    sys.exit(
        "Python 3.11 or newer is needed, this is %d.%d.\n"  # noqa: UP031 - read by any Python 3
        "Way out: install a newer one and name it: make setup PYTHON=python3.12" % sys.version_info[:2]
    )

from scripts.console import SetupError, say
from scripts.setup_steps import run_all


def main() -> None:
    """Run every step that is not up to date; end with a message and 1 when one cannot be done."""
    try:
        done = run_all()
    except SetupError as error:
        sys.exit(f"\nset-up stopped: {error}")
    except OSError as error:
        sys.exit(f"\nset-up stopped: {error}\nWay out: check the disk's free space and the folder's permissions.")
    if done:
        say("==> set up")


if __name__ == "__main__":
    main()
