"""A function of rows, or of anything, that counts how many threads are in it at the same time."""

import threading
import time


def counting(seconds):
    """Give such a function, which stays in each row so long, and one that tells the most yet."""
    inside, most, lock = 0, 0, threading.Lock()

    def count(row):
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(seconds)
        with lock:
            inside -= 1
        return row

    return count, lambda: most
