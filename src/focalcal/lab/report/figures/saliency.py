"""Where a network looked: the stored Grad-CAM maps over the images."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from focalcal.pages.style import SMALLEST, TEXT_WIDTH, drawing, headed, plain
from focalcal.pages.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from focalcal.lab.store import Run

FILE = "saliency.npz"
_ACROSS = 6
_MOST = 12  # images
_ARRAYS = ("maps", "predicted", "labels", "ids", "images")


@dataclass(frozen=True, eq=False)
class SaliencyMaps:
    """maps (N, h, w) >= 0; images uint8 (N, C, H, W); predicted, truth and ids as text, one per image."""

    title: str
    note: str
    ids: tuple[str, ...]
    predicted: tuple[str, ...]
    truth: tuple[str, ...]
    maps: np.ndarray
    images: np.ndarray

    def frame(self) -> Table:
        """One row per image: what was predicted, what was true, and where the map is highest, from 0 to 1."""
        height, width = self.maps.shape[1:]
        rows, columns = np.unravel_index(self.maps.reshape(len(self.maps), -1).argmax(1), (height, width))
        return Table(
            {
                "id": self.ids,
                "predicted": self.predicted,
                "truth": self.truth,
                "highest": self.maps.max((1, 2)).tolist(),
                "across": ((columns + 0.5) / width).tolist(),
                "down": ((rows + 0.5) / height).tolist(),
            }
        )

    def plot(self) -> Figure:
        """Each image, and below it the same with its map."""
        columns = min(len(self.ids), _ACROSS)
        rows = -(-len(self.ids) // columns)
        side = TEXT_WIDTH / _ACROSS
        with drawing(0.6 + rows * (2 * side + 0.15), width=max(3.6, side * columns)) as figure:
            engine: Any = figure.get_layout_engine()
            engine.set(hspace=0.01, h_pad=0.02)
            grid = figure.subplots(2 * rows, columns, squeeze=False)
            for axes in grid.flat:
                axes.set_axis_off()
            for number in range(len(self.ids)):
                row, column = divmod(number, columns)
                self._image(grid[2 * row, column], number)
                grid[2 * row, column].set_title(
                    f"{plain(self.ids[number], longest=16)}\n{plain(self.predicted[number], longest=16)}"
                    f" ({plain(self.truth[number], longest=14)})",
                    fontsize=SMALLEST,
                )
                self._image(grid[2 * row + 1, column], number)
                self._map(grid[2 * row + 1, column], number)
            headed(figure, self.title, self.note)
        return figure

    def _image(self, axes: Axes, number: int) -> None:
        channels = self.images[number]
        if len(channels) == 3:
            axes.imshow(channels.transpose(1, 2, 0))
        else:
            axes.imshow(channels[0], cmap="gray", vmin=0, vmax=255)

    def _map(self, axes: Axes, number: int) -> None:
        """Warm where the map is high and clear where it is low, each map by its own maximum."""
        height, width = self.images.shape[2:]
        highest = self.maps[number].max()
        share = self.maps[number] / highest if highest > 0 else np.zeros_like(self.maps[number])
        axes.imshow(
            share,
            cmap="inferno",
            alpha=0.6 * share,
            vmin=0,
            vmax=1,
            extent=(-0.5, width - 0.5, height - 0.5, -0.5),
            interpolation="nearest" if highest == 0 else "bilinear",
        )
        if highest == 0:
            axes.text(0.5, 0.5, "map is 0", transform=axes.transAxes, ha="center", va="center", color="white").set_bbox(
                {"facecolor": "black", "linewidth": 0, "pad": 1.5}
            )


def saliency_maps(run: Run, *, objective: str | None = None) -> SaliencyMaps | None:
    """The first images of the run's `saliency.npz`; None if it has no such file.

    `objective` is what the title calls the run's; class names are those of the data's provenance, else numbers.
    """
    if FILE not in run.files:
        return None
    stored = _read(run)
    number = min(_MOST, len(stored["maps"]))
    if not number:
        return None
    classes = (run.record["provenance"].get("data") or {}).get("classes")
    names = list(map(str, classes)) if isinstance(classes, list) else []
    spec = run.settings
    called = spec["objective"] if objective is None else objective
    return SaliencyMaps(
        title=f"Grad-CAM of {called} on {spec['data_set']}/{spec['model']}, seed {spec['seed']}: first test images",
        note="Above each pair: id, predicted (true). Maps are of the predicted class, each by its own maximum.",
        ids=tuple(map(str, stored["ids"][:number])),
        predicted=tuple(_name(int(index), names) for index in stored["predicted"][:number]),
        truth=tuple(_truth(label, names) for label in stored["labels"][:number]),
        maps=stored["maps"][:number].astype(float),
        images=stored["images"][:number],
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
