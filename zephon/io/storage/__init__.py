"""Places where datasets lie besides the local disk, one a file.

Read ``place`` first: what every place can do.
"""
