"""The page kit: every HTML page of the package is a `Page` of sections, one file that needs no network.

    from focalcal.pages.page import Page, Section, html_table, render

    body = html_table("groups", "Error by group", table, "Rows of the test set.")
    page = Page(title="An audit", sections=[Section("groups", "Groups", body)], tables={"groups": table})
    Path("audit.html").write_text(page.html(), encoding="utf-8")

A page has the theme (light, dark, or as the system is), sticky navigation, tables that sort and download, definitions
on hover, and prints. Charts are SVG drawn by scripts: put `chart("id", "what it shows")` of kit/parts.html.j2 into a
section's template, name the script in `scripts`, and let it call `Charts.add("id", draw)` (kit/charts.js says what draw
gets and gives) and, last, `Kit.start()`. The scripts of the kit, loaded before those of a page:

    Svg       elements, paths, numbers as text, marks           State     what is chosen, in the address
    Axes      scales, round numbers, axes                       Downloads CSV, SVG, PNG
    Charts    drawing when in sight, numbers beside, files      Theme, Sorting, Tips, Kit (Kit.data is the page's data)

A page that draws means with their intervals names kit/intervals.js and kit/marks.css as well.

A page's Content-Security-Policy names the hash of each of its scripts, so that a browser runs these and no others, from
a file as from a server: attributes such as `onclick` do nothing, and neither do `eval` and scripts that scripts add.

All text is escaped unless it is markupsafe's Markup, which `render` and `html_table` return.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal import __version__
from focalcal.core.extras import required

if TYPE_CHECKING:
    from markupsafe import Markup

    from focalcal.pages.tables import Table

THEME = "kit/theme.js"  # before anything is painted
SCRIPTS = tuple(f"kit/{name}.js" for name in ("svg", "axes", "state", "tips", "downloads", "tables", "charts", "start"))
STYLES = ("kit/kit.css",)
PRINT_STYLE = "kit/print.css"
_HIGH = 40  # rows of a table that scrolls
_SIGNS = {
    r"(?<![\w.])-(?=[\d.])|(?<=\de)-(?=\d)|(?<= )-(?= )": "\N{MINUS SIGN}",
    r"(?<=\d) x (?=\d)": " \N{MULTIPLICATION SIGN} ",
    r">=": "\N{GREATER-THAN OR EQUAL TO}",
    r"<=": "\N{LESS-THAN OR EQUAL TO}",
    r"Cal2\^2": "Cal\N{SUBSCRIPT TWO}\N{SUPERSCRIPT TWO}",
    r"\|_inf": "|\N{INFINITY}",
    r"(?<=\d) (?=%)": "\N{NO-BREAK SPACE}",
    r" (\N{PLUS-MINUS SIGN}) (?=\d)": "\N{NO-BREAK SPACE}\\1\N{NO-BREAK SPACE}",
}


@dataclass(frozen=True)
class Section:
    """A part of a page.

    name     its anchor, a word
    heading  what stands above it, and in the navigation unless `link` is shorter
    body     HTML, of `render` or `html_table`; a plain string is escaped
    quiet    whether the heading is for screen readers alone
    """

    name: str
    heading: str
    body: Markup | str
    link: str = ""
    quiet: bool = False


@dataclass(frozen=True)
class Page:
    """One self-contained HTML file.

    data     what its scripts read as `Kit.data`: anything that JSON has, and NaN and the infinities as their names
    tables   those that can be downloaded, by the name that `html_table` was given
    scripts  files of templates (`template`) that follow the kit's, the last of which calls `Kit.start()`
    styles   files of templates, or (rules) CSS itself
    lead     what stands below the title
    meta     <meta> elements by name
    asks     whether its scripts ask the server that it comes from, as those of a live page do
    """

    title: str
    sections: Sequence[Section]
    data: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, Table] = field(default_factory=dict)
    scripts: Sequence[str] = ("kit/only.js",)
    styles: Sequence[str] = ()
    lead: Markup | str = ""
    meta: Mapping[str, str] = field(default_factory=dict)
    asks: bool = False

    def html(self) -> str:
        """The file's text; equal pages give the same."""
        if not self.sections:
            raise ValueError("sections must hold one at least, got none; a page without content is no page")
        csv = {name: table.csv() for name, table in self.tables.items()}
        theme, *scripts = [f"\n{template(name)}" for name in (THEME, *SCRIPTS, *self.scripts)]
        styles = [text if "{" in text else template(text) for text in (*STYLES, *self.styles, PRINT_STYLE)]
        text: str = (
            _environment()
            .get_template("kit/page.html.j2")
            .render(
                title=self.title,
                version=__version__,
                meta={"generator": f"focalcal {__version__}", **self.meta},
                sections=self.sections,
                lead=self.lead,
                styles=[_markup(style) for style in styles],
                policy=_markup(_policy([theme, *scripts], asks=self.asks)),
                theme=_markup(theme),
                scripts=[_markup(script) for script in scripts],
                data=_markup(inert_json({**self.data, "tables": csv})),
            )
        )
        return text.strip() + "\n"


