"""Opening object stores: what a url, options and the environment say, in the words of obstore.

The environment is that of each cloud's own tools: AWS_* with AWS_PROFILE, S3_ENDPOINT_URL and
AWS_ENDPOINT_URL, GOOGLE_* with GOOGLE_APPLICATION_CREDENTIALS, GCS_KEY and GCS_SECRET (keys of the
S3 interface of GCS), AZURE_STORAGE_* with AZURE_STORAGE_CONNECTION_STRING. Options win over it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from zephon.errors import MissingExtraError, PlanError
from zephon.io.storage.forked import obstore_needed
from zephon.io.storage.object_urls import ObjectUrl
from zephon.io.storage.patience import Patience

OPEN_OPTIONS = frozenset(
    {
        "account_name", "allow_http", "base_url", "endpoint", "region", "request_payer",
        "requester_pays", "skip_signature", "use_emulator", "virtual_hosted_style_request",
    }
)  # fmt: skip
"""Options that are no secrets: only these go with a pickled place."""

_GOOGLE = "https://storage.googleapis.com"
_AWS_KEYS = ("AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_SKIP_SIGNATURE")
_PLAIN = {
    "s3": ("AWS_ALLOW_HTTP",),
    "gcs": ("AWS_ALLOW_HTTP", "GOOGLE_ALLOW_HTTP"),
    "azure": ("AWS_ALLOW_HTTP", "AZURE_ALLOW_HTTP"),
}
_AWS_ENDPOINTS = ("S3_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_AZURE_NAMES = {  # of Azure's own tools, which obstore does not look at
    "account_name": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    "account_key": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
    "sas_key": ("AZURE_STORAGE_SAS_KEY", "AZURE_STORAGE_SAS_TOKEN"),
    "endpoint": ("AZURE_STORAGE_ENDPOINT",),
}
_CONNECTION = {
    "accountname": "account_name",
    "accountkey": "account_key",
    "sharedaccesssignature": "sas_key",
    "blobendpoint": "endpoint",
}


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store of obstore whose root is the prefix, and whence its credentials, in words."""

    store: Any
    credentials: str


def open_store(
    place: ObjectUrl, options: Mapping[str, Any], patience: Patience, needed_by: str
) -> OpenedStore:
    """Open the store that a url names; makes no request.

    Args:
        place: the parsed url.
        options: of obstore's stores by name, such as endpoint, region, access_key_id,
            secret_access_key, skip_signature and credential_provider; besides allow_http and
            requester_pays.
        patience: with requests that fail.
        needed_by: what needs the store, for messages.

    Raises:
        MissingExtraError: obstore is not installed.
        PlanError: an option or a variable is none that obstore takes, or something is missing.
        ForkedError: this process was forked from one that had used obstore.
    """
    obstore_needed(needed_by)
    # Imported late: an extra that only buckets need.
    try:
        from obstore import store as stores
    except ImportError:
        raise MissingExtraError(
            f"{needed_by} needs obstore, which is not installed; pip install 'zephon[cloud]'"
        ) from None
    found = dict(options)
    opening = {"s3": _s3, "gcs": _gcs, "azure": _azure}[place.kind]
    client: dict[str, Any] = {
        # A slow line is none that stalls: the whole of a request may take longer.
        "read_timeout": timedelta(seconds=patience.stall),
        "timeout": timedelta(seconds=10 * patience.stall),
        "connect_timeout": timedelta(seconds=min(10.0, patience.stall)),
    }
    if _said(found.pop("allow_http", _first(_PLAIN[place.kind]))):
        client["allow_http"] = True
    retry = {
        "max_retries": patience.attempts - 1,
        "retry_timeout": timedelta(seconds=patience.seconds),
        "backoff": {
            "init_backoff": timedelta(seconds=patience.first_wait),
            "max_backoff": timedelta(seconds=max(patience.longest_wait, patience.first_wait)),
            "base": 2,
        },
    }
    try:
        kind, credentials = opening(place, found)
        store = getattr(stores, kind)(
            place.bucket,
            prefix=place.prefix or None,
            client_options=client,
            retry_config=retry,
            **found,
        )
    except (PlanError, MissingExtraError):
        raise
    except Exception as error:
        # Without its cause and most of its text: they may hold what was given.
        raise PlanError(
            f"{needed_by} cannot be opened: obstore refuses the options or the environment with "
            f"{type(error).__name__}; known options are endpoint, region, skip_signature and the "
            "credentials by obstore's names; look at the variables of that cloud"
        ) from None
    return OpenedStore(store, credentials)


