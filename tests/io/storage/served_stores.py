"""A server of this machine that speaks as S3 and as Google's storage do, with faults on demand.

It is moto behind a gate: the gate keeps a log, plays faults, and asks for the bearer token that
Google's clients send. Nothing is asked of any address but loopback.
"""

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

BUCKET = "training"
KEY, SECRET, TOKEN = "AKIDPLANTEDKEY", "planted-secret/of+a-key", "ya29.planted-token"


class _Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_request(self, *_):
        pass

    def log(self, *_):
        pass


@dataclass
class Fault:
    """What to do with requests whose method and path hold ``part``.

    status: to answer with, instead of what was asked for.
    cut: bytes of the body after which the connection ends.
    slow: seconds between the tenths of the body.
    wait: seconds before anything is sent.
    times: how often.
    """

    part: str
    status: int | None = None
    headers: dict = field(default_factory=dict)
    body: str = ""
    cut: int | None = None
    wait: float = 0.0
    slow: float = 0.0
    times: int = 1


class ServedStore:
    """What a test does with the server: requests seen, faults to come, objects to put."""

    def __init__(self):
        self.log, self.faults, self._lock = [], [], threading.Lock()
        self.accepts, self.page = {KEY}, None
        self._moto = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._gate, threaded=True, request_handler=_Quiet
        )
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            region_name="us-east-1",
        )
        self.client.create_bucket(Bucket=BUCKET)

    def close(self):
        self._server.shutdown()
        self._thread.join()

    def put(self, key, body):
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def fail(self, part, **what):
        self.faults.append(Fault(part, **what))

    def options(self, kind, **more):
        """Credentials and endpoint, as each test has to give them."""
        if kind == "gs":
            soon = datetime.now(UTC) + timedelta(hours=1)
            token = {"token": TOKEN, "expires_at": soon}
            given = {"base_url": self.endpoint, "credential_provider": lambda: token}
        else:
            given = {"endpoint": self.endpoint, "region": "us-east-1"}
            given |= {"access_key_id": KEY, "secret_access_key": SECRET}
        return {**given, "allow_http": True, **more}

    def _gate(self, environ, start):
        line = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}?{environ['QUERY_STRING']}"
        authorization = environ.get("HTTP_AUTHORIZATION", "")
        fault = self._fault(line)
        seen = {
            name[5:].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        with self._lock:
            self.log.append((line, seen))
        if fault is not None:
            time.sleep(fault.wait)
            if fault.status is not None:
                start(
                    f"{fault.status} Fault",
                    [("Content-Type", "application/xml"), *fault.headers.items()],
                )
                return [fault.body.encode()]
        if authorization.startswith("AWS4-") and not any(
            key in authorization for key in self.accepts
        ):
            return self._refuse(start, "403 Forbidden", "InvalidAccessKeyId")
        if authorization.startswith("Bearer ") and authorization != f"Bearer {TOKEN}":
            return self._refuse(start, "401 Unauthorized", "AuthenticationRequired")
        if authorization.startswith("Bearer "):
            environ["HTTP_AUTHORIZATION"] = (
                f"AWS4-HMAC-SHA256 Credential={KEY}/20260101/us-east-1/s3/aws4_request, "
                "SignedHeaders=host, Signature=x"
            )
        if not authorization and "anonymous" not in self.accepts:
            return self._refuse(start, "403 Forbidden", "AccessDenied")
        if self.page is not None and "list-type" in environ["QUERY_STRING"]:
            environ["QUERY_STRING"] += f"&max-keys={self.page}"
        if fault is None or (fault.cut is None and not fault.slow):
            return self._moto(environ, start)
        told = {}
        body = b"".join(self._moto(environ, lambda *answer: told.update(answer=answer)))
        start(*told["answer"][:2])
        return self._slowly(body, fault.slow) if fault.slow else [body[: fault.cut]]

    def _slowly(self, body, seconds):
        tenth = -(-len(body) // 10)
        for at in range(0, len(body), tenth):
            time.sleep(seconds)
            yield body[at : at + tenth]

    def _fault(self, line):
        with self._lock:
            for fault in self.faults:
                if fault.times and fault.part in line:
                    fault.times -= 1
                    return fault
        return None

    def _refuse(self, start, status, code):
        body = f"<?xml version='1.0'?><Error><Code>{code}</Code></Error>".encode()
        start(status, [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
        return [body]


@contextmanager
def served_store():
    """Serve a bucket that is empty."""
    store = ServedStore()
    try:
        yield store
    finally:
        store.close()
