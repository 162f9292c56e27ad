"""Write a run of HELM 0.5.16: `python make_helm.py`, with crfm-helm.

Its model answers A or B with drawn probabilities.
"""

import json
import math
import random
import shutil
import sys
import tempfile
from pathlib import Path

from helm.benchmark import run
from helm.clients.simple_client import SimpleClient
from helm.common.request import GeneratedOutput, RequestResult, Token

HERE = Path(__file__).parent / "helm"
KEPT = ("max_prob", "exact_match", "quasi_exact_match", "ece_1_bin", "ece_10_bin")


def answer(self, request):
    draw = random.Random(request.prompt)
    logprob = math.log(draw.uniform(0.5, 0.99))
    token = Token(text=draw.choice("AB"), logprob=logprob)
    output = GeneratedOutput(text=token.text, logprob=logprob, tokens=[token])
    return RequestResult(success=True, cached=False, request_time=0.0, completions=[output], embedding=[])


SimpleClient.make_request = answer
with tempfile.TemporaryDirectory() as folder:
    options = {"--run-entries": "simple_mcqa:model=simple/model1", "--suite": "s", "--max-eval-instances": "40"}
    own = {"--output-path": f"{folder}/out", "--local-path": f"{folder}/local", "--num-threads": "1"}
    sys.argv = ["helm-run", *(word for pair in (options | own).items() for word in pair)]
    run.main()
    (made,) = Path(folder).glob("out/runs/s/simple_mcqa*")
    where = HERE / "simple_mcqa"
    where.mkdir(parents=True, exist_ok=True)
    shutil.copy(made / "run_spec.json", where)
    rows = json.loads((made / "per_instance_stats.json").read_text())
    for row in rows:  # what the reader does not look at, and is most of the file
        row["stats"] = [one for one in row["stats"] if one["name"]["name"] in KEPT]
    (where / "per_instance_stats.json").write_text(json.dumps(rows))
    stats = [one for one in json.loads((made / "stats.json").read_text()) if one["name"]["name"] in KEPT]
    (where / "stats.json").write_text(json.dumps(stats))
