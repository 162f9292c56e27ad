"""What each number means, in a sentence: shown wherever one stands."""

from __future__ import annotations

from focalcal.analysis.metric_names import title, titled

METRICS = {
    "error": "Error: the share of test rows whose most probable class is not the label.",
    "ece": "Expected calibration error: the gap between confidence and accuracy in 15 bins of equal width, averaged "
    "over the rows. Never 0 on finite data: chance alone opens gaps.",
    "adaptive_ece": "Adaptive ECE: as ECE, in 15 bins that hold equally many rows.",
    "classwise_ece": "Classwise ECE: as ECE, of the probability of each class, averaged over the classes.",
    "smooth_ece": "Smooth ECE: the gap between confidence and accuracy, smoothed by a kernel instead of binned.",
    "mce": "Maximum calibration error: the largest gap of a bin, however few its rows.",
    "nll": "Negative log-likelihood: the mean of -log of the label's probability, in nats. A proper score.",
    "brier": "Brier score: the mean squared distance of the probabilities from the one-hot label. A proper score.",
    "auroc": "Area under the ROC curve: how often a positive scores above a negative. More is better.",
    "confidence_gap": "Mean confidence minus accuracy: above 0 is overconfident, below 0 underconfident.",
    "posterior_distance": "Mean total variation between the probabilities and the true posterior, which is known here.",
    "confidence_distance": "Mean distance of the confidence from the true probability of the predicted class.",
    "posterior_ece": "Calibration error against the true posterior instead of labels.",
}
TERMS = {
    "seed": "One training run: weights, order and augmentation drawn anew, the examples the same.",
    "interval": "95 % bootstrap interval over test rows, its ends averaged over the seeds: how far the number would "
    "move with other test examples. It is no test of a difference.",
    "chance": "What a perfectly calibrated model with these confidences shows by chance on as many rows, on average.",
    "temperature": "T divides the logits; it minimises the NLL of rows that are not measured. T > 1: overconfident.",
    "holm": "p after Holm's correction over the metrics of one setting and baseline.",
    "d_z": "Cohen's d_z: the mean difference over the standard deviation of the differences.",
}
MEANINGS = {  # by what stands above a column
    **{heading: text for name, text in METRICS.items() for heading in (title(name), titled(name))},
    **{f"{titled(name)} {when}": text for name, text in METRICS.items() for when in ("before", "after")},
    "T": TERMS["temperature"],
    "d_z": TERMS["d_z"],
    "p (Holm)": TERMS["holm"],
    "seeds": TERMS["seed"],
}
