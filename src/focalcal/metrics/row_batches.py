"""Rows of an array a piece at a time: what is computed from a piece stays in the cache, whatever the array's size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from focalcal.core.chunks import row_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jaxtyping import Float, Int

    Piece = tuple[Float[Tensor, "n k"], Int[Tensor, " n"], Callable[[int], int]]

_POSITIONS_AT_ONCE = 1 << 18  # elements of one image


def flat_pieces(
    scores: Float[Tensor, "n k *d"], labels: Int[Tensor, "n *d"], ignore_index: int | None
) -> Iterator[Piece]:
    """Scores (rows, K) and labels (rows,) without the ignored ones, and which row of the caller's each comes from."""
    for start, piece in row_chunks(scores):
        index = labels[start : start + len(piece)]
        if piece.dim() == 2:
            yield _kept(piece, index, ignore_index, start, 1)
            continue
        maps, targets = piece.flatten(2), index.flatten(1)
        step = max(1, _POSITIONS_AT_ONCE // (len(piece) * piece.shape[1]))
        for at in range(0, maps.shape[2], step):
            part = maps[:, :, at : at + step].movedim(1, -1)
            target = targets[:, at : at + step]
            yield _kept(part.reshape(-1, part.shape[-1]), target.flatten(), ignore_index, start, target.shape[1])


def _kept(rows: Tensor, labels: Tensor, ignore_index: int | None, start: int, positions: int) -> Piece:
    kept = None
    if ignore_index is not None and bool((labels == ignore_index).any()):
        kept = (labels != ignore_index).nonzero().squeeze(1)
        rows, labels = rows[kept], labels[kept]
    return rows, labels, lambda at: start + (at if kept is None else int(kept[at])) // positions
