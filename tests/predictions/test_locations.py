"""Tables that stand elsewhere: on a web server, in tables with versions, on standard input."""

import gzip
import io
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from support.prediction_samples import sample

from focalcal.predictions import Predictions, PredictionsFileError
from focalcal.predictions.locations import standard_input

MADE = sample(n=60, kind="probs")


def test_an_address_of_a_web_server(tmp_path):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    for name in ("a.parquet", "a.csv", "a.npz"):
        MADE.save(tmp_path / name)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        for name in ("a.parquet", "a.csv", "a.npz"):
            assert Predictions.load(f"{address}/{name}").equals(MADE)
        with pytest.raises(PredictionsFileError, match=r"none.csv: cannot be read .*check the address"):
            Predictions.load(f"{address}/none.csv")
        server.shutdown()


def test_the_rows_of_a_delta_table_that_count(tmp_path):
    deltalake, parquet = pytest.importorskip("deltalake"), pytest.importorskip("pyarrow.parquet")
    MADE.save(tmp_path / "a.parquet")
    table = parquet.read_table(tmp_path / "a.parquet").replace_schema_metadata(None)
    deltalake.write_deltalake(tmp_path / "delta", table)
    deltalake.write_deltalake(tmp_path / "delta", table.slice(0, 25), mode="overwrite")
    loaded = Predictions.load(tmp_path / "delta")
    np.testing.assert_array_equal(loaded.probs, MADE.probs[:25])


@pytest.mark.parametrize("name", ["a.parquet", "a.csv"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_is_what_its_first_bytes_say(tmp_path, name, pack):
    MADE.save(tmp_path / name)
    sent = standard_input(io.BytesIO(pack((tmp_path / name).read_bytes())))
    assert Predictions.load(sent).equals(MADE)
    copy = Path(sent.path)
    assert copy.exists()
    del sent
    assert not copy.exists()  # the copy goes with the object
