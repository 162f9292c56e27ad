"""Where a network looked: the stored Grad-CAM maps over the images."""

from __future__ import annotations

import io
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.lab.report.figures.view import View
from focalcal.pages.style import SMALLEST, TEXT_WIDTH, drawing, headed, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.lab.store import Run

FILE = "saliency.npz"
_ACROSS = 6
_MOST = 12  # images
_ARRAYS = ("maps", "predicted", "labels", "ids", "images")


def saliency_view(run: Run, *, objective: str | None = None) -> View | None:
    """The first images of the run's `saliency.npz`: what was predicted, what is true, where the map is highest.

    `objective` is what the title calls the run's; class names are those of the data's provenance, else numbers. None
    without such a file.
    """
    if FILE not in run.files:
        return None
    stored = {name: values[:_MOST] for name, values in _read(run).items()}
    maps = stored["maps"].astype(float)
    if not len(maps):
        return None
    classes = (run.record["provenance"].get("data") or {}).get("classes")
    names = list(map(str, classes)) if isinstance(classes, list) else []
    height, width = maps.shape[1:]
    places = [np.unravel_index(int(each.argmax()), each.shape) for each in maps]
    rows = [
        {"id": str(stored["ids"][at]), "predicted": _name(int(stored["predicted"][at]), names)}
        | {"truth": _truth(stored["labels"][at], names), "highest": float(maps[at].max())}
        | {"across": float((place[1] + 0.5) / width), "down": float((place[0] + 0.5) / height)}
        for at, place in enumerate(places)
    ]
    spec = run.settings
    called = spec["objective"] if objective is None else objective
    setting = f"{spec['data_set']}/{spec['model']}"
    title = f"Grad-CAM of {called} on {setting}, seed {spec['seed']}: first test images"
    note = "Above each pair: id, predicted (true). Maps are of the predicted class, each by its own maximum."
    facts = {"maps": maps, "images": stored["images"]}
    return View("saliency", setting, "", title, note, rows, plot_saliency, facts=facts)


def plot_saliency(view: View) -> Figure:
    """Each image, and below it the same with its map: warm where that is high and clear where it is low."""
    columns = min(len(view.rows), _ACROSS)
    rows = -(-len(view.rows) // columns)
    side = TEXT_WIDTH / _ACROSS
    with drawing(0.6 + rows * (2 * side + 0.15), width=max(3.6, side * columns)) as figure:
        engine: Any = figure.get_layout_engine()
        engine.set(hspace=0.01, h_pad=0.02)
        grid = figure.subplots(2 * rows, columns, squeeze=False)
        for axes in grid.flat:
            axes.set_axis_off()
        for number, told in enumerate(view.rows):
            row, column = divmod(number, columns)
            image, heat = view.facts["images"][number], view.facts["maps"][number]
            for axes in grid[2 * row : 2 * row + 2, column]:
                _image(axes, image)
            name, predicted, truth = (plain(told[key], longest=16) for key in ("id", "predicted", "truth"))
            grid[2 * row, column].set_title(f"{name}\n{predicted} ({truth})", fontsize=SMALLEST)
            _map(grid[2 * row + 1, column], heat, image.shape[1:])
        headed(figure, view.title, view.note)
    return figure


def _image(axes: Axes, channels: np.ndarray) -> None:
    if len(channels) == 3:
        axes.imshow(channels.transpose(1, 2, 0))
    else:
        axes.imshow(channels[0], cmap="gray", vmin=0, vmax=255)


def _map(axes: Axes, heat: np.ndarray, size: tuple[int, int]) -> None:
    """By its own maximum, over the whole image."""
    highest = heat.max()
    share = heat / highest if highest > 0 else np.zeros_like(heat)
    over: dict[str, Any] = {"extent": (-0.5, size[1] - 0.5, size[0] - 0.5, -0.5), "alpha": 0.6 * share}
    axes.imshow(share, cmap="inferno", vmin=0, vmax=1, interpolation="bilinear" if highest > 0 else "nearest", **over)
    if highest == 0:
        axes.text(0.5, 0.5, "map is 0", transform=axes.transAxes, ha="center", va="center", color="white").set_bbox(
            {"facecolor": "black", "linewidth": 0, "pad": 1.5}
        )


def _read(run: Run) -> dict[str, Any]:
    path = run.file(FILE)
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
    except (KeyError, ValueError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} must hold the arrays {', '.join(_ARRAYS)}: {error}; run the cell again") from error
    rows = {len(values) for values in arrays.values()}
    if len(rows) != 1 or arrays["maps"].ndim != 3 or arrays["images"].ndim != 4:
        shapes = {name: values.shape for name, values in arrays.items()}
        raise ValueError(f"{path} must hold maps (N, h, w) and images (N, C, H, W), got {shapes}; run the cell again")
    return arrays


def _name(index: int, names: list[str]) -> str:
    return names[index] if 0 <= index < len(names) else str(index)


def _truth(label: Any, names: list[str]) -> str:
    """A class, or the labels that hold of several."""
    if np.ndim(label) == 0:
        return _name(int(label), names)
    return ", ".join(_name(int(index), names) for index in np.flatnonzero(label)) or "none"
