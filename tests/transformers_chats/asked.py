"""Asks transformers, in an environment of its own, where also packages with templates lie."""

import fcntl
import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = ROOT / ".venv-transformers"
REFERENCE = Path(__file__).with_name("reference.py")


def environment():
    """Have the environment made where it is not there, by one process of those that ask."""
    made = ENVIRONMENT / "installed"
    if not made.exists():
        with (ROOT / ".venv-transformers.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            command = ["make", "-C", str(ROOT), ".venv-transformers/installed"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ENVIRONMENT


def templates(package):
    """The chat templates that a package brings, by name."""
    folders = {"trl": "trl/chat_templates", "axolotl": "axolotl/utils/chat_templates/templates"}
    (packages,) = environment().glob("lib/python*/site-packages")
    found = sorted((packages / folders[package]).glob("*.jinja"))
    return {path.stem: path for path in found}


def ask(jobs):
    """Have transformers do jobs; give what became of each row of each."""
    return json.loads(_output(["-c", "pass"] if not jobs else [str(REFERENCE)], json.dumps(jobs)))


def dialogues():
    """Conversations that people wrote."""
    return json.loads(_output([str(REFERENCE), "--dialogues"], ""))


def _output(arguments, text):
    python = environment() / "bin" / "python"
    settings = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUTF8": "1"}
    done = subprocess.run(
        [str(python), *arguments], input=text, capture_output=True, text=True, env=settings
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
