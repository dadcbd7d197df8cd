"""What the url of a prefix in an object store names, in each of the spellings in use."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from zephon.errors import DatasetError

SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss")

_KINDS = {
    **dict.fromkeys(("s3", "s3a"), "s3"),
    **dict.fromkeys(("gs", "gcs"), "gcs"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss"), "azure"),
}
_AT_ACCOUNT = ("az", "azure", "abfs", "abfss")
"""Where what stands before an @ is the container, not a secret."""


@dataclass(frozen=True, slots=True)
class ObjectUrl:
    """A prefix in an object store.

    kind: "s3", "gcs" or "azure".
    bucket: or container.
    prefix: without slashes at its ends; may be empty.
    account: of Azure, where the url names it.
    endpoint: of Azure's account, where the url names its host.
    """

    kind: str
    bucket: str
    prefix: str
    account: str | None = None
    endpoint: str | None = None


def is_object_url(path: str) -> bool:
    """Say whether a path names a place in an object store."""
    scheme, found, _ = path.partition("://")
    return bool(found) and scheme.lower() in SCHEMES


def bare(url: str) -> str:
    """Give a url without what may be a secret: a user before an @, and a query.

    >>> bare("s3://key:secret@bucket/prefix?X-Amz-Signature=1"), bare("abfs://box@host/a?sig=1")
    ('s3://bucket/prefix', 'abfs://box@host/a')
    """
    scheme, _, rest = url.partition("://")
    rest = rest.partition("?")[0].partition("#")[0]
    place, slash, path = rest.partition("/")
    if scheme.lower() not in _AT_ACCOUNT:
        if ":" in place:  # a password may hold slashes
            place, slash, path = rest.rpartition("@")[2].partition("/")
        place = place.rpartition("@")[2]
    return f"{scheme}://{place}{slash}{path}"


def parse(url: str) -> ObjectUrl:
    """Read the url of a prefix.

    `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, and with the account
    `abfss://container@account.dfs.core.windows.net/prefix`; a path is taken as it is written.

    Raises:
        DatasetError: it names no bucket, or carries a user, a password or a query.
    """
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    place, _, path = rest.partition("/")
    account = endpoint = None
    if scheme in _AT_ACCOUNT and "@" in place:
        place, _, host = place.partition("@")
        account = host.partition(".")[0]
        endpoint = _azure_endpoint(host)
    if bare(url) != url:
        raise DatasetError(
            f"{bare(url)!r}: the url must hold no user, password, query or fragment, and it does; "
            "give credentials by the environment"
        )
    if not place or ":" in place or (account is not None and not account):
        wanted = f"{scheme}://container@account.dfs.core.windows.net/prefix"
        if scheme not in ("abfs", "abfss"):
            wanted = f"{scheme}://{'container' if scheme in _AT_ACCOUNT else 'bucket'}/prefix"
        raise DatasetError(f"{url!r}: the url names no bucket or container; write {wanted}")
    prefix = path.strip("/")
    if "" in prefix.split("/") and prefix:
        raise DatasetError(
            f"{url!r}: the path must have no empty part, and '//' is in it; write it once"
        )
    return ObjectUrl(_KINDS[scheme], unquote(place), prefix, account, endpoint)


def _azure_endpoint(host: str) -> str | None:
    """Give the blob endpoint of an account by the host of either of its two interfaces."""
    if "." not in host:
        return None
    return f"https://{host.replace('.dfs.', '.blob.', 1)}"
