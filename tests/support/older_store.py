"""Runs as versions before evaluations stored them: key schema 1, with everything in one folder and in one key."""

import hashlib
import json
import shutil
from pathlib import Path

from focalcal.lab.store import Run

DEFAULTS = {"shifts": [], "severities": [5], "keep_weights": False, "saliency": 0}
ORDER = (
    *("imbalance", "train_examples", "test_examples", "shifts", "severities"),
    *("allow_partial", "evaluate_every", "keep_weights", "saliency"),
)


def older_spec(spec, **asked) -> dict:
    """What `spec.json` held."""
    fields = spec.as_dict()
    protocol = {**fields["protocol"], **DEFAULTS, **asked}
    return {"schema": 1, **fields, "protocol": {name: protocol[name] for name in ORDER}}


def older_key(values: dict) -> str:
    """As it was computed: SHA-256 of the fields, sorted, with every number a float."""
    floats = json.loads(json.dumps(values), parse_int=float)
    return hashlib.sha256(json.dumps(floats, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:32]


def made_older(run: Run, store: Path, **asked) -> Path:
    """A copy of the run in another store's folder, in the layout of that time; `asked` were fields of its protocol."""
    values = older_spec(run.spec, **asked)
    folder = store / "runs" / older_key(values)
    (folder / "predictions").mkdir(parents=True)
    (store / "STORE.json").write_text(json.dumps({"what": "focalcal store of runs", "schema": 1}))
    (folder / "spec.json").write_text(json.dumps(values, indent=1) + "\n")
    record = json.loads((run.path / "result.json").read_text())
    splits = {}
    for name in run.files:
        if "/" not in name and name not in ("spec.json", "result.json"):
            shutil.copyfile(run.file(name), folder / name)
    for split in run.splits:
        (source,) = run.path.rglob(f"predictions/{split.replace('/', '%2F')}.npz")
        splits[split] = f"predictions/{source.name}"
        shutil.copyfile(source, folder / splits[split])
    record["metrics"] = {split: run.metrics(split) for split in run.record["metrics"]}
    (folder / "result.json").write_text(json.dumps(record, indent=1) + "\n")
    listed = {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    manifest = {"schema": 1, "key": folder.name, "splits": splits, "files": listed}
    (folder / "files.json").write_text(json.dumps(manifest, indent=1) + "\n")
    return folder
