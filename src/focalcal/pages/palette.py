"""Colours, markers and dashes that tell lines apart, in figures and on pages alike.

The nine colours differ by more than 25 (CIE 1976) from each other for normal, protanope and deuteranope sight, and have
a contrast of 3 at least with the ground they are drawn on; markers and dashes tell them apart without colour.
"""

from __future__ import annotations

from dataclasses import dataclass

LIGHT = ("#1b1f24", "#001f94", "#00a490", "#7d69f4", "#a25f42", "#6a97d0", "#412700", "#851a70", "#d24e00")
DARK = ("#f2f2f2", "#2175fd", "#53eb96", "#9793eb", "#f7f235", "#d1cbff", "#90774d", "#c66b9e", "#ff7a33")
MARKERS = ("circle", "square", "up", "diamond", "down", "plus", "cross", "left", "right", "star")
DASHES = ((), (6, 2.5), (6, 2.5, 1.5, 2.5), (1.5, 2))  # of a line, in points or pixels


@dataclass(frozen=True)
class Look:
    """How a line is drawn: its place in the palette, its marker and the dashes of its lines."""

    place: int
    marker: str
    dash: tuple[float, ...]

    @property
    def light(self) -> str:
        """The colour on a light ground, and on paper."""
        return LIGHT[self.place]


def numbered_look(number: int) -> Look:
    """Of the nth of lines that are no objectives."""
    place, turn = number % len(LIGHT), number // len(LIGHT)
    marker = MARKERS[number % len(MARKERS)]  # ten of them beside nine colours: 90 pairs, the first ten all different
    return Look(place, marker, DASHES[(place + turn) % len(DASHES)])


def palette_css() -> str:
    """The objectives' colours as custom properties, --o0 and so on, on light and on dark ground."""
    rules = {":root": LIGHT, ':root[data-colours="dark"]': DARK}
    return "".join(
        f"{selector} {{ {' '.join(f'--o{place}: {colour};' for place, colour in enumerate(colours))} }}\n"
        for selector, colours in rules.items()
    )
