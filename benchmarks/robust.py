"""What it costs on clean data that bad files and rows are noticed: `python -m benchmarks.robust`.

In processor time: passes with the checks of files, lines and text, and passes without them, in
turn. Without them, a file that changes under the run, a value that reaches over a line end, and
bytes that are not UTF-8 would all be taken for data.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.jobs import JOBS, parse_arguments
from benchmarks.pairs import PAIRS, run, show_pairs

TIMED = ("text_parquet", "text_jsonl", "token_lists_275")


def main() -> None:
    """Run the pairs; print a Markdown table."""
    if "--run" in sys.argv:
        _child()
        return
    arguments = parse_arguments(str(__doc__), rounds=PAIRS)
    show_pairs("robust", "checks", TIMED, arguments.corpus, arguments.rounds)


def leave_out_checks() -> None:
    """Let this process take every file for what it was, and every line and text for sound."""
    from zephon.io.formats import arrow_columns, line_decoder
    from zephon.io.shard import Shard

    def nothing(self: Any, *_: Any) -> None:
        pass

    for place, name, function in (
        (Shard, "check_unchanged", nothing),
        (Shard, "check_written", nothing),
        (arrow_columns, "not_utf8", lambda column: []),
        (line_decoder, "_one_object_a_line", lambda text, lines: True),
    ):
        assert callable(getattr(place, name)), name
        setattr(place, name, function)


def _child() -> None:
    import benchmarks.ours  # noqa: F401 (imports what a run needs before the clock starts)

    name, kind = sys.argv[-2:]
    if kind == "without":
        leave_out_checks()
    print(json.dumps(run(JOBS[name], Path(sys.argv[sys.argv.index("--corpus") + 1]))))


if __name__ == "__main__":
    main()
