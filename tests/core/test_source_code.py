"""What of a module counts as the code of a name."""

import pytest

from focalcal.core.source_code import code_hash

MODULE = '''
"""A loss and other things."""
import math
import torch
from torch import nn

SCALE = 2.0
OTHER: float = 3.0
TABLE = {}

def register(thing):
    TABLE[thing.__name__] = thing
    return thing

def helper(x):
    return inner(x) * SCALE

def inner(x):
    return math.sqrt(x)

def unrelated(x):
    return x + OTHER

class Loss(nn.Module):
    """What it is."""
    def forward(self, x):
        return helper(x)  # a comment

@register
class Listed:
    pass

def from_table(name):
    return TABLE[name]()

made = type("Made", (Loss,), {})

def dynamic(name):
    return globals()[name]

if __name__ == "__main__":
    print(Loss())
'''


def hashes(tmp_path, text, *names):
    file = tmp_path / "module.py"
    file.write_text(text)
    return [code_hash({str(file): [name]}) for name in names]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("# a comment", "# another comment", ""),
        ('"""What it is."""', '"""What it was."""', ""),
        ("return helper(x)", "return helper(\n            x,\n        )", ""),
        ("print(Loss())", "print(Loss(), 1)", ""),
        ("return x + OTHER", "return x - OTHER", "unrelated"),
        ("OTHER: float = 3.0", "OTHER: float = 4.0", "unrelated"),
        ("SCALE = 2.0", "SCALE = 2.5", "Loss made"),
        ("math.sqrt(x)", "math.cbrt(x)", "Loss made"),
        ("import math", "import cmath as math", "Loss made"),
        ("from torch import nn", "from torch import Tensor, nn", ""),
        ("return helper(x)", "return helper(x) + 1", "Loss made"),
        ("class Listed:\n    pass", "class Listed:\n    size = 3", "from_table"),
        ("made = ", "SCALE += 1\nmade = ", "Loss made"),
        ("made = ", "Loss.size = 3\nmade = ", "Loss made"),
        ("made = ", "torch.set_default_dtype(torch.float64)\nmade = ", ""),
        ("made = ", "nn.Module.size = 3\nmade = ", "Loss made"),
        ("import torch\n", "import torch\nfrom math import *\n", "Loss made from_table unrelated"),
    ],
)
def test_an_edit_changes_what_depends_on_it_and_nothing_else(tmp_path, old, new, changed):
    names = ["Loss", "made", "unrelated", "from_table"]
    before, after = hashes(tmp_path, MODULE, *names), hashes(tmp_path, MODULE.replace(old, new, 1), *names)
    assert old in MODULE
    assert {name for name, one, other in zip(names, before, after, strict=True) if one != other} == set(changed.split())


@pytest.mark.parametrize("name", ["dynamic", "absent"])
def test_the_whole_file_counts_where_the_source_does_not_say(tmp_path, name):
    assert hashes(tmp_path, MODULE, name) != hashes(tmp_path, MODULE.replace("# a comment", "# x"), name)


def test_what_is_no_source_is_hashed_whole(tmp_path):
    file = tmp_path / "module.so"
    file.write_bytes(b"\x7fELF\0")
    first = code_hash({str(file): ["Loss"]})
    file.write_bytes(b"\x7fELF\0\1")
    assert code_hash({str(file): ["Loss"]}) != first
