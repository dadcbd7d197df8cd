from concurrent.futures import ThreadPoolExecutor

from zephon.io.read_counts import ReadCounter, ReadCounts


def test_threads_add_to_the_same_counts():
    counter = ReadCounter()
    assert counter.counts() == ReadCounts()
    with ThreadPoolExecutor(4) as pool:
        for _ in range(4):
            pool.submit(lambda: [counter.add(read=1, emptied=1, bytes=3) for _ in range(500)])
    counter.add(skipped=2)
    assert counter.counts() == ReadCounts(read=2000, skipped=2, emptied=2000, bytes=6000)
