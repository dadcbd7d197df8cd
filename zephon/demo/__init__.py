"""The demo: train-ready batches from the Python that runs it, without a download.

Read `run` first: it is the tour, a step a function. `material` writes two datasets, `tokenizer`
trains on them, `progress` draws the bar, `ranks` compares global steps over rank counts.
"""
