"""How fast do lists of tokens in Parquet become training batches: long lists and short ones?"""

from benchmarks.jobs import compare

if __name__ == "__main__":
    compare("token_lists_2200", "token_lists_275")
