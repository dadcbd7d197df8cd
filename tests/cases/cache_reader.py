"""Reads all shards of a server: `python -m tests.cases.cache_reader SOURCE PORT ROOT`.

It prints how many it fetched itself, after comparing the bytes of all.
"""

import sys
from pathlib import Path

from tests.io.shard_cache.places import ServedPlace, settings
from zephon.io.shard_cache import ShardCache


def main():
    place = ServedPlace(Path(sys.argv[1]), int(sys.argv[2]))
    cache = ShardCache.opened(settings(Path(sys.argv[3])))
    for file in place.files():
        with cache.hold("words", place, file) as held:
            if Path(held.path).read_bytes() != (place.folder / file.name).read_bytes():
                sys.exit(f"{file.name}: wrong bytes")
    print(cache.counts().fetched)


if __name__ == "__main__":
    main()
