"""The API reference: one page per public package, with every name of its `__all__`.

A public name without a docstring fails the build.
"""

import importlib
import inspect
import warnings
from collections.abc import Callable
from types import ModuleType
from typing import Any

import griffe
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

PACKAGES = (
    *("losses", "metrics", "posthoc", "auditing", "theory", "predictions", "pages", "stats"),
    *("lab.studies", "lab.studies.tuning", "lab.training", "lab.data", "lab.models", "lab.store"),
)
ADAPTERS = {
    "hugging_face": ("compute_loss_func", "TrainerCalibration"),
    "token_scores": ("TokenReport",),
    "rewards": ("brier_reward", "grpo_reward"),
    "lightning": ("LightningCalibration",),
}
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


def _entry(module: ModuleType, name: str, sources: griffe.Module, undocumented: list[str]) -> str:
    value, public = getattr(module, name), f"{module.__name__}.{name}"
    if inspect.ismodule(value):
        return "\n\n".join(_entry(value, each, sources, undocumented) for each in value.__all__)
    if inspect.isclass(value) or inspect.isfunction(value):
        if not value.__dict__.get("__doc__") and not (inspect.isfunction(value) and value.__doc__):
            undocumented.append(public)
        return f"::: {value.__module__}.{value.__qualname__}"
    if type(value).__name__ in ("Metric", "MultilabelMetric"):  # their text is computed
        return f"## {name} {{: #{public} }}\n\n```python\n{_call(name, value)}\n```\n\n{inspect.getdoc(value)}"
    attribute = sources[public.removeprefix("focalcal.")]
    if attribute.docstring is None:
        undocumented.append(public)
    return f"::: {attribute.canonical_path}\n    options: {{ show_attribute_values: false }}"


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
    for path, names in ADAPTERS.items():
        module = importlib.import_module(f"focalcal.integrations.{path}")
        parts += [f"## `{module.__name__}`", inspect.getdoc(module) or ""]
        parts += [_entry(module, name, sources, undocumented) + _DEEPER for name in names]
    adapters = importlib.import_module("focalcal.integrations.torchmetrics")
    parts += [
        f"## `{adapters.__name__}`",
        inspect.getdoc(adapters) or "",
        ", ".join(f"`{n}`" for n in adapters.__all__),
    ]
    return "\n\n".join(parts) + "\n"


def _index() -> str:
    rows = []
    for name in PACKAGES:
        doc = inspect.getdoc(importlib.import_module(f"focalcal.{name}")) or ""
        rows.append(f"| [focalcal.{name}]({name}.md) | {doc.splitlines()[0]} |")
    intro = "Every public name, from the docstrings. [focalcal](focalcal.md) itself has the most used ones."
    return "\n".join(["# API reference", "", intro, "", "| package | holds |", "|---|---|", *rows, ""])
