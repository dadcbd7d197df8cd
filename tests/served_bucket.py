"""A bucket on a server of this machine, with the credentials in the environment."""

import os
from contextlib import contextmanager

import boto3
from moto.server import ThreadedMotoServer


@contextmanager
def served_bucket():
    """Serve an empty one; give its URL."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(
        AWS_ACCESS_KEY_ID="key",
        AWS_SECRET_ACCESS_KEY="hidden-secret",
        AWS_REGION="us-east-1",
        AWS_ENDPOINT=f"http://{host}:{port}",
        AWS_ALLOW_HTTP="true",
    )
    client = boto3.client("s3", endpoint_url=f"http://{host}:{port}")
    client.create_bucket(Bucket="training")
    try:
        yield "s3://training"
    finally:
        server.stop()
        os.environ.clear()
        os.environ.update(before)
