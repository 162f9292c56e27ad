"""The expression that `to_sql` writes, run by a database, is what `predict_proba` gives."""

import duckdb
import numpy as np
import pytest

from focalcal.posthoc import BetaCalibration, PlattScaling, TemperatureScaling

DRAWS = np.random.default_rng(0)
ODDS = 3 * DRAWS.normal(size=2000)
PROBS = 1 / (1 + np.exp(-ODDS))
RIGHT = (DRAWS.random(2000) < 1 / (1 + np.exp(0.4 - ODDS / 2))).astype(int)


def computed(expression, column, values):
    table = f"(SELECT UNNEST(?) AS {column})"
    return duckdb.sql(f"SELECT {expression} AS found FROM {table}", params=[values.tolist()]).fetchnumpy()["found"]


@pytest.mark.parametrize("kind", ["probs", "logits"])
@pytest.mark.parametrize("calibrator", [TemperatureScaling(), PlattScaling(), BetaCalibration()], ids=repr)
def test_a_database_gives_the_same_probabilities(calibrator, kind):
    scores = PROBS if kind == "probs" else ODDS
    fitted = calibrator.fit(labels=RIGHT, **{kind: scores})
    ends = [0.0, 1e-300, 0.5, 1 - 1e-16, 1.0] if kind == "probs" else [-60.0, -2e-9, 0.0, 60.0]
    asked = np.r_[scores[:200], ends]
    found = computed(fitted.to_sql('"my score"', kind=kind), '"my score"', asked)
    np.testing.assert_allclose(found, fitted.predict_proba(**{kind: asked})[:, 1], rtol=1e-9)


def test_extreme_scores_do_not_overflow():
    expression = TemperatureScaling(temperature=1e-3).to_sql("z", kind="logits")
    np.testing.assert_allclose(computed(expression, "z", np.array([-1e300, 0.0, 1e300])), [0, 0.5, 1], atol=1e-300)
