"""No key, token or signature is told: every error is caused, and all that it shows is searched.

The servers answer with the secrets in their bodies and headers, as some proxies do.
"""

import io
import logging
import pickle
import traceback

import pytest

from tests.io.storage.hub_here import ALICE, BOB, QUICK, WRONG, found
from tests.io.storage.served_stores import BUCKET, KEY, SECRET, TOKEN, served_store
from zephon.errors import ZephonError
from zephon.io.storage.hub_models import hub_files
from zephon.io.storage.objects import ObjectPlace
from zephon.io.storage.patience import Patience

HASTE = Patience(attempts=2, seconds=10.0, stall=0.2, first_wait=0.01, longest_wait=0.02)
STATUSES = [400, 401, 403, 404, 409, 412, 416, 418, 429, 500, 502, 503]
FAULTS = [
    *({"status": status} for status in STATUSES),
    {"status": 200},
    {"status": 302, "headers": {"Location": f"http://127.0.0.1:1/x?X-Amz-Signature={ALICE}"}},
    {"cut": 0},
    {"cut": 7},
    {"wait": 0.3},
]


@pytest.fixture
def told(caplog):
    """Search what was raised, logged, and may be written down, for anything secret."""
    caplog.set_level(logging.DEBUG)
    secrets = [KEY, SECRET, TOKEN, ALICE, BOB, WRONG, "X-Amz-Signature", "X-Signature", "planted"]
    shown = []

    def keep(act):
        try:
            result = act()
        except ZephonError as error:
            shown.append("".join(traceback.format_exception(error)))
            shown.append(repr(error))
            shown.append(str(pickle.dumps(error)))
            assert "\n" not in str(error)
            return None
        except BaseException:
            pytest.fail(f"an error that is not Zephon's:\n{traceback.format_exc()}")
        shown.append(repr(result))
        return result

    yield keep
    ours = [record for record in caplog.records if record.name.startswith("zephon")]
    shown += [record.getMessage() for record in ours]
    assert shown
    for text in shown:
        # The lines of a traceback are of this program, and may name its constants.
        raised = "".join(line for line in text.splitlines(True) if not line.startswith("    "))
        assert not [each for each in secrets if each.lower() in raised.lower()], text


@pytest.fixture(scope="module")
def store():
    with served_store() as served:
        served.put("d/a.jsonl", b"{}" * 50)
        yield served


@pytest.mark.parametrize("kind", ["s3", "gs"])
def test_of_object_stores(store, told, kind):
    store.faults.clear()
    here = ObjectPlace(f"{kind}://{BUCKET}/d", store.options(kind), HASTE)
    (file,) = ObjectPlace(f"{kind}://{BUCKET}/d", store.options(kind)).listed().files
    body = f"<Error><Code>{SECRET}</Code><Message>{KEY} {TOKEN} Signature=planted</Message></Error>"
    for fault in FAULTS:
        headers = {"X-Told": TOKEN, **fault.get("headers", {})}
        store.fail("", **{**fault, "headers": headers, "body": body, "times": 1000})
        told(here.listed)
        told(lambda: here.read(file, [(0, 5)]))
        told(lambda: here.fetch(file, io.BytesIO()))
        store.faults.clear()
    for wrong in ({"access_key": KEY}, {"region": TOKEN, "endpoint": f"http://{SECRET}@["}):
        told(ObjectPlace(f"s3://{BUCKET}/d", {**store.options("s3"), **wrong}, HASTE).listed)
    told(lambda: ObjectPlace(f"{kind}://{KEY}:{SECRET}@bucket/d?Signature=planted"))
    told(lambda: here)
    told(lambda: pickle.dumps(here))


def test_of_the_hub(hub, told):
    made = hub.dataset("acme/private", private=True)
    made.commit(
        {"a/train.parquet": b"x" * 1000, "README.md": "---\nconfigs:\n- data_dir: a\n---\n"}
    )
    hub.model("acme/gated-model", gated="auto").commit({"tokenizer.json": "{}"})
    place = told(lambda: found("hf://acme/private/train", token=ALICE, patience=Patience()))
    place._patience = HASTE
    (file,) = place.listed().files
    for where in ("/revision/", "/README.md", "/tree/", "/resolve/", "/_cdn"):
        for fault in FAULTS:
            headers = {
                "X-Error-Message": f"Bearer {ALICE} X-Signature=planted",
                "X-Error-Code": "GatedRepo" if fault.get("status") == 403 else "EntryNotFound",
                **fault.get("headers", {}),
            }
            hub.fail(where, **{**fault, "headers": headers, "times": 1000})
            if where in ("/resolve/", "/_cdn"):
                again = pickle.loads(pickle.dumps(place))
                again._token = ALICE
                told(lambda again=again: again.read(file, [(0, 5)]))
                told(lambda again=again: again.fetch(file, io.BytesIO()))
            else:
                told(lambda: found("hf://acme/private/train", token=ALICE, patience=HASTE))
            hub.faults.clear()
    for token in (BOB, WRONG, False):
        told(lambda token=token: found("hf://acme/private/train", token=token, patience=HASTE))
        told(lambda token=token: hub_files("acme/gated-model", ["*"], token=token, patience=QUICK))
    told(lambda: pickle.dumps(place))
    told(place._hub)
    told(lambda: place._hub().login)
