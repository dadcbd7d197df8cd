"""One request to the hub or to where it sends us, by the session of huggingface_hub.

Its releases up to 0.36 have a session of requests, later ones a client of httpx: both are taken.
The session brings the user's proxies, certificates and offline mode. Redirects are followed here,
so that the token goes to the hub alone: never to another origin, which has a signature of its own.
"""

from __future__ import annotations

import email.utils
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

from zephon.io.storage.hub_login import Login, hub_library
from zephon.io.storage.patience import PassingFault

_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524})
_REDIRECTS = 5
_TRANSPORTS = ("requests", "urllib3", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2")
_LIMIT = re.compile(r"\br\s*=\s*0\b.*?\bt\s*=\s*(\d{1,6})")
_CHUNK = 1 << 16


class Answer:
    """What came: ``status``, ``headers`` by their names in lower case, and a body to read once.

    url: where it came from, after redirects; may hold a signature, and is never told.
    """

    def __init__(self, response: Any, url: str) -> None:
        self._response = response
        self.url = url
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = {
            name.lower(): value for name, value in response.headers.items()
        }

    def body(self) -> bytes:
        """Read all of it."""
        return b"".join(self.chunks())

    def chunks(self) -> Iterator[bytes]:
        """Read it piece by piece.

        Raises:
            PassingFault: the connection broke, or nothing came for too long.
        """
        # Small pieces: what has come is given before a broken connection is noticed.
        response = self._response
        in_pieces = hasattr(response, "iter_content")
        try:
            yield from response.iter_content(_CHUNK) if in_pieces else response.iter_bytes()
        except Exception as error:
            raise _passing(error) from None
        finally:
            response.close()

    def close(self) -> None:
        """Give the connection back unread."""
        self._response.close()


def send(
    url: str, login: Login, *, home: str, stall: float, headers: Mapping[str, str] | None = None
) -> Answer:
    """Make one GET request, and follow where it leads.

    Args:
        url: of the hub, or one that it gave before.
        login: whose token goes to the hub.
        home: the address whose origin, and no other, gets the token.
        stall: seconds without a byte after which the attempt has failed.
        headers: more of them.

    Raises:
        PassingFault: no answer, or one that may be another later.
    """
    answer = _once(url, login, home, stall, headers or {})
    for _ in range(_REDIRECTS):
        if answer.status not in (301, 302, 303, 307, 308):
            break
        answer.close()
        url = urljoin(url, answer.headers.get("location", url))
        answer = _once(url, login, home, stall, headers or {})
    if answer.status in _PASSING:
        answer.close()
        raise PassingFault(str(answer.status), asked_wait(answer.headers))
    return answer


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Say how many seconds an answer wants us to wait: ``Retry-After``, or ``RateLimit``."""
    told = headers.get("retry-after", "").strip()
    if told.isdigit():
        return float(told)
    if told:
        try:
            return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - time.time())
        except ValueError:
            return None
    found = _LIMIT.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None


def origin(url: str) -> tuple[str, str, int | None]:
    """Give scheme, host and port of a url."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), port


def _once(url: str, login: Login, home: str, stall: float, headers: Mapping[str, str]) -> Answer:
    hub = hub_library("hf://")
    own = origin(url) == origin(home)
    sent = hub.utils.build_hf_headers(
        token=(login.token or False) if own else False, library_name="zephon"
    )
    sent |= {"Accept-Encoding": "identity", **headers}
    session = hub.utils.get_session()
    try:
        if hasattr(session, "build_request"):
            request = session.build_request("GET", url, headers=sent, timeout=stall)
            response = session.send(request, stream=True, follow_redirects=False)
        else:
            response = session.request(
                "GET", url, headers=sent, timeout=stall, stream=True, allow_redirects=False
            )
    except Exception as error:
        raise _passing(error) from None
    return Answer(response, url)


def _passing(error: Exception) -> Exception:
    """Give what to raise for an error of a session: its text may hold urls with signatures."""
    packages = {each.__module__.partition(".")[0] for each in type(error).__mro__}
    closed = isinstance(error, RuntimeError) and "closed" in str(error)  # by another thread
    if packages.isdisjoint(_TRANSPORTS) and not closed:
        return error
    name = type(error).__name__
    if "Timeout" in name:
        return PassingFault("nothing came in time")
    return PassingFault("no connection" if "Connect" in name else f"the connection broke ({name})")
