"""How figures look, and how they are written: journal width, colours that colour-blind readers tell apart."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from focalcal.core.extras import required
from focalcal.pages import palette

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TEXT_WIDTH = 7.2  # inches: two columns of a journal
COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#000000")  # Okabe and Ito, without yellow
GUIDE = "#777777"
BAND = "#dfe3e8"  # of what chance gives
GAMMA, LAM, ETA = "\N{GREEK SMALL LETTER GAMMA}", "\N{GREEK SMALL LETTER LAMDA}", "\N{GREEK SMALL LETTER ETA}"
MARKERS = dict(zip(palette.MARKERS, ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*"), strict=True))
PANEL = 26  # letters of a title above one of three panels abreast
SMALLEST = 7  # points, at the printed size

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
    "figure.autolayout": False,
    "figure.constrained_layout.use": False,  # `drawing` says when
    "svg.hashsalt": "focalcal",  # else the names inside an SVG are random
}
_UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}


@contextmanager
def drawing(height: float, *, width: float = TEXT_WIDTH) -> Iterator[Figure]:
    """An empty figure of that size in inches, to be filled inside the block; nothing of pyplot's state is touched."""
    matplotlib = required("matplotlib", purpose="A figure")
    figure_class = required("matplotlib.figure", purpose="A figure").Figure
    with matplotlib.rc_context(STYLE):
        figure: Figure = figure_class(figsize=(width, height), layout="constrained")
        yield figure
        for axes in figure.axes:
            axes.tick_params(labelsize=SMALLEST)  # ticks are made when they are drawn, perhaps outside of the block
        figure.draw_without_rendering()
        figure.set_layout_engine(None)  # the places just found are kept, for every form alike, and not sought again


def new_axes(width: float, height: float) -> Axes:
    """Of a new figure of pyplot, which a notebook or `plt.show()` displays; the size is in inches."""
    figure = required("matplotlib.pyplot", purpose="A figure").figure(figsize=(width, height), layout="constrained")
    axes: Axes = figure.add_subplot()
    return axes


def whole_numbers(axes: Axes) -> None:
    """Ticks of the x axis at whole numbers alone."""
    locator = required("matplotlib.ticker", purpose="A figure").MaxNLocator
    axes.xaxis.set_major_locator(locator("auto", steps=[1, 2, 5, 10], integer=True))


def line_style(look: palette.Look) -> dict[str, Any]:
    """A line's colour, dashes and marker in matplotlib's words; dashes are in points of a line 1.1 wide."""
    dash = tuple(length * 0.7 for length in look.dash)
    return {"color": look.light, "linestyle": (0, dash) if dash else "-", "marker": MARKERS[look.marker]}


def plain(text: str, *, longest: int | None = None) -> str:
    """A name from outside as matplotlib shows it unchanged; of one that is too long, the middle is left out.

    Dollar signs would begin a formula, a leading underscore would hide the name in a legend, and what cannot be
    printed has no glyph.
    """
    shown = _readable(text, longest).replace("$", r"\$")
    return f" {shown}" if shown.startswith("_") else shown


def _readable(text: str, longest: int | None) -> str:
    """With question marks for what cannot be printed, line ends among them; no longer than `longest`."""
    shown = "".join(character if character.isprintable() else "?" for character in text)
    if longest is None or len(shown) <= longest:
        return shown
    tail = (longest - 1) // 2
    return f"{shown[: longest - 1 - tail]}…{shown[len(shown) - tail :]}"


def headed(figure: Figure, title: str, note: str = "", *, handles: Sequence[Artist] = ()) -> None:
    """What is shown above the panels; below them a legend and what a reader must know. Names may be from outside."""
    width, height = figure.get_size_inches()
    top = _lines(_readable(title, int(22 * width)), int(12.5 * width))
    below = _lines(_readable(note, None), int(15.5 * width))
    under = 0.06 + 0.125 * len(below)
    across = max(1, min(len(handles), int(width / 1.7)))
    keyed = under + (0.16 * -(-len(handles) // across) + 0.06 if handles else 0.0)
    over = 0.08 + 0.155 * len(top)
    figure.text(0.5, 1 - 0.05 / height, "\n".join(top), ha="center", va="top", fontsize=9)
    figure.text(0.5, 0.05 / height, "\n".join(below), ha="center", va="bottom", fontsize=SMALLEST, color="#444444")
    if handles:
        place = (0.5, under / height)
        figure.legend(handles=list(handles), loc="lower center", bbox_to_anchor=place, ncols=across, borderpad=0.1)
    engine: Any = figure.get_layout_engine()
    engine.set(rect=(0, keyed / height, 1, 1 - (keyed + over) / height))


def _lines(text: str, longest: int) -> list[str]:
    return [plain(line) for line in textwrap.wrap(text, max(10, longest))]


@dataclass(frozen=True)
class PanelGrid:
    """How a number of panels is laid out: three abreast, or four if there are more than nine, to fit a page."""

    number: int

    @property
    def columns(self) -> int:
        """Abreast."""
        return min(self.number, 3 if self.number <= 9 else 4)

    @property
    def rows(self) -> int:
        """One above the other."""
        return -(-self.number // self.columns)

    @property
    def width(self) -> float:
        """In inches: the text's, or less for one panel or two."""
        return max(3.8, TEXT_WIDTH * min(1.0, self.columns / 3))

    @property
    def row(self) -> float:
        """The share of a row's height that is left: narrow panels are lower."""
        return 1.0 if self.columns <= 3 else 0.82

    @property
    def letters(self) -> int:
        """Of a panel's title."""
        return PANEL if self.columns <= 3 else PANEL * 3 // 4 - 1

    def axes(self, figure: Figure, *, x: str, y: str) -> list[Axes]:
        """One per panel; `x` and `y` name the axes along the lower and the left edge."""
        shown = panels(figure, self.number, across=self.columns)
        for place, axes in enumerate(shown):
            if place % self.columns == 0:
                axes.set_ylabel(y)
            if place + self.columns >= self.number:
                axes.set_xlabel(x)
        return shown


def panels(figure: Figure, number: int, *, across: int, **options: Any) -> list[Axes]:
    """That many axes in rows of at most `across`; no empty ones are left."""
    columns = min(number, across)
    grid = figure.subplots(-(-number // columns), columns, squeeze=False, **options)
    every = list(grid.flat)
    for axes in every[number:]:
        axes.remove()
    return every[:number]


def rendered(figure: Figure, form: str) -> bytes:
    """The figure as "pdf", "png" (300 dots an inch) or "svg": equal figures give equal bytes."""
    if form not in _UNDATED:
        raise ValueError(f"form must be one of {', '.join(_UNDATED)}, got {form!r}; choose one of them")
    matplotlib = required("matplotlib", purpose="A figure")
    out = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format=form, dpi=300, metadata=_UNDATED[form])
    return out.getvalue()
