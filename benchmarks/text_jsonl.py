"""How fast does JSONL text become training batches?"""

from benchmarks.jobs import compare

if __name__ == "__main__":
    compare("text_jsonl")
