"""What calibrators of other shapes than a map of logits, and what is made of calibrators, refuse, and how.

What every entry of CALIBRATORS refuses is in tests/contracts/test_refusals_of_calibrators.py.
"""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC, LinearSVC

from focalcal import Predictions, headroom
from focalcal.posthoc import (
    CalibratedModel,
    ConformalSets,
    GroupwiseCalibration,
    HistogramBinning,
    IsotonicCalibration,
    MultilabelCalibration,
    PlattScaling,
    PosteriorRecovery,
    TemperatureScaling,
    VectorScaling,
    label_shift,
    operating_point,
)

DRAWS = np.random.default_rng(0)
Z = 2 * DRAWS.normal(size=(200, 3))
SITE = np.where(DRAWS.random(200) < 0.5, "hard", "easy")
Y = np.argmax(np.where(SITE == "hard", 0.1, 3.0)[:, None] * Z + DRAWS.gumbel(size=Z.shape), 1)
P = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
SURE, RIGHT = P.max(1), P.argmax(1) == Y
SEVERAL = (np.exp(-np.logaddexp(0, -Z)) > DRAWS.random(Z.shape)).astype(int)
SETS, BY_GROUP = ConformalSets(0.2).fit(Z, Y), ConformalSets(0.1, mondrian="group")
GROUPS, LABELWISE = GroupwiseCalibration().fit(Z, Y, groups=SITE), MultilabelCalibration(HistogramBinning())
SCALED, SVM = TemperatureScaling().fit(Z, Y), LinearSVC().fit(Z, Y)
CERTAIN = np.where(np.arange(200)[:, None] == 7, np.eye(3)[(Y[7] + 1) % 3], P)
IS_NAN = np.where(np.arange(200)[:, None] == 7, np.nan, P)

