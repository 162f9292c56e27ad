"""The API reference: one page per public package, with every name of its `__all__`.

A public name without a docstring fails the build.
"""

import importlib
import inspect
import re
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import griffe
import numpy as np
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

PACKAGES = (
    *("losses", "metrics", "posthoc", "auditing", "theory", "predictions", "pages", "stats"),
    *("lab.studies", "lab.studies.tuning", "lab.training", "lab.data", "lab.models", "lab.store"),
    *("lab.report.figures", "lab.report.study_tables"),
)
ADAPTERS = ("hugging_face", "token_scores", "rewards", "lightning")
# Rows of the examples of metrics, as they are shown and computed.
_OF_CLASSES = "[[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.2, 0.6, 0.2]], [0, 1, 1, 1]"
_OF_LABELS = "[[0.9, 0.2], [0.6, 0.7], [0.3, 0.1], [0.8, 0.4]], [[1, 0], [1, 1], [0, 0], [0, 1]]"
_EVENT = "p, y = np.linspace(0.05, 0.95, 40).round(3), np.arange(40) % 3 < np.linspace(0, 3, 40)"
_OF_AN_EVENT = (
    *("auroc", "oe", "slope", "intercept", "citl", "observed_rate", "predicted_rate"),
    *("ici", "e50", "e90", "emax"),
)
_DEEPER = "\n    options: { heading_level: 3 }"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and the changelog of the project's root."""
    warnings.simplefilter("ignore")
    sources = griffe.load("focalcal", search_paths=["src"], resolve_aliases=True)
    undocumented: list[str] = []
    pages = {name: _page(f"focalcal.{name}", sources, undocumented) for name in PACKAGES}
    pages["focalcal"] = _top_level()
    pages["integrations"] = _adapters(sources, undocumented)
    pages["index"] = _index()
    if undocumented:
        raise PluginError(f"public names without a docstring: {', '.join(undocumented)}")
    for name, text in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    with open("CHANGELOG.md") as file:
        files.append(File.generated(config, "changelog.md", content=file.read().replace("](docs/", "](")))
    return files


def _page(package: str, sources: griffe.Module, undocumented: list[str]) -> str:
    module = importlib.import_module(package)
    entries = [_entry(module, name, sources, undocumented) for name in sorted(module.__all__, key=str.lower)]
    return "\n\n".join([f"# {package}", inspect.getdoc(module) or "", *entries]) + "\n"


def _entry(
    module: ModuleType, name: str, sources: griffe.Module, undocumented: list[str], page: ModuleType | None = None
) -> str:
    value, public = getattr(module, name), f"{module.__name__}.{name}"
    if inspect.ismodule(value):
        return "\n\n".join(_entry(value, each, sources, undocumented, module) for each in value.__all__)
    if inspect.isclass(value) or inspect.isfunction(value):
        if not value.__dict__.get("__doc__") and not (inspect.isfunction(value) and value.__doc__):
            undocumented.append(public)
        return f"::: {_path(value)}{_neighbours(page or module, value)}"
    if type(value).__name__ in ("Metric", "MultilabelMetric"):  # their text is computed
        return _metric(module, name, value)
    attribute = sources[public.removeprefix("focalcal.")]
    if attribute.docstring is None:
        undocumented.append(public)
    return f"::: {attribute.canonical_path}\n    options: {{ show_attribute_values: false }}"


