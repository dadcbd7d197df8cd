"""How fast does Parquet text become training batches: in order, shuffled, and as global steps?"""

from benchmarks.jobs import compare

if __name__ == "__main__":
    compare(
        "text_parquet",
        "text_parquet_within_shard",
        "text_parquet_blocks",
        "text_parquet_steps",
    )
