"""Score decompositions by another library, to twelve digits.

Origin: `model_diagnostics.scoring.decompose` of model-diagnostics 1.5.0 (PyPI) with NumPy 2.4.6 and scikit-learn 1.9.1,
`SquaredError()` and `LogLoss()`, of `golden.inputs.positive_class(1000)` with the probabilities clipped to
[0.001, 0.999], and of the same rounded to one decimal and clipped to [0.05, 0.95].
"""

# (score, miscalibration, discrimination, uncertainty)
DISTINCT = {
    "brier": (0.156947230849046, 0.006518079344187, 0.095601848495141, 0.246031),
    "nll": (0.475177451204253, 0.023522667527245, 0.233533258405710, 0.685188042082719),
}
ROUNDED = {
    "brier": (0.1582, 0.004860288028803, 0.092691288028803, 0.246031),
    "nll": (0.479990318553340, 0.016688960448325, 0.221886683977703, 0.685188042082719),
}
