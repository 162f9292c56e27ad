"""What the networks of the package `transformers` share: the import, and weights from a folder or the hub."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from focalcal.core.extras import required
from focalcal.models.conversion import swin_weights, vit_weights
from focalcal.models.weight_files import fill, is_in_format_of_transformers, weights_of

CONVERSIONS = {"ViT": vit_weights, "Swin": swin_weights}
# What may differ from a folder's own settings: neither changes the meaning of a weight.
CHANGEABLE = ("drop_path_rate", "layer_norm_eps")


def transformers() -> Any:
    """The package, or an error that names the extra it comes with."""
    return required("transformers", purpose="A network such as ViT, DeiT or Swin", extra="transformers")


class LogitsOnly(nn.Module):
    """A classifier of `transformers`, called like every other network here: images (N, 3, H, W) to logits (N, K)."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, classes)."""
        logits: Tensor = self.network(images).logits
        return logits


def classifier(kind: str, architecture: Mapping[str, Any], *, classes: int, pretrained: str | None) -> Any:
    """The image classifier of `transformers` whose classes begin with `kind` ("ViT", "Swin"), with that architecture.

    Random, or with the weights of `pretrained`: a folder or a hub id in the format of `transformers` or of timm, or a
    file with timm's names. Its head stays if it has `classes` outputs and is drawn anew otherwise; any other difference
    raises.
    """
    package = transformers()
    network, configuration = getattr(package, f"{kind}ForImageClassification"), getattr(package, f"{kind}Config")
    if pretrained is None or not is_in_format_of_transformers(pretrained):
        fresh = network(configuration(**architecture, num_labels=classes))
        if pretrained is not None:
            fill(fresh, CONVERSIONS[kind](weights_of(pretrained)), pretrained)
        return fresh
    stored = configuration.from_pretrained(pretrained, num_labels=classes)
    for name, value in architecture.items():
        if name in CHANGEABLE:
            setattr(stored, name, value)
        elif _plain(getattr(stored, name)) != _plain(value):
            raise ValueError(
                f"pretrained must hold a network with {name} = {value}, got {getattr(stored, name)} "
                f"in {pretrained!r}; choose weights of this architecture"
            )
    # Sizes may differ for the head alone, which the report of what was loaded tells.
    loaded, report = network.from_pretrained(
        pretrained, config=stored, ignore_mismatched_sizes=True, output_loading_info=True
    )
    _refuse_partial(report, pretrained)
    return loaded.float().train()  # as fresh networks are; files may hold half precision


def part(network: nn.Module, name: str) -> nn.Module:
    """The submodule of that name, where the releases of `transformers` that this was written for keep it."""
    try:
        return network.get_submodule(name)
    except AttributeError as error:
        raise RuntimeError(
            f"{type(network).__name__} of transformers {transformers().__version__} has no part {name!r}; "
            "install a release that has, such as 5.22"
        ) from error


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _refuse_partial(report: Mapping[str, Any], pretrained: str) -> None:
    differing = [entry if isinstance(entry, str) else entry[0] for entry in report["mismatched_keys"]]
    fresh = sorted(key for key in {*report["missing_keys"], *differing} if not key.startswith("classifier."))
    extra = sorted(key for key in report["unexpected_keys"] if "pooler" not in key)
    if fresh or extra:
        raise ValueError(
            f"pretrained must hold every weight of this network and no other, except for its head; in {pretrained!r} "
            f"missing or of another shape: {_first(fresh)}; unknown: {_first(extra)}; choose weights of this "
            "architecture and image_size"
        )


def _first(keys: list[str]) -> str:
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more" if len(keys) > 3 else "") if keys else "none"
