"""Predictions of every sort, for the tests."""

import numpy as np
import torch
from hypothesis import strategies as st

from focalcal.predictions import Predictions

SUFFIXES = (".npz", ".parquet", ".csv")
DTYPES = {"float32": torch.float32, "float64": torch.float64, "float16": torch.float16, "bfloat16": torch.bfloat16}


def sample(n=40, classes=4, *, kind="logits", multilabel=False, dtype="float32", seed=0, **fields) -> Predictions:
    random = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, classes, generator=random, dtype=torch.float64)
    if kind == "probs":
        logits = logits.sigmoid() if multilabel else logits.softmax(1)
    shape, top = ((n, classes), 2) if multilabel else ((n,), classes)
    labels = torch.randint(0, top, shape, generator=random)
    fields.setdefault("split", "test")
    return Predictions(**{kind: logits.to(DTYPES[dtype])}, labels=labels, multilabel=multilabel, **fields)


def full(n=40, classes=4, *, multilabel=False, **options) -> Predictions:
    """With every optional field."""
    truth = torch.randn(n, classes, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    return sample(
        n,
        classes,
        multilabel=multilabel,
        ids=[f"näme, {i}" for i in range(n)],
        groups=np.arange(n) % 3,
        posterior=truth.sigmoid() if multilabel else truth.softmax(1),
        provenance={"model": "resnet20", "seed": 3, "nested": {"lam": [0.5, None, True]}},
        **options,
    )


# Any text but NUL and halves of surrogate pairs; quotes, commas, line ends and "#" are the interesting ones.
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6) | st.sampled_from(
    ['"', ",", "\n", "\r", "\r\n", "a\rb", "\u2028", "\x85", "#", "007", " a ", "nan", "null", "1e3", "\U0001f600", ""]
)
# Few characters, so that those with a meaning in some format meet each other.
words |= st.text("\r\n\",#; \té\U0001f600a\\'", max_size=5)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def predictions(draw) -> Predictions:
    n, classes = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    multilabel, kind = draw(st.booleans()), draw(st.sampled_from(["logits", "probs"]))
    dtype = draw(st.sampled_from(list(DTYPES)))
    names = st.none() | st.lists(words, min_size=n, max_size=n)
    names |= st.lists(st.integers(-(2**63), 2**63 - 1), min_size=n, max_size=n)
    made = sample(n, classes, kind=kind, multilabel=multilabel, dtype=dtype, seed=draw(st.integers(0, 99)))
    if kind == "logits":
        width = {"float32": 32, "float64": 64}.get(dtype, 16)
        cells = st.floats(width=width, allow_nan=False, allow_infinity=False)
        values = draw(st.lists(cells, min_size=n * classes, max_size=n * classes))
        scores = torch.tensor(values, dtype=torch.float64).reshape(n, classes).to(DTYPES[dtype])
    else:
        scores = made.scores
    return Predictions(
        **{kind: scores},
        labels=made.labels,
        split=draw(st.text(min_size=1, max_size=8)),
        multilabel=multilabel,
        ids=draw(names),
        groups=draw(
            names | st.fixed_dictionaries({"site": names, "a,b": names}).filter(lambda g: None not in g.values())
        ),
        clusters=draw(names),
        weights=draw(st.none() | st.lists(st.floats(1e-300, 1e300), min_size=n, max_size=n)),
        times=draw(st.none() | st.lists(st.datetimes(), min_size=n, max_size=n)),
        posterior=made.probs if draw(st.booleans()) else None,
        provenance=draw(st.dictionaries(st.text(), json_values, max_size=3)),
    )