def _path(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _neighbours(page: ModuleType, value: Any) -> str:
    """Links to names of the page: those its text has, its file's, its base class's, and those that speak of it."""
    others: dict[str, Any] = {}
    for module in (page, *filter(inspect.ismodule, (getattr(page, name) for name in page.__all__))):
        documented = ((name, getattr(module, name)) for name in module.__all__)
        others |= {n: each for n, each in documented if inspect.isclass(each) or inspect.isfunction(each)}
    text, name = _spoken(value), value.__name__
    bases = {base for base in getattr(value, "__bases__", ()) if base.__module__.startswith("focalcal")}
    kinds: tuple[Callable[[str, Any], object], ...] = (
        lambda n, other: re.search(rf"`{n}\b|-> .*\b{n}\b", text) or re.search(rf"-> .*\b{name}\b", _spoken(other)),
        lambda _, other: other.__module__ == value.__module__,
        lambda _, other: bases & set(getattr(other, "__bases__", ())),
        lambda _, other: re.search(rf"`{name}\b", _spoken(other)),
    )
    alike = dict.fromkeys(n for kind in kinds for n, other in others.items() if other is not value and kind(n, other))
    links = [f"[{n}](#{_path(others[n])})" for n in list(alike)[:8]]
    return f"\n\nSee also {', '.join(links)}." if links else ""


def _spoken(value: Any) -> str:
    """Its docstring and, of a function, its signature."""
    return f"{inspect.getdoc(value) or ''}\n{inspect.signature(value) if inspect.isfunction(value) else ''}"


def _metric(module: ModuleType, name: str, value: Any) -> str:
    """Its call, its text with arguments as a list, an example that is computed here, and its neighbours."""
    text = re.sub(r"^    (?=A float)", "", _listed(value), flags=re.MULTILINE)
    several = hasattr(value, "metric")
    rows = _OF_LABELS if several else "p, y" if name in _OF_AN_EVENT else _OF_CLASSES
    names: dict[str, Any] = {"np": np, "metrics": module}
    given = f">>> {_EVENT}\n" if rows == "p, y" else ""
    exec(_EVENT, names)
    call = f"round(metrics.{name}({rows}), 4)"
    example = f"```pycon\n{given}>>> {call}\n{float(eval(call, names))}\n```"
    family = [n for n in module.__all__ if type(getattr(module, n)) is type(value) and n != name]
    alike = [n for n in family if several or _family(getattr(module, n)) == _family(value)]
    see = ", ".join(f"[{n}](#{module.__name__}.{n})" for n in alike[:8])
    head = f"## {name} {{: #{module.__name__}.{name} }}\n\n```python\n{_call(name, value)}\n```"
    return "\n\n".join([head, text, f"**Example**\n\n{example}", f"See also {see}." if see else ""])


def _family(metric: Any) -> tuple[object, ...]:
    """Metrics of one kind stand beside each other."""
    return metric.by_chance, metric.unit, metric.proportion


def _call(name: str, function: Callable[..., object]) -> str:
    """One line, with the defaults and without the types, which are the same for all metrics."""
    typed = inspect.signature(function).parameters.values()
    call = inspect.Signature([each.replace(annotation=inspect.Parameter.empty) for each in typed])
    return f"{name}{call}".replace(", *, ", ",\n    *, ").replace(", classes=", ",\n    classes=")


def _top_level() -> str:
    """Names that are imported from `focalcal` itself, each of which a package's page documents."""
    import focalcal

    homes = {
        name: package
        for package in PACKAGES
        for name in importlib.import_module(f"focalcal.{package}").__all__
        if name in focalcal.__all__
    }
    homes |= {"ProbabilityWarning": "predictions"}
    missing = set(focalcal.__all__) - set(homes) - {"__version__"}
    if missing:
        raise PluginError(f"names of focalcal that no documented package has: {', '.join(sorted(missing))}")
    rows = [
        f"| `{name}` | [{homes[name]}]({homes[name]}.md) |"
        for name in sorted(focalcal.__all__, key=str.lower)
        if name in homes
    ]
    return "\n".join(
        ["# focalcal", "", inspect.getdoc(focalcal) or "", "", "| name | documented in |", "|---|---|", *rows, ""]
    )


def _adapters(sources: griffe.Module, undocumented: list[str]) -> str:
    parts = ["# Adapters to other libraries"]
    modules = {path: importlib.import_module(f"focalcal.integrations.{path}") for path in ADAPTERS}
    page = ModuleType("integrations")
    for module in modules.values():
        page.__dict__.update(zip(module.__all__, _values(module), strict=True))
    page.__all__ = [name for module in modules.values() for name in module.__all__]  # type: ignore[attr-defined]
    for path, module in modules.items():
        parts += [f"## `{module.__name__}`", inspect.getdoc(module) or ""]
        undocumented += [f"{path}.{name}" for name in module.__all__ if not getattr(module, name).__doc__]
        parts += [f"::: {_path(value)}{_DEEPER}{_neighbours(page, value)}" for value in _values(module)]
    adapters = importlib.import_module("focalcal.integrations.torchmetrics")
    parts += [f"## `{adapters.__name__}`", inspect.getdoc(adapters) or ""]
    parts += [_torchmetric(name, value) for name, value in zip(adapters.__all__, _values(adapters), strict=True)]
    return "\n\n".join(parts) + "\n"


def _values(module: ModuleType) -> list[Any]:
    return [getattr(module, name) for name in module.__all__]


def _torchmetric(name: str, adapter: Any) -> str:
    """Its call, its arguments, an example that is computed here, and the function that it is the class of."""
    import torch

    several = name.startswith("Multilabel")
    rows, labels = eval(_OF_LABELS if several else _OF_CLASSES)
    call = f"{name}({'num_labels=2' if several else 'num_classes=3'})"
    metric = eval(call, {name: adapter})
    metric.update(torch.tensor(rows), torch.tensor(labels))
    value = metric.compute()
    shown = {k: round(float(v), 4) for k, v in value.items()} if isinstance(value, dict) else round(float(value), 4)
    told = f">>> metric = {call}\n>>> metric.update(torch.tensor({rows}), torch.tensor({labels}))\n>>> metric.compute()"
    head = f"### {name} {{: #focalcal.integrations.torchmetrics.{name} }}\n\n```python\n{_call(name, adapter)}\n```"
    function = re.search(r"`focalcal\.metrics\.(\w+)`", adapter.__doc__)
    page = "metrics.md" if function is None else f"metrics.md#focalcal.metrics.{function[1]}"
    see = f"See also [{'summary' if function is None else function[1]}]({page})."
    return "\n\n".join([head, _listed(adapter), f"**Example**\n\n```pycon\n{told}\n{shown}\n```", see])


def _listed(value: Any) -> str:
    """Its docstring, with arguments as a list."""
    text = re.sub(r"^(Args|Returns):$", r"**\1**\n", inspect.getdoc(value) or "", flags=re.MULTILINE)
    return re.sub(r"^    (\w+): ", r"- `\1`: ", text, flags=re.MULTILINE)


def _index() -> str:
    rows = []
    for name in PACKAGES:
        doc = inspect.getdoc(importlib.import_module(f"focalcal.{name}")) or ""
        rows.append(f"| [focalcal.{name}]({name}.md) | {doc.splitlines()[0]} |")
    intro = "Every public name, from the docstrings. [focalcal](focalcal.md) itself has the most used ones."
    return "\n".join(["# API reference", "", intro, "", "| package | holds |", "|---|---|", *rows, ""])
