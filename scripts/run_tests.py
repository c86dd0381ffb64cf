"""Run the whole suite as two processes side by side: what mostly waits for the runtime, and everything else.

One after the other the halves take twice as long on two cores. The second half is shown as it goes, the first when it
has ended; the exit status is 1 where either failed. With arguments it is pytest with these arguments, and nothing else.
"""

from __future__ import annotations

import subprocess
import sys

RUNTIME = ("tests/workerd", "tests/mcp")


def main(arguments: list[str]) -> int:
    """Return the exit status."""
    if arguments:
        return _pytest(*arguments).wait()
    print(f"the tests of {' and '.join(RUNTIME)} run beside the others and are shown at the end", flush=True)
    runtime = _pytest(*RUNTIME, stdout=subprocess.PIPE)
    others = _pytest(*(f"--ignore={folder}" for folder in RUNTIME))
    told, _ = runtime.communicate()
    statuses = (others.wait(), runtime.returncode)
    sys.stdout.write(told)
    return max(map(abs, statuses))


def _pytest(*arguments: str, stdout: int | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-m", "pytest", *arguments], stdout=stdout, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
