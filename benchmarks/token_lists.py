"""How fast do lists of tokens become training batches: cut, packed whole, shuffled, mixed?"""

from benchmarks.jobs import compare

if __name__ == "__main__":
    compare(
        "token_lists_2200",
        "token_lists_275",
        "token_lists_first_fit",
        "token_lists_best_fit",
        "token_lists_shuffle",
        "token_lists_mixture",
    )
