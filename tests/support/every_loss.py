"""The entries of LOSSES, and some of them with options, by what they take."""

from functools import partial

from focalcal.losses import LOSSES as REGISTRY

OPTIONS = {
    "fcl, matched": ("fcl", {"scale": "matched"}),
    "focal, matched": ("focal", {"scale": "matched"}),
    "brier, matched": ("brier", {"scale": "matched"}),
    "multilabel_fcl, matched": ("multilabel_fcl", {"scale": "matched"}),
    "ce, smooth": ("ce", {"label_smoothing": 0.1}),
    "fcl, smooth": ("fcl", {"label_smoothing": 0.1}),
    "brier, smooth": ("brier", {"label_smoothing": 0.1}),
    "focal, both": ("focal", {"scale": "matched", "label_smoothing": 0.1}),
}
LOSSES = REGISTRY | {name: partial(REGISTRY[loss], **options) for name, (loss, options) in OPTIONS.items()}

EVERY = sorted(LOSSES)
SMOOTH = [name for name in EVERY if name == "ls" or "label_smoothing" in OPTIONS.get(name, ("", {}))[1]]
SINGLE = [name for name in EVERY if not name.startswith("multilabel")]
MULTI = [name for name in EVERY if name.startswith("multilabel")]
# Their weight carries no gradient, so that what they hand back is the derivative of no value.
DETACHED = ["bsce_gra"]
PER_EXAMPLE = [name for name in EVERY if name != "mmce"]
# The expectation over a soft target has no sense for these.
HARD_ONLY = [name for name in SINGLE if name in ("adafocal", "bsce_gra", "dual_focal", "flsd53", "mmce")]
SOFT = [name for name in SINGLE if name not in HARD_ONLY]
