"""Calibrators need NumPy; torch is for who asks for a module."""

import subprocess
import sys

WITHOUT_TORCH = """
import sys
class NoTorch:  # as if it were not installed
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, NoTorch())
import numpy as np
from focalcal.posthoc import CALIBRATORS, CalibratedModel, ConformalSets, MultilabelCalibration, TemperatureScaling
from focalcal.posthoc import operating_point
from sklearn.linear_model import LogisticRegression
generator = np.random.default_rng(0)
logits = generator.normal(size=(300, 3)) * 2
labels = (logits / 1.5 + generator.gumbel(size=(300, 3))).argmax(1)
for kind in CALIBRATORS.values():
    probs = kind().fit(logits, labels).predict_proba(logits)
    assert type(probs) is np.ndarray and np.allclose(probs.sum(1), 1), kind
ConformalSets().fit(logits, labels).evaluate(logits, labels)
MultilabelCalibration(TemperatureScaling()).fit(logits, labels[:, None] == np.arange(3)).predict(logits)
CalibratedModel(LogisticRegression().fit(logits, labels), TemperatureScaling()).fit(logits, labels).predict(logits)
operating_point(2 * logits, labels, resamples=20)
try:
    TemperatureScaling().fit(logits, labels).to_module()
except ModuleNotFoundError as error:
    print(error)
"""


def test_every_calibrator_works_without_torch():
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_TORCH]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("to_module() needs the package torch: pip install")
