"""What a static mixture draws, lane by lane, as lists."""

from zephon.work import StaticMixtureWorkSource

MIXTURE = {"prose": 0.7, "code": 0.3}


def drawn(source: StaticMixtureWorkSource, lane: int = 0, lanes: int = 1) -> list:
    refs = source.lane_stream(lane, lanes).draw(0, 10**6)
    return [getattr(refs, name).tolist() for name in ("component", "shard", "row", "pass_index")]


def every_draw(source: StaticMixtureWorkSource, lanes: int) -> list[tuple[int, int, int, int]]:
    found = []
    for lane in range(lanes):
        found += zip(*drawn(source, lane, lanes), strict=True)
    return found


def lengths(source: StaticMixtureWorkSource, lanes: int) -> list[int | None]:
    return [source.lane_stream(lane, lanes).length for lane in range(lanes)]
