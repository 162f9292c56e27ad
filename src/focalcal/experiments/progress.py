"""How far a run is: in epochs, and one more for predictions, metrics and storing."""

from __future__ import annotations

from collections.abc import Callable

from focalcal.experiments.events import Progress

Report = Callable[[Progress], None]


class RunProgress:
    """Tells `report`, if there is one, of every step of the run with this key."""

    def __init__(self, key: str, epochs: int, report: Report | None) -> None:
        self._key, self._epochs, self._report = key, epochs, report

    def step(self, done: int, of: int) -> None:
        """So many training steps."""
        reached = self._epochs * done / of
        self._tell(reached, f"epoch {min(int(reached) + 1, self._epochs)} of {self._epochs}")

    def counted(self, pieces: int) -> Callable[[str], None]:
        """To be called after each of so many splits, with its name; the storing is one piece of work more."""
        done = 0

        def predicted(split: str) -> None:
            nonlocal done
            done += 1
            self._tell(self._epochs + done / (pieces + 1), f"predicted {split}")

        return predicted

    def end(self, note: str) -> None:
        """Everything."""
        self._tell(self._epochs + 1.0, note)

    def _tell(self, done: float, note: str) -> None:
        if self._report is not None:
            self._report(Progress(self._key, done, self._epochs + 1.0, note))
