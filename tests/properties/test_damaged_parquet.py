"""Damaged Parquet files: the process goes on, and rows are right, or an error says where."""

import json
import os
import subprocess
import sys

HANGS = 120.0  # seconds beyond those asked for


def test_damaged_parquet_files(tmp_path, request):
    """Another process reads them, since a library that meets damage may end it."""
    seconds = request.config.getoption("--fuzz")
    seed = "11" if seconds <= 20 else str(int.from_bytes(os.urandom(4), "little"))
    command = [sys.executable, "-m", "tests.properties.parquet_damage", str(tmp_path)]
    ran = subprocess.run(
        [*command, str(seconds), seed], capture_output=True, text=True, timeout=seconds + HANGS
    )
    told = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.returncode == 0, f"{tmp_path / 'a.parquet'} ended the process: {ran.stderr[-500:]}"
    assert told[:-1] == [], f"with seed {seed}"
    assert told[-1]["files"] > 10
    assert told[-1]["slowest"] < 30
    assert told[-1]["peak"] < 1 << 30
