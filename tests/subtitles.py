"""A format of a program's own, as the README has it."""

from zephon.io.formats import RecordFormat, register


class Subtitles(RecordFormat):
    """Subtitles: a number, two times and some lines of text; a blank line between two of them."""

    kind = "srt"
    suffixes = (".srt", ".srt.gz")

    def records(self, file):
        start = stop = place = 0
        for line in file:
            place += len(line)
            if line.strip():
                stop = place
                continue
            if stop > start:
                yield start, stop
            start = stop = place
        if stop > start:
            yield start, stop

    def row(self, record):
        number, times, *lines = record.decode().splitlines()
        begin, end = times.split(" --> ")
        return {"number": int(number), "begin": begin, "end": end, "text": "\n".join(lines)}


register(Subtitles())
