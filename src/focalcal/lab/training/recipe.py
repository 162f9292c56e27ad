"""Everything that decides a training run but its loss and its seed, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from focalcal.core.plugins import check_name
from focalcal.core.schema import (
    UNSET,
    Count,
    Described,
    Name,
    NoneOrMore,
    Number,
    Options,
    Positive,
    Share,
    YesNo,
    accepted,
    among,
    frozen,
)
from focalcal.lab.data import DATA_SETS, LOADERS, OWN_DATA
from focalcal.lab.data import augment as augmentations
from focalcal.lab.models import MODELS, model_options

AUGMENTATIONS = tuple(
    sorted(name for name in augmentations.__all__ if name[0].isupper() and name not in ("Augmentation", "Compose"))
)


@frozen
class Optimizer(Described):
    """What moves the weights.

    Args:
        name: "sgd", which takes momentum and nesterov; "adam", which adds weight_decay to the gradient; or "adamw",
            which decays apart from it.
        lr: the learning rate.
        momentum, nesterov: of "sgd".
        betas: of "adam" and "adamw".
        weight_decay: at least 0.
        undecayed: the parameters without weight decay: "bias", "norm" (scale and shift of any normalisation),
            "position" (position embeddings and class tokens, tables of relative positions).

    >>> Optimizer(name="sgd", lr=0.1, momentum=0.9).momentum
    0.9
    """

    name: Annotated[str, among("an optimizer", ("sgd", "adam", "adamw"))]
    lr: Positive
    momentum: Annotated[Share | None, UNSET] = None
    nesterov: Annotated[YesNo | None, UNSET] = None
    betas: Annotated[tuple[Share, Share] | None, UNSET] = None
    weight_decay: Annotated[Number, Field(ge=0)] = 0.0
    undecayed: tuple[Annotated[str, among("a kind of parameter", ("bias", "norm", "position"))], ...] = ()

    def __post_init__(self) -> None:
        """The defaults of its kind; refuses what that does not have."""
        self._set(undecayed=tuple(sorted(set(self.undecayed))))
        if self.name != "sgd":
            if self.momentum is not None or self.nesterov is not None:
                raise ValueError(f"momentum and nesterov must be left out for {self.name}; they belong to sgd")
            self._set(betas=self.betas or (0.9, 0.999))
            return
        if self.betas is not None:
            raise ValueError(f"betas must be left out for sgd, got {self.betas!r}; they belong to adam and adamw")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov must be False without momentum; set momentum, e.g. 0.9")
        self._set(momentum=self.momentum or 0.0, nesterov=bool(self.nesterov))


@frozen
class Schedule(Described):
    """How the learning rate moves: up linearly over `warmup` epochs, then by `kind`.

    Args:
        kind: "constant"; "milestones", times `factor` at the end of each of these epochs; "cosine", half a cosine
            from lr after the warm-up to 0 at the end; "linear", a straight line from there to `factor` lr, or 0;
            "plateau", times `factor` once the validation loss has not fallen for more than `patience` epochs.
        milestones: epochs, of that kind.
        factor: below 1, of "milestones", "linear" and "plateau".
        patience: of "plateau".
        warmup: in epochs.

    >>> Schedule(kind="milestones", milestones=(150, 250), factor=0.1).milestones
    (150, 250)
    """

    kind: Annotated[str, among("a schedule", ("constant", "milestones", "cosine", "linear", "plateau"))] = "constant"
    milestones: tuple[Count, ...] = ()
    factor: Annotated[Annotated[Number, Field(gt=0, lt=1)] | None, UNSET] = None
    patience: Annotated[NoneOrMore | None, UNSET] = None
    warmup: NoneOrMore = 0

    def __post_init__(self) -> None:
        """Each kind has its own fields and no others."""
        if any(after <= before for before, after in zip(self.milestones, self.milestones[1:], strict=False)):
            raise ValueError(f"milestones must increase, got {self.milestones}")
        wanted = {"milestones": ("milestones", "factor"), "plateau": ("factor", "patience")}.get(self.kind, ())
        taken = ("factor",) if self.kind == "linear" else wanted
        for name in ("milestones", "factor", "patience"):
            value = getattr(self, name)
            if name in wanted and value in (None, ()):
                raise ValueError(f"a schedule of kind {self.kind!r} needs {name}")
            if name not in taken and value not in (None, ()):
                raise ValueError(f"a schedule of kind {self.kind!r} has no {name}, got {value!r}")


@frozen
class Step(Described):
    """One augmentation of a recipe.

    Args:
        name: of a class of `focalcal.lab.data.augment`.
        options: its arguments.

    >>> Step(name="RandomErasing", options={"probability": 0.5}).options
    (('probability', 0.5),)
    """

    name: Annotated[str, among("an augmentation", AUGMENTATIONS)]
    options: Options = ()

    def __post_init__(self) -> None:
        """The class is called once, so that it can refuse the options."""
        try:
            self.build()
        except TypeError as error:  # of an argument that it does not have
            raise ValueError(str(error)) from None

    def build(self) -> augmentations.Augmentation:
        """The augmentation."""
        built: augmentations.Augmentation = getattr(augmentations, self.name)(**dict(self.options))
        return built


CONSTANT = Schedule()


@frozen
class Recipe(Described):
    """How one network is trained on one data set; the mean of the loss over the batch is minimised.

    An empty text stands for None, which TOML cannot write. Shipped recipes are TOML files in `training/recipes`,
    where a comment beside each setting says who states it.

    Args:
        data_set: name of the data set.
        classes: how many it has.
        model: name of the network.
        optimizer: an `Optimizer`.
        epochs, batch_size: how long, and how many examples per step.
        schedule: a `Schedule` of the learning rate.
        data_options, model_options: options of the data set's loader and of the network's builder.
        initial_weights: what the network starts from, whatever its builder takes as `pretrained`: a hub id, file or
            folder, or one in the folder of the data sets; None: random.
        word_vectors: likewise, of the words.
        drop_last: leave out the last batch of an epoch where it is smaller.
        mixed_precision: holds on a GPU.
        bfloat16: train and predict so on a CPU too, where it has instructions for it; refused elsewhere.
        gradient_clip: the largest norm of a gradient.
        augmentation: steps that see images before (image / 255 - mean) / std.
        alternating_flip: half of the images, which the seed chooses, are mirrored in odd epochs and the others in
            even ones.
        mean, std: of each channel; three numbers make three channels of a grey image.
        after_normalisation: steps that see images after it.
        image_size: side of the images that the network sees.
        evaluation: what a test image goes through: "whole", as it is; "resize", to `image_size` (as the random
            resized crop does it, else bicubic); or "ten_crop", ten crops of that side whose probabilities are
            averaged (an epoch's evaluation sees the one at the centre).
        averaging: a share of the steps such as 0.2: what is evaluated, steers the loss and is kept at the end is
            the average of the weights over about that share of the steps so far.
        keep: whose weights are kept: those of the "last" epoch, or of the one with the lowest validation "nll",
            "error", or NLL after its best temperature, "refined".

    >>> small = Recipe(data_set="digits", classes=10, model="mlp", model_options={"features": 64},
    ...                optimizer=Optimizer(name="sgd", lr=0.1), epochs=5, batch_size=64)
    >>> small.keep, small.schedule.kind
    ('last', 'constant')
    """

    data_set: Annotated[Name, accepted(lambda name: check_name("data_sets", name, LOADERS))]
    classes: Annotated[Count, Field(ge=2)]
    model: Annotated[Name, accepted(lambda name: check_name("models", name, MODELS))]
    optimizer: Optimizer
    epochs: Count
    batch_size: Count
    schedule: Schedule = CONSTANT
    data_options: Options = ()
    model_options: Options = ()
    initial_weights: Annotated[Name | None, UNSET] = None
    word_vectors: Annotated[Name | None, UNSET] = None
    drop_last: YesNo = False
    mixed_precision: YesNo = False
    bfloat16: YesNo = False
    gradient_clip: Annotated[Positive | None, UNSET] = None
    augmentation: tuple[Step, ...] = ()
    alternating_flip: YesNo = False
    mean: Annotated[tuple[Number, ...] | None, UNSET] = None
    std: Annotated[tuple[Positive, ...] | None, UNSET] = None
    after_normalisation: tuple[Step, ...] = ()
    image_size: Annotated[Count | None, UNSET] = None
    evaluation: Annotated[str, among("an evaluation", ("whole", "resize", "ten_crop"))] = "whole"
    averaging: Annotated[Annotated[Number, Field(gt=0, lt=1)] | None, UNSET] = None
    keep: Annotated[str, among("a rule", ("last", "nll", "error", "refined"))] = "last"

    def __post_init__(self) -> None:
        """The fields consistent with each other."""
        for name, option in (("initial_weights", "pretrained"), ("word_vectors", "embedding")):
            given = getattr(self, name)
            if given is not None and option not in model_options(self.model):
                able = ", ".join(model for model in MODELS if option in model_options(model))
                raise ValueError(
                    f"{name} must be None for {self.model}, which takes none, got {given!r}; leave it out, "
                    f"or use {able}"
                )
        last = max((self.schedule.warmup, *self.schedule.milestones))
        if last >= self.epochs:
            raise ValueError(f"warmup and milestones must lie before epochs = {self.epochs}, got {last}")
        if (self.mean is None) != (self.std is None):
            raise ValueError("mean and std must be given together, or neither")
        if self.mean is not None and self.std is not None and (len(self.mean), len(self.std)) not in ((1, 1), (3, 3)):
            raise ValueError(f"mean and std must have 1 or 3 numbers each, got {self.mean} and {self.std}")
        if (self.image_size is None) != (self.evaluation == "whole"):
            raise ValueError(
                f"image_size must be given for evaluation 'resize' and 'ten_crop' alone, got {self.image_size!r} "
                f"for {self.evaluation!r}"
            )


def merged(recipe: Recipe, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a recipe with these in place of its own, still to be checked by `Recipe.from_dict`.

    `data_options` and `model_options` are added to the recipe's, which a data set or a network of somebody's own code
    begins without. The recipe's `mean` and `std` are for its own data set, not for one that is not shipped; nor are the
    sizes of inputs in its `model_options` for files of one's own. The keys of `optimizer` and `schedule` are changes as
    well, unless they say `name` or `kind`: then the table is the whole optimiser or schedule.
    """
    fields = recipe.as_dict()
    data_set = str(changes.get("data_set", recipe.data_set))  # a list, say, is refused later
    if data_set != recipe.data_set and data_set not in DATA_SETS:
        fields |= dict.fromkeys(("mean", "std"))
    if data_set != recipe.data_set and data_set in OWN_DATA:
        given = fields["model_options"].items()
        fields["model_options"] = {name: value for name, value in given if name not in ("features", "channels")}
    changed = {**fields, **changes}
    for part, whole in (("optimizer", "name"), ("schedule", "kind")):
        given = changes.get(part, {})
        if isinstance(given, Mapping) and whole not in given:
            changed[part] = {**fields[part], **given}
    for part, owner, shipped in (("data_options", "data_set", DATA_SETS), ("model_options", "model", MODELS)):
        given = changes.get(part, {})
        if isinstance(given, Mapping):
            changed[part] = {
                **(fields[part] if str(changed[owner]) in shipped or owner not in changes else {}),
                **given,
            }
    return changed
