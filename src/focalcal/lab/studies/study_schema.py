"""The tables of a study's file as pydantic models, which find every fault of form and name at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal

from focalcal.core.checks import unknown_name
from focalcal.core.extras import required
from focalcal.lab.data import data_loader
from focalcal.lab.models import model_builder
from focalcal.lab.studies.shifts import SHIFTS
from focalcal.lab.studies.spec_builder import loss_builder
from focalcal.lab.training import RECIPES
from focalcal.lab.training.recipe import AUGMENTATIONS, EVALUATIONS, OPTIMIZERS, SCHEDULES, UNDECAYED

required("pydantic", purpose="Reading a study")

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field  # noqa: E402


def _known(check: Callable[[str], object]) -> AfterValidator:
    """A name that `check` accepts."""

    def accept(name: str) -> str:
        check(name)
        return name

    return AfterValidator(accept)


def _among(what: str, names: Iterable[str]) -> AfterValidator:
    choices = tuple(names)

    def check(name: str) -> None:
        if name not in choices:
            raise ValueError(unknown_name(what, name, choices))

    return _known(check)


_AS_WHOLE = BeforeValidator(lambda value: int(value) if isinstance(value, float) and value.is_integer() else value)
_AS_LIST = BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
_EMPTY_IS_NONE = BeforeValidator(lambda value: None if value == "" else value)  # TOML cannot write None
Count = Annotated[int, _AS_WHOLE, Field(ge=1)]
NoneOrMore = Annotated[int, _AS_WHOLE, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, lt=2**53)]
Seeds = Annotated[list[Seed], Field(min_length=1)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, lt=1)]
RecipeName = Annotated[str, _among("a recipe", RECIPES)]
ObjectiveName = Annotated[str, _known(loss_builder)]


class Table(BaseModel):
    """A table of the file. Keys that it does not have are refused; fields that are not written are not set."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class OptimizerTable(Table):
    """Changes of a recipe's optimiser; the whole of it where `name` is given."""

    name: Annotated[str, _among("an optimizer", OPTIMIZERS)] | None = None
    lr: Positive | None = None
    momentum: Annotated[Share | None, _EMPTY_IS_NONE] = None
    nesterov: Annotated[bool | None, _EMPTY_IS_NONE] = None
    betas: Annotated[list[Share] | None, _EMPTY_IS_NONE] = None
    weight_decay: Annotated[Number, Field(ge=0)] | None = None
    undecayed: list[Annotated[str, _among("a kind of parameter", UNDECAYED)]] | None = None


class ScheduleTable(Table):
    """Changes of a recipe's schedule; the whole of it where `kind` is given."""

    kind: Annotated[str, _among("a schedule", SCHEDULES)] | None = None
    milestones: list[Count] | None = None
    factor: Annotated[Annotated[float, Field(gt=0, lt=1)] | None, _EMPTY_IS_NONE] = None
    patience: Annotated[NoneOrMore | None, _EMPTY_IS_NONE] = None
    warmup: NoneOrMore | None = None


class StepTable(Table):
    """An augmentation and its arguments."""

    name: Annotated[str, _among("an augmentation", AUGMENTATIONS)]
    options: dict[str, Any] = {}


class SettingsTable(Table):
    """`[[settings]]`: one recipe or several, and fields of theirs to override."""

    recipe: Annotated[list[RecipeName], _AS_LIST, Field(min_length=1)]
    data_set: Annotated[str, _known(data_loader)] | None = None
    classes: Annotated[int, _AS_WHOLE, Field(ge=2)] | None = None
    model: Annotated[str, _known(model_builder)] | None = None
    optimizer: OptimizerTable | None = None
    epochs: Count | None = None
    batch_size: Count | None = None
    schedule: ScheduleTable | None = None
    data_options: dict[str, Any] | None = None
    model_options: dict[str, Any] | None = None
    initial_weights: Annotated[str | None, _EMPTY_IS_NONE] = None
    word_vectors: Annotated[str | None, _EMPTY_IS_NONE] = None
    drop_last: bool | None = None
    mixed_precision: bool | None = None
    gradient_clip: Annotated[Positive | None, _EMPTY_IS_NONE] = None
    augmentation: list[StepTable] | None = None
    mean: Annotated[list[Number] | None, _EMPTY_IS_NONE] = None
    std: Annotated[list[Positive] | None, _EMPTY_IS_NONE] = None
    after_normalisation: list[StepTable] | None = None
    image_size: Annotated[Count | None, _EMPTY_IS_NONE] = None
    evaluation: Annotated[str, _among("an evaluation", EVALUATIONS)] | None = None
    averaging: Annotated[Positive | None, _EMPTY_IS_NONE] = None
    objectives: list["ObjectivesTable"] = []

    def overrides(self) -> dict[str, Any]:
        """The fields that are written, at every depth."""
        return self.model_dump(exclude={"recipe", "objectives"}, exclude_unset=True)


class ObjectivesTable(Table):
    """`[[objectives]]`: one objective or several, and options of theirs, each a value or a list to cross."""

    model_config = ConfigDict(extra="allow")
    name: Annotated[list[ObjectiveName], _AS_LIST, Field(min_length=1)]

    def options(self) -> dict[str, list[Any]]:
        """The values of each option."""
        written = self.model_extra or {}
        return {option: value if isinstance(value, list) else [value] for option, value in written.items()}


class ProtocolTable(Table):
    """`[protocol]`: which examples, which is part of a run, and what trained networks are evaluated on besides."""

    imbalance: Annotated[Number, Field(ge=1)] | None = None
    train_examples: Count | None = None
    test_examples: Count | None = None
    allow_partial: bool | None = None
    evaluate_every: Count | None = None
    shifts: list[Annotated[str, _among("a shift", SHIFTS)]] | None = None
    severities: Annotated[list[Annotated[int, Field(ge=1, le=5)]], Field(min_length=1)] | None = None
    saliency: NoneOrMore | None = None
    keep_weights: bool | None = None


class SmokeTable(Table):
    """`[smoke]`: the size at which everything is tried in seconds.

    Every setting and every objective occurs, not every pair of them, and one point of each grid of options. `settings`
    and `objectives` replace the study's. Incomplete data sets will do.
    """

    epochs: Count = 1
    batch_size: Count = 8
    train_examples: Count = 16
    test_examples: Count = 16
    seeds: Seeds = [0]
    settings: list[SettingsTable] = []
    objectives: list[ObjectivesTable] = []
    protocol: ProtocolTable = ProtocolTable()


class StudyTable(Table):
    """The whole file, of which `REQUIRED` must be given; the defaults serve to check the rest where one is not."""

    title: Annotated[str, Field(min_length=1)] = ""
    description: str = ""
    seeds: Seeds = []
    settings: Annotated[list[SettingsTable], Field(min_length=1)] = []
    objectives: Annotated[list[ObjectivesTable], Field(min_length=1)] = []
    protocol: ProtocolTable = ProtocolTable()
    temperature: Literal["halves", "validation"] = "halves"
    section: str = ""
    smoke: SmokeTable = SmokeTable()


REQUIRED = ("title", "seeds", "settings", "objectives")
BY_KEY: dict[str, type[Table]] = {
    "settings": SettingsTable,
    "objectives": ObjectivesTable,
    "optimizer": OptimizerTable,
    "schedule": ScheduleTable,
    "augmentation": StepTable,
    "after_normalisation": StepTable,
    "protocol": ProtocolTable,
    "smoke": SmokeTable,
}
