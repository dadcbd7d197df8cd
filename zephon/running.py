"""What compiles, checks and runs a pipeline: ``Pipeline`` loads it when something is to run.

Whoever imports the library, builds a pipeline or sends one to another process needs none of it.
"""

from zephon.exec.chat.marking import chat_templates, is_tagged
from zephon.exec.checkpoint import from_any, from_text, to_bytes, to_text
from zephon.exec.data_check import data_notes
from zephon.exec.described import lane_lines, notes
from zephon.exec.fingerprint import digest
from zephon.exec.handed_out import policy_notes
from zephon.exec.hosting.asking import account, queue_stats, state_of
from zephon.exec.launch import mean_row_bytes, step_of, workers_of
from zephon.exec.parts import CHUNK_SIZE
from zephon.exec.priming import cost_lines
from zephon.exec.ranks import (
    can_meet,
    host_ranks,
    open_ranks,
    refuse_without_coordinator,
    warn_of_ranks_apart,
    warn_of_the_same_data,
)
from zephon.exec.reading import plan_reading
from zephon.exec.recipe_changes import checked_words
from zephon.exec.rows_after import seen_after
from zephon.exec.session import open_engine, topology_of, waiting_state
from zephon.exec.shares import resumed_share, share_of, worker_note
from zephon.exec.state_parts import from_parts
from zephon.planner.compiler import BARRIER_ROWS, compile_plan
from zephon.planner.explain import RunFacts, explain_text
from zephon.validation import preflight_tokenizers, run_auto_validation, validate_pipeline

__all__ = [
    "BARRIER_ROWS",
    "CHUNK_SIZE",
    "RunFacts",
    "account",
    "can_meet",
    "chat_templates",
    "checked_words",
    "compile_plan",
    "cost_lines",
    "data_notes",
    "digest",
    "explain_text",
    "from_any",
    "from_parts",
    "from_text",
    "host_ranks",
    "is_tagged",
    "lane_lines",
    "mean_row_bytes",
    "notes",
    "open_engine",
    "open_ranks",
    "plan_reading",
    "policy_notes",
    "preflight_tokenizers",
    "queue_stats",
    "refuse_without_coordinator",
    "resumed_share",
    "run_auto_validation",
    "seen_after",
    "share_of",
    "state_of",
    "step_of",
    "to_bytes",
    "to_text",
    "topology_of",
    "validate_pipeline",
    "waiting_state",
    "warn_of_ranks_apart",
    "warn_of_the_same_data",
    "worker_note",
    "workers_of",
]
