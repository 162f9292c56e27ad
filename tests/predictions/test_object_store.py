"""Tables in an object store: a server of moto on this machine, which speaks S3.

moto pins an older python-dateutil, so that it has an environment of its own: `make test-object-store`.
"""

import os
import socket
import subprocess
import time

import pyarrow.fs
import pyarrow.parquet
import pytest
from support.prediction_samples import sample

from focalcal.auditing.files import audit_files
from focalcal.metrics import confidence_gap
from focalcal.predictions import Predictions, PredictionsFileError

SERVER = os.environ.get("FOCALCAL_MOTO")
pytestmark = pytest.mark.skipif(not SERVER, reason="FOCALCAL_MOTO names no moto_server: `make test-object-store`")
MADE = sample(n=60, kind="probs")


@pytest.fixture(scope="module")
def port():
    """Of a server that is up."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    command = [SERVER, "-H", "127.0.0.1", "-p", str(number)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        for _ in range(300):
            with socket.socket() as trial:
                if trial.connect_ex(("127.0.0.1", number)) == 0:
                    break
            time.sleep(0.1)
        yield number
        server.terminate()


@pytest.fixture
def bucket(port, monkeypatch, tmp_path):
    """Fills a bucket, and gives the address of a name in it."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store = pyarrow.fs.S3FileSystem(
        endpoint_override=f"127.0.0.1:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True
    )
    store.create_dir("scores")
    for name in ("a.parquet", "a.csv", "a.npz"):
        MADE.save(tmp_path / name)
        with store.open_output_stream(f"scores/{name}") as out:
            out.write((tmp_path / name).read_bytes())
    table = pyarrow.parquet.read_table(tmp_path / "a.parquet")
    for month, rows in (("2026-01", table.slice(0, 40)), ("2026-02", table.slice(40))):
        with store.open_output_stream(f"scores/parts/month={month}/part.parquet") as out:
            pyarrow.parquet.write_table(rows.replace_schema_metadata(None), out)
    return lambda name: f"s3://scores/{name}?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1"


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.npz"])
def test_a_file_in_a_store_is_the_file(bucket, name):
    assert Predictions.load(bucket(name)).equals(MADE)


def test_parts_in_folders_named_by_a_column_are_one_table(bucket):
    columns = {"probs": [f"prob_{k}" for k in range(4)], "labels": "label", "groups": "month"}
    found = audit_files([bucket("parts")], columns=columns, resamples=100)
    assert found.verdict.rows == len(MADE.labels)
    assert found.verdict.gap == pytest.approx(confidence_gap(MADE.probs, MADE.labels))
    assert sorted(part.name for part in found.groups) == ["2026-01", "2026-02"]


def test_what_is_not_there_is_said(bucket):
    with pytest.raises(PredictionsFileError, match=r"none\.csv"):
        Predictions.load(bucket("none.csv"))