CASES = [
    (lambda: ConformalSets(0.1).fit(Z[:8], Y[:8]), r"alpha must be at least 1 / \(N \+ 1\) = 0.111 .* got 0.1"),
    (lambda: ConformalSets(1.0).fit(Z, Y), "alpha must be between 0 and 1, got 1.0"),
    (lambda: ConformalSets(penalty=-1).fit(Z, Y), "penalty must be finite and >= 0, got -1"),
    (lambda: ConformalSets(free_ranks=1.5).fit(Z, Y), "free_ranks must be a whole number >= 0"),
    (lambda: ConformalSets(0.1, score="lac", penalty=0.1).fit(Z, Y), "penalty is for score='aps'"),
    (lambda: ConformalSets(0.1, mondrian="site").fit(Z, Y), "mondrian must be one of None, 'class'"),
    (lambda: ConformalSets().predict(Z), "not fitted"),
    (lambda: SETS.predict(Z[:, :2]), r"3 columns .* got 2"),
    (lambda: SETS.predict(Z, u=[0.5]), r"u must hold one number in \[0, 1\] per row, 200 in all"),
    (lambda: BY_GROUP.fit(Z, Y), "groups must be given, got None"),
    (lambda: BY_GROUP.fit(Z, Y, groups=SITE[:9]), r"groups must name the group of each of 200 rows, got"),
    (lambda: BY_GROUP.fit(Z, Y, groups=np.stack([SITE] * 2, 1)), "groups must be one column here, got 2"),
    (lambda: BY_GROUP.fit(Z, Y, groups=[None, *SITE[1:]]), "groups must not be missing, got None in row 0"),
    (lambda: BY_GROUP.fit(Z, Y, groups=np.ones(200)), "groups must be text or whole numbers, got float64"),
    (lambda: GroupwiseCalibration().fit(Z, Y), "groups must be given, got None"),
    (lambda: GroupwiseCalibration().fit(Z, Y, groups=SITE[:5]), "groups must name the group of each of 200 rows"),
    (lambda: GroupwiseCalibration().fit(Z, Y, groups={}), "groups must have at least one column, got none"),
    (lambda: GroupwiseCalibration().fit(Z, Y * 0, groups=SITE), "labels must hold at least two classes"),
    (lambda: GroupwiseCalibration().fit(Z[:40], Y[:40], groups=SITE[:40]), "at least 50 rows for groups"),
    (lambda: GroupwiseCalibration(folds=1).fit(Z, Y, groups=SITE), "folds must be a whole number >= 2"),
    (lambda: GroupwiseCalibration("platt").fit(Z, Y, groups=SITE), "calibrator must be one such as"),
    (lambda: GROUPS.predict_proba(Z, groups={"site": SITE}), "groups must have the columns of the fit"),
    (lambda: headroom(probs=P, labels=Y, score="ece"), "score must be"),
    (lambda: headroom(probs=P[:50], labels=Y[:50]), "at least 100 rows"),
    (lambda: headroom(probs=CERTAIN, labels=Y, candidates="vector"), "got 0 in 1 rows, whose NLL is inf"),
    (lambda: label_shift(P[Y < 2], Y[Y < 2], P), "labels_source must name every class, got no row"),
    (lambda: label_shift(P, Y, P[:, 0]), "probs_target must have the classes of the source in 3"),
    (lambda: label_shift(P, Y, P, calibrator=VectorScaling), "calibrator must be one such as"),
    (lambda: label_shift(P, Y, P, resamples=5), "resamples must be a whole number >= 20"),
    (lambda: label_shift(P, Y, IS_NAN), "row 7"),
    (lambda: MultilabelCalibration(PlattScaling(), shared="no").fit(Z, SEVERAL), "shared must be True or False"),
    (lambda: LABELWISE.fit(Z, np.where([0, 1, 0], 1, SEVERAL)), "got only 1 for label 1; leave it out"),
    (lambda: LABELWISE.fit(Z, SEVERAL[:, :2]), "labels must have the shape of logits"),
    (lambda: LABELWISE.fit(Predictions(logits=Z, labels=Y, split="val")), "alone"),
    (lambda: LABELWISE.fit(Z, SEVERAL).predict_proba(Z[:, :2]), r"logits must be \(N, 3\), one column"),
    (lambda: CalibratedModel(LogisticRegression(), SCALED).fit(Z, Y), "not fitted"),
    (lambda: CalibratedModel(SVM, SCALED).predict(Z), "not fitted"),
    (lambda: CalibratedModel(SVM, SCALED, method="predict_proba").fit(Z, Y), "or have predict_proba, got L"),
    (lambda: CalibratedModel(SVM, SCALED, method="logits").fit(Z, Y), "method must be one of 'auto'"),
    (lambda: CalibratedModel(SVC(decision_function_shape="ovo").fit(Z, Y), SCALED).fit(Z, Y), "one score per class"),
    (lambda: CalibratedModel(SVM, SCALED).fit(Z[:3], [0, 1, 7]), "7"),
    (lambda: IsotonicCalibration().fit(probs=SURE, labels=RIGHT).to_sql("p"), "and beta maps, got Iso"),
    (lambda: PosteriorRecovery(gamma=1.0).to_sql("p"), "and beta maps, got PosteriorRecovery"),
    (lambda: PlattScaling().fit(Z, Y).to_sql("p"), "for two classes and one column of scores, got a"),
    (lambda: TemperatureScaling(temperature=2.0).to_sql(""), "column must be the name of the column"),
    (lambda: SCALED.predict_proba(probs=SURE), r"probs must be \(N, K\)"),
    (lambda: SCALED.predict_proba(Z, confidence=SURE), "confidence takes the place of logits and probs"),
    (lambda: PlattScaling().fit(Z, Y, confidence=SURE, correct=RIGHT), "confidence and correct take the place"),
    (lambda: PlattScaling().fit(confidence=SURE), "confidence and correct belong together"),
    (lambda: operating_point(P, Y), "logits must not be probabilities"),
    (lambda: operating_point(Z[:99], Y[:99]), r"at least 100 rows, got 99; .* pass more held-out rows"),
    (lambda: operating_point(Z, Y * 0), "at least two classes, got one class only"),
    (lambda: operating_point(Z, Z.argmax(1)), r"best temperature .* got 0.001: every label .*; check the labels"),
    (lambda: operating_point(Z, Z.argmin(1)), r"best temperature .* got 1000: .* less than nothing"),
    (lambda: operating_point(Z, Z.argmax(1), trained_with=(2.0, 1.0)), r"best temperature .* got 0.001: every label"),
    (lambda: operating_point(Z, Y, trained_with=3.0), r"trained_with must be the pair \(gamma, lam\)"),
    (lambda: operating_point(Z, Y, gamma=-1.0), "gamma"),
    (lambda: operating_point(Z, Y, resamples=1), "resamples must be a whole number >= 20"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::focalcal.ProbabilityWarning")
@pytest.mark.parametrize(("call", "message"), CASES, ids=range(len(CASES)))
def test_refused(call, message):
    with pytest.raises((TypeError, ValueError, NotFittedError), match=message):
        call()
