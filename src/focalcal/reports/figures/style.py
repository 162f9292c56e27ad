"""How figures look, and how they are written: journal width, colours that colour-blind readers tell apart."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from focalcal.reports.extras import required

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEXT_WIDTH = 7.2  # inches: two columns of a journal
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#000000")  # Okabe and Ito, without yellow
GUIDE = "#777777"

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that every machine draws the same
    "font.size": 7.5,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "focalcal",  # else the names inside an SVG are random
}
_UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


def rendered(figure: Figure, form: str) -> bytes:
    """The figure as "pdf", "png" (300 dots an inch) or "svg": equal figures give equal bytes."""
    if form not in _UNDATED:
        raise ValueError(f"form must be one of {', '.join(_UNDATED)}, got {form!r}; choose one of them")
    matplotlib = required("matplotlib", purpose="A figure")
    out = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format=form, dpi=300, metadata=_UNDATED[form])
    return out.getvalue()