def _s3(place: ObjectUrl, found: dict[str, Any]) -> tuple[str, str]:
    if "endpoint" not in found and (endpoint := _first(_AWS_ENDPOINTS)):
        found["endpoint"] = endpoint
    payers = os.environ.get("ZEPHON_AWS_REQUESTER_PAYS", "")
    if _said(found.pop("requester_pays", payers)) or place.bucket in payers.split(","):
        found.setdefault("request_payer", True)
    if {"access_key_id", "credential_provider"} & found.keys():
        return "S3Store", "those that were passed"
    if _said(found.get("skip_signature", os.environ.get("AWS_SKIP_SIGNATURE", ""))):
        return "S3Store", "none, as skip_signature says"
    if _first(_AWS_KEYS):
        return "S3Store", f"{next(each for each in _AWS_KEYS if os.environ.get(each))} and the rest"
    profile = os.environ.get("AWS_PROFILE")
    if profile or _shared_credentials().is_file():
        told = f"AWS_PROFILE={profile!r}" if profile else "the default profile of ~/.aws"
        found["credential_provider"] = _by_boto3(told)
        return "S3Store", told
    return "S3Store", "those of the machine, since no AWS_* variable and no ~/.aws says any"


def _gcs(place: ObjectUrl, found: dict[str, Any]) -> tuple[str, str]:
    key, secret = os.environ.get("GCS_KEY"), os.environ.get("GCS_SECRET")
    names = {"credential_provider", "service_account", "service_account_key", "bearer_token"}
    names |= {"application_credentials", "access_key_id"}
    given = names & found.keys()
    found.pop("requester_pays", None)
    if "access_key_id" in given or (not given and key and secret):
        found.setdefault("access_key_id", key)
        found.setdefault("secret_access_key", secret)
        found.setdefault("endpoint", found.pop("base_url", _GOOGLE))
        found.setdefault("region", "auto")
        return "S3Store", "those that were passed" if given else "GCS_KEY and GCS_SECRET"
    if "endpoint" in found:
        found["base_url"] = found.pop("endpoint")
    if "base_url" not in found and (emulator := os.environ.get("STORAGE_EMULATOR_HOST")):
        found["base_url"] = emulator if "://" in emulator else f"http://{emulator}"
    config = {key: found.pop(key) for key in list(found) if key != "credential_provider"}
    if "skip_signature" in config:
        config["skip_signature"] = "true" if _said(config["skip_signature"]) else "false"
    found["config"] = config
    if given:
        return "GCSStore", "those that were passed"
    if config.get("skip_signature") == "true" or _said(os.environ.get("GOOGLE_SKIP_SIGNATURE", "")):
        return "GCSStore", "none, as skip_signature says"
    named = [each for each in sorted(os.environ) if each.startswith("GOOGLE_")]
    return "GCSStore", named[0] if named else "Google's default ones of this user or machine"


def _azure(place: ObjectUrl, found: dict[str, Any]) -> tuple[str, str]:
    found.pop("requester_pays", None)
    secrets = {"credential_provider", "account_key", "sas_key", "token", "client_secret"}
    given = bool(secrets & found.keys())
    told = _connection_string()
    for option, variables in _AZURE_NAMES.items():
        if option in ("account_key", "sas_key") and given:
            continue
        if option not in found and (value := told.get(option) or _first(variables)):
            found[option] = value
    if place.account is not None:
        found["account_name"] = place.account
        if place.endpoint is not None:
            found.setdefault("endpoint", place.endpoint)
    if "account_name" not in found:
        raise PlanError(
            f"az://{place.bucket}: the storage account is not known; set "
            "AZURE_STORAGE_ACCOUNT_NAME or write abfss://container@account.dfs.core.windows.net/prefix"
        )
    if given:
        return "AzureStore", "those that were passed"
    if _said(found.get("skip_signature", os.environ.get("AZURE_SKIP_SIGNATURE", ""))):
        return "AzureStore", "none, as skip_signature says"
    if {"account_key", "sas_key"} & told.keys():
        return "AzureStore", "AZURE_STORAGE_CONNECTION_STRING"
    named = [each for each in sorted(os.environ) if each.startswith("AZURE_")]
    named = [each for each in named if not each.endswith(("ACCOUNT_NAME", "ACCOUNT", "ENDPOINT"))]
    return "AzureStore", named[0] if named else "those of the machine, since no AZURE_* says any"


def _connection_string() -> dict[str, str]:
    text = os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    pairs = (part.partition("=") for part in text.split(";"))
    return {
        _CONNECTION[name.strip().lower()]: value.strip()
        for name, found, value in pairs
        if found and name.strip().lower() in _CONNECTION
    }


def _shared_credentials() -> Path:
    named = os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")
    return Path(named).expanduser()


def _by_boto3(told: str) -> Any:
    """Let boto3 find the credentials: it alone reads profiles, with their roles and logins."""
    # Imported late: who has no profile does not need it.
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise MissingExtraError(
            f"s3: credentials by {told} need boto3, which is not installed; pip install boto3, or "
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from None
    try:
        return Boto3CredentialProvider()
    except Exception as error:
        raise PlanError(
            f"s3: boto3 finds no credentials by {told}: {type(error).__name__}; name a profile "
            "that is there, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        ) from None


def _first(variables: tuple[str, ...]) -> str | None:
    return next((value for each in variables if (value := os.environ.get(each))), None)


def _said(value: object) -> bool:
    return value is True or str(value).strip().lower() in ("1", "true", "yes", "on", "requester")
