"""What an error of obstore means, in words of ours: its text may hold urls, headers, bodies.

Nothing is quoted from it but numbers and words of a list.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from zephon.errors import AccessError, DatasetNotFoundError, ShardError, StorageError, ZephonError

_STATUS = re.compile(r"status code: (\d{3})\b")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>|\"code\":\s*\"(\w{1,60})\"")
_RETRIES = re.compile(r"after (\d{1,6}) retries")
_KIND = re.compile(r"HttpError \{\s*kind: (\w+)")
_KINDS = {
    "Connect": "no connection",
    "Request": "the request could not be sent",
    "Timeout": "nothing came in time",
    "Interrupted": "the connection broke",
    "Decode": "the answer could not be read",
}
_KNOWN = frozenset(
    {
        "AccessDenied", "AccountIsDisabled", "AccountProblem", "AllAccessDisabled",
        "AuthenticationFailed", "AuthenticationRequired", "AuthorizationFailure",
        "AuthorizationHeaderMalformed", "AuthorizationPermissionMismatch", "BlobNotFound",
        "ConditionNotMet", "ContainerNotFound", "ExpiredToken", "InternalError",
        "InvalidAccessKeyId", "InvalidBucketName", "InvalidRange", "InvalidToken",
        "NoAuthenticationInformation", "NoSuchBucket", "NoSuchKey", "OperationTimedOut",
        "PermanentRedirect", "PreconditionFailed", "PublicAccessNotPermitted",
        "RequestTimeTooSkewed", "RequestTimeout", "ResourceNotFound", "ServerBusy",
        "ServiceUnavailable", "SignatureDoesNotMatch", "SlowDown", "TooManyRequests",
        "UserProjectMissing",
    }
)  # fmt: skip
_UNREACHABLE = "look whether the store is reachable from here"
_HINTS = {
    "AuthorizationHeaderMalformed": "set AWS_REGION to the region of the bucket",
    "PermanentRedirect": "set AWS_REGION to the region of the bucket",
    "RequestTimeTooSkewed": "set the clock of this machine",
    "UserProjectMissing": "the bucket bills who asks: name a project",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """What went wrong with a request.

    status: of the answer; None if there was none.
    code: the store's word for it, where it is a known one.
    attempts: how often it was asked.
    told: all that in words.
    """

    status: int | None
    code: str | None
    attempts: int
    told: str


def fault_of(error: Exception) -> Fault:
    """Read an error of obstore."""
    text = str(error)
    found = _STATUS.search(text)
    status = int(found[1]) if found else _STATUSES.get(type(error).__name__)
    codes = (one or other for one, other in _CODE.findall(text))
    code = next((each for each in codes if each in _KNOWN), None)
    retries = _RETRIES.search(text)
    kind = _KIND.search(text)
    if status is not None:
        told = f"{status} {code}" if code else str(status)
    elif kind is not None:
        told = _KINDS.get(kind[1], "the request could not be made")
    else:
        told = type(error).__name__
    return Fault(status, code, int(retries[1]) + 1 if retries else 1, told)


def is_refused(fault: Fault) -> bool:
    """Say whether the store wants other credentials."""
    return fault.status in (401, 403)


def may_pass(error: Exception, fault: Fault) -> bool:
    """Say whether to ask again, after all that obstore itself does: such as a body cut short."""
    kind = _KIND.search(str(error))
    return kind is not None and kind[1] in _KINDS and fault.status is None and fault.attempts == 1


def error_of(error: Exception, what: str, credentials: str, *, listing: bool) -> ZephonError:
    """Give the error to raise for one of obstore.

    Args:
        error: what obstore raised.
        what: was read, such as a url without secrets.
        credentials: where they came from, in words.
        listing: a root was listed, rather than a file read.
    """
    fault = fault_of(error)
    if is_refused(fault):
        also = "" if listing else ", or there is no such object and it may not say so"
        return AccessError(
            f"{what}: the store refuses ({fault.told}){also}; credentials were {credentials}; "
            f"{_HINTS.get(fault.code or '', _access(what))}"
        )
    if type(error).__name__ == "InvalidPathError":
        return StorageError(
            f"{what}: a name there has an empty part ('//' or a slash at its beginning) or one of "
            "dots, and such names cannot be listed or read; rename it, or pass a folder without it"
        )
    if fault.status == 404 and listing:
        return DatasetNotFoundError(
            f"{what}: there is no such bucket or container ({fault.told}); look at its name and at "
            "the endpoint"
        )
    if fault.status == 404:
        return ShardError(
            f"{what}: the object is gone ({fault.told}); it was there when the dataset was listed: "
            "put it back, or begin anew"
        )
    if fault.status == 412:
        return ShardError(changed(what))
    times = "1 attempt" if fault.attempts == 1 else f"{fault.attempts} attempts"
    busy = fault.status in (429, 503)
    hint = "the store is too busy: come back later" if busy else _UNREACHABLE
    hint = _HINTS.get(fault.code or "", hint)
    if "169.254." in str(error):
        hint = "no credentials were found: set them, or skip the signature for a public bucket"
    if "not allowed" in str(error) or "BadScheme" in str(error):
        hint = "for an http:// endpoint set AWS_ALLOW_HTTP=true"
    return StorageError(f"{what}: no answer after {times}; the last: {fault.told}; {hint}")


def changed(what: str) -> str:
    """Say that an object is not the one that was listed."""
    return (
        f"{what}: the object is of another version than when the dataset was listed; somebody "
        "replaced it, or took it away: put the old one back, or begin anew"
    )


def _access(what: str) -> str:
    scheme = what.partition("://")[0].lower()
    if scheme.startswith("s3"):
        return (
            "they need to list the bucket and read its objects: set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or AWS_SKIP_SIGNATURE=true for a public bucket"
        )
    if scheme.startswith("g"):
        return (
            "they need to list the bucket and read its objects: set "
            "GOOGLE_APPLICATION_CREDENTIALS, or GCS_KEY and GCS_SECRET, or "
            "GOOGLE_SKIP_SIGNATURE=true for a public bucket"
        )
    return (
        "they need to list the container and read its blobs: set AZURE_STORAGE_ACCOUNT_KEY or "
        "AZURE_STORAGE_SAS_TOKEN, or AZURE_SKIP_SIGNATURE=true for a public container"
    )


_STATUSES = {
    "PermissionDeniedError": 403,
    "UnauthenticatedError": 401,
    "PreconditionError": 412,
    "FileNotFoundError": 404,
    "NotFoundError": 404,
}
