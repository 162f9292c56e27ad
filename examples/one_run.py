"""Train one cell from Python, and look at what is stored of it.

A recipe, an objective and a seed make a spec; the spec's key is the run's name in the store, so that running it again
trains nothing. Takes a few seconds.
"""

import tempfile

from focalcal.lab.store import Store
from focalcal.lab.studies import run_spec, spec_of
from focalcal.lab.training import recipe

with tempfile.TemporaryDirectory() as folder:
    store = Store(folder)  # name a folder of your own to keep the runs
    spec = spec_of(recipe("digits_mlp_lite"), "fcl", {"gamma": 2, "lam": 1}, seed=0)
    run = run_spec(spec, store)
    test = run.metrics("test")
    print(f"{spec.name}: error {100 * test['error']:.2f} %, ECE {test['ece']:.4f}, NLL {test['nll']:.4f}")
    print(run.predictions("test"))
    assert run_spec(spec, store).path == run.path  # it is there: nothing is trained
