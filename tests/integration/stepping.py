"""Run a module on a clock that a test may set while it runs.

``python -m tests.integration.stepping FILE MODULE ARGUMENT...``: FILE holds by how many seconds
the machine's clock is wrong.
"""

import runpy
import sys
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import time_machine


def follow(path: Path) -> None:
    clock = time_machine.travel(datetime.now(UTC), tick=True).start()
    wrong = 0.0
    while True:
        said = float(path.read_text() or wrong)
        if said != wrong:
            clock.shift(timedelta(seconds=said - wrong))
            wrong = said
        time.sleep(0.02)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    threading.Thread(target=follow, args=(path,), daemon=True).start()
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
