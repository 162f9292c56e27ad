"""What objectives are called and how they look, in figures and on pages alike.

An objective has the same colour, marker and dashes wherever it is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from focalcal.pages.palette import Look, numbered_look

# As the paper has them, then others.
ORDER = ("ce", "focal", "brier", "mmce", "ls", "flsd53", "dual_focal", "adafocal", "fcl", "bsce_gra")
_SAME = {"multilabel_bce": "ce", "multilabel_focal": "focal", "multilabel_fcl": "fcl"}  # their looks
NAMES = {
    "ce": ("Cross-entropy", "Cross-entropy, the log loss"),
    "focal": ("Focal", "Focal loss (Lin et al. 2017)"),
    "brier": ("Brier", "Brier score, the squared error of the probabilities"),
    "mmce": ("MMCE", "Cross-entropy with the maximum mean calibration error (Kumar et al. 2018)"),
    "ls": ("Label smoothing", "Cross-entropy with smoothed labels (Szegedy et al. 2016)"),
    "flsd53": ("FLSD-53", "Focal loss, gamma 5 where p < 0.2, else 3 (Mukhoti et al. 2020)"),
    "dual_focal": ("Dual focal", "Dual focal loss (Tao et al. 2023)"),
    "adafocal": ("AdaFocal", "Focal loss, gamma steered by the validation split (Ghosh et al. 2022)"),
    "fcl": ("FCL", "Focal Calibration Loss: focal loss plus lam times the Brier score"),
    "bsce_gra": ("BSCE-GRA", "Cross-entropy, its gradient weighted by the Brier score (Lin et al. 2025)"),
    "multilabel_bce": ("Binary cross-entropy", "Binary cross-entropy, one per label"),
    "multilabel_focal": ("Focal", "Binary focal loss, one per label"),
    "multilabel_fcl": ("FCL", "Focal Calibration Loss, one per label"),
}


def base_name(objective: str) -> str:
    """`fcl` of `fcl lam=0.5`."""
    return objective.partition(" ")[0]


def short_name(objective: str) -> str:
    """For charts and tables; options stay, and a name that is not known is shown as it is.

    >>> short_name("fcl lam=0.5"), short_name("mine")
    ('FCL lam=0.5', 'mine')
    """
    return _name(objective, 0, " ")


def full_name(objective: str) -> str:
    """What it is, with its options."""
    return _name(objective, 1, ", ")


def _name(objective: str, kind: int, between: str) -> str:
    """A label of somebody's own, which has no options behind a known name, stays as it is."""
    name, *options = objective.split(" ")
    known = name in NAMES and all("=" in option for option in options)
    return between.join([NAMES[name][kind], " ".join(options)][: 1 + bool(options)]) if known else objective


def looks(objectives: Iterable[str] | Mapping[str, str]) -> dict[str, Look]:
    """By objective; of a mapping, by label, the values being the losses.

    A known one has its own look, or else the first variant of it; others take those that are left, then begin again
    with other markers and dashes: 90 differ.
    """
    losses = objectives if isinstance(objectives, Mapping) else {name: base_name(name) for name in objectives}
    listed = list(losses)
    taken: dict[str, int] = {}
    for objective in sorted(listed, key=lambda objective: " " in objective):  # without options first
        base = _SAME.get(losses[objective], losses[objective])
        if base in ORDER and ORDER.index(base) not in taken.values():
            taken[objective] = ORDER.index(base)
    free = (number for number in range(len(listed) + len(ORDER)) if number not in taken.values())
    for objective in listed:
        if objective not in taken:
            taken[objective] = next(free)
    return {objective: numbered_look(taken[objective]) for objective in listed}
