"""Speed claims as files: one runnable question each, `python -m benchmarks.text_parquet`.

`timing` runs contenders in processes of their own, in turn, and prints medians with their spread;
`corpus` builds the data; `roofline` is the shortest loop that does the work; `peers/` holds scripts
for other packages, each run by a virtual environment of its own.
"""