def render(name: str, /, **context: Any) -> Markup:
    """A template, filled in; kit/parts.html.j2 has macros for it."""
    return _markup(_environment().get_template(name).render(**context))


def html_table(
    name: str,
    caption: str,
    table: Table,
    note: str = "",
    *,
    links: Sequence[str] | None = None,
    names: Mapping[str, str] | None = None,
    meanings: Mapping[str, str] | None = None,
    quiet: bool = False,
    every_column: bool = False,
) -> Markup:
    """A table that sorts and, if the page has it among its `tables`, downloads as CSV.

    A column with one value in all of several rows is left out, unless `every_column` is to be kept, and its value, if
    it is one, is said in the caption.

    links     the anchors that the first column leads to
    names     what keys such as `ce` are shown as, where a cell or heading is exactly such a key
    meanings  what a heading's numbers mean, shown on hover
    quiet     whether the caption is for screen readers alone, as where a heading says the same
    """
    shown = names or {}
    shared = {} if every_column else constant_columns(table)
    if links:
        shared.pop(next(iter(table.columns)), None)
    if len(shared) == len(table.columns):
        shared = {}
    if shared:
        constants = [f"{heading} {shown.get(text, text)}" for heading, text in shared.values() if text != table.missing]
        caption += f" ({', '.join(constants)})" if constants else ""
    numeric, bold, texts = table.numeric, table.bold_rows(), table.rows()
    values = [list(column) for column in table.columns.values()]
    kept = [at for at, column in enumerate(table.columns) if column not in shared]
    rows = [
        [
            {
                "text": shown.get(texts[row][at], texts[row][at]),
                "right": numeric[at],
                "bold": bold[row][at],
                "value": _exact(values[at][row]) if numeric[at] else None,
            }
            for at in kept
        ]
        for row in range(len(texts))
    ]
    titles = table.titles
    headings = [
        {"text": shown.get(titles[at], titles[at]), "right": numeric[at], "meaning": (meanings or {}).get(titles[at])}
        for at in kept
    ]
    return render(
        "kit/table.html.j2",
        name=name,
        caption=caption,
        headings=headings,
        rows=rows,
        note=note,
        links=links,
        quiet=quiet and not shared,
        high=len(rows) > _HIGH,
    )


def constant_columns(table: Table) -> dict[str, tuple[str, str]]:
    """The columns whose cells are all the same text, by name: heading and text; none of a table of one row."""
    rows = table.rows()
    if len(rows) < 2:
        return {}
    columns = zip(table.columns, table.titles, zip(*rows, strict=True), strict=True)
    return {name: (title, cells[0]) for name, title, cells in columns if len(set(cells)) == 1}


def typeset(text: Any) -> str:
    """The signs that plain text does without; no line breaks at a minus sign before a digit or around ±.

    >>> typeset("|q* - eta|_inf over lam >= 16: -0.9, of 36 x 40 with Cal2^2 <= 3e-6, by 2026-11-16")
    '|q* − eta|∞ over lam ≥ 16: −0.9, of 36 × 40 with Cal₂² ≤ 3e−6, by 2026-11-16'
    """
    shown = str(text)
    for plain, sign in _SIGNS.items():
        shown = re.sub(plain, sign, shown)
    return shown


@cache
def template(name: str) -> str:
    """The text of "kit/NAME", a file of this kit, or of "PACKAGE/NAME", a file in the `templates` of that package."""
    package, _, path = name.partition("/")
    home = files(__package__).joinpath("templates", "kit") if package == "kit" else files(package).joinpath("templates")
    return home.joinpath(*path.split("/")).read_text(encoding="utf-8")


def inert_json(data: Any) -> str:
    """JSON that cannot end the script element it stands in; NaN and the infinities are the strings JavaScript reads.

    >>> inert_json({"</script>": float("nan")})
    '{"\\\\u003c/script>":"NaN"}'
    """
    return json.dumps(_plain(data), allow_nan=False, separators=(",", ":"), default=str).replace("<", "\\u003c")


def number_or_name(value: float) -> float | str:
    """The number, or what JavaScript calls it where JSON has none."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _policy(scripts: Sequence[str], *, asks: bool) -> str:
    """These scripts and no others, and nothing from elsewhere. Styles are free: charts set the style of their marks."""
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    connections = "connect-src 'self'; " if asks else ""
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"{connections}base-uri 'none'; form-action 'none'"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    return number_or_name(value) if isinstance(value, float) else value


def _exact(value: Any) -> float | str | None:
    """The number itself, which the shown digits are too few to sort by."""
    return None if value is None or math.isnan(value) else number_or_name(float(value))


@cache
def _environment() -> Any:
    jinja = required("jinja2", purpose="A page")
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, loader=jinja.FunctionLoader(template)
    )
    environment.filters["typeset"] = typeset
    return environment


def _markup(text: str) -> Markup:
    made: Markup = required("markupsafe", purpose="A page").Markup(text)
    return made
