import gc
import logging
import os
import signal
import sys
import tempfile
from pathlib import Path

# oneDNN would otherwise pick AMX for bfloat16 on processors that advertise it and cannot run it.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")
# As many workers as cores run side by side: threads of their own would only wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Programs that tests start import `support` and `paper` too.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [*map(str, (Path(__file__).parent, Path(__file__).parents[1])), *filter(None, [os.environ.get("PYTHONPATH")])]
)

import pytest
import torch
from hypothesis import HealthCheck, settings

torch.set_num_threads(1)

# Jobs in the background and under nohup ignore these, and programs that tests start and stop would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("focalcal", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("focalcal")


def pytest_collection_finish():
    """Thousands of tests are there to stay: the garbage collector need not look at them again and again."""
    gc.freeze()


def pytest_sessionfinish():
    gc.unfreeze()


@pytest.fixture(autouse=True)
def _apart():
    """The same random numbers for every test, and nothing compiled left over from another."""
    torch.default_generator.manual_seed(0)  # torch.manual_seed keeps the stack of each call for the GPUs to come
    yield
    if "torch._dynamo" in sys.modules:
        torch.compiler.reset()


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """Under `make test-triton` CPU tensors stand in for a GPU's, and what asks for no engine asks for "triton"."""
    from support.engines import INTERPRETED

    if INTERPRETED:
        from support.interpreter import patch_each_module_once

        from focalcal.losses import engines, triton_launch
        from focalcal.losses.module import FocalFamilyLoss

        patch_each_module_once()
        monkeypatch.setattr(triton_launch, "_TILE", 2**16)  # fewer programs; test_triton.py has the real ones
        monkeypatch.setattr(engines, "natively", lambda logits: False)
        monkeypatch.setattr(vars(FocalFamilyLoss)["engine"], "default", "triton")
        monkeypatch.setattr(engines.focal_family, "__defaults__", (*engines.focal_family.__defaults__[:-1], "triton"))


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """What recipes start from, as it is published and with random content: the hub's weights, and word vectors.

    The folder with the vectors, for `data_dir`.
    """
    pytest.importorskip("safetensors")
    pytest.importorskip("transformers")
    import torch
    from support.published_weights import local_hub

    from focalcal.lab.models import build_model
    from focalcal.lab.training import RECIPES

    folder = tmp_path_factory.mktemp("published")
    (folder / "glove").mkdir()
    for name in {one.word_vectors for one in RECIPES.values() if one.word_vectors}:
        width = int(name.rpartition(".")[2].removesuffix("d"))
        lines = [f"{word} {' '.join([str(at)] * width)}\n" for at, word in enumerate(("one", "two", "news"), 1)]
        (folder / "glove" / f"{name}.txt").write_text("".join(lines))
    models = {one.initial_weights: one.model for one in RECIPES.values() if one.initial_weights}
    for name in [name for name in models if "/" not in name]:  # a folder in that of the data sets
        network = build_model(models.pop(name), classes=2)
        if hasattr(network, "network"):
            network.network.half().save_pretrained(folder / name)
        else:
            (folder / name).mkdir()
            torch.save(network.state_dict(), folder / name / "pytorch_model.bin")
    with local_hub(folder / "hub", models):
        yield folder


@pytest.fixture
def store(tmp_path):
    """A new store of runs."""
    from focalcal.lab.store import Store

    return Store(tmp_path / "store")


@pytest.fixture
def data_folder() -> Path:
    """The folder of real data sets that FOCALCAL_DATA names."""
    folder = os.environ.get("FOCALCAL_DATA")
    if not folder or not Path(folder).is_dir():
        message = f"needs real data: set FOCALCAL_DATA to a folder that holds it (now {folder!r})"
        if os.environ.get("FOCALCAL_REQUIRE_DATA"):
            pytest.fail(message)
        pytest.skip(message)
    return Path(folder)


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster of two processors; under a short path, as the names of sockets must be."""
    ray = pytest.importorskip("ray")
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        before = signal.getsignal(signal.SIGTERM)
        ray.init(
            "local",
            num_cpus=2,
            object_store_memory=80 * 2**20,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}},
            _temp_dir=folder,
        )
        signal.signal(signal.SIGTERM, before)  # Ray's own would end what later tests start
        yield
        ray.shutdown()


@pytest.fixture(scope="session")
def chrome():
    """Chromium, started once."""
    from support.browser import chromium

    with chromium() as started:
        yield started


@pytest.fixture
def tab(chrome):
    """A fresh page, which must not have complained in the end."""
    from support.browser import Tab

    made = Tab(chrome)
    yield made
    made.context.close()
    made.check()
