"""`make bench`, or `python -m bench [directory] [sqlite] [postgres] [context] [service] [threads] [archive]
[workspace] [records[:FOLDER]]`.

Without names it runs all of them, and writes what they found to the documentation.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
from pathlib import Path

from bench import archive, context, directory, postgres, records, report, service, sqlite, threads, workspace
from bench.measure import SHOWN

BENCHMARKS = {
    "directory": directory.run,
    "sqlite": sqlite.run,
    "postgres": postgres.run,
    "context": context.run,
    "service": service.run,
    "threads": threads.run,
    "workspace": workspace.run,
    "archive": archive.run,
    "records": records.run,
}


def main() -> None:
    chosen = dict(argument.partition(":")[::2] for argument in sys.argv[1:] or BENCHMARKS)
    if unknown := set(chosen) - set(BENCHMARKS):
        sys.exit(f"Unknown benchmark: {', '.join(sorted(unknown))}. There are {', '.join(BENCHMARKS)}.")
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for name, folder in chosen.items():
        with tempfile.TemporaryDirectory(prefix="memshelf-bench-", dir=".") as place:
            asyncio.run(BENCHMARKS[name](Path(place), *([Path(folder)] if folder else [])))
    if not sys.argv[1:]:
        report.write(SHOWN, load=load)


if __name__ == "__main__":
    main()
