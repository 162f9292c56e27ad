"""Every key path that tomllib parses has a line, and it is the line on which it stands."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from focalcal.experiments.toml_lines import line_numbers, line_of

HARD = '''\
# a comment with [brackets] and "quotes"
title = "a # b [c] = \\"d\\""
seeds = [ 0, # zero
  1,

  2 ]
"quoted key".'and.dotted' = 1
text = """
[not.a.table]
key = "no"\\
 """
quotes = """"two"""""
literal = \'\'\'
x = [\'\'\'

[[settings]]
recipe = ["a", "b"]
optimizer.lr = 0.1 # the rate
data_options = { validation = 5000, deep = { "x y" = [1, {z = 2}] } }
[settings.schedule]
kind = "cosine"

[[settings]] # another
recipe = 'c'
  [settings.model_options]
  width = 8
[[settings.steps]]
name = "p"
[[settings.steps]]
name = "q"
[protocol.inner]
day = 1979-05-27 07:32:00
'''
LINES = {
    ("title",): 2,
    ("seeds",): 3,
    ("seeds", 0): 3,
    ("seeds", 1): 4,
    ("seeds", 2): 6,
    ("quoted key", "and.dotted"): 7,
    ("text",): 8,
    ("quotes",): 12,
    ("literal",): 13,
    ("settings",): 16,
    ("settings", 0): 16,
    ("settings", 0, "recipe", 1): 17,
    ("settings", 0, "optimizer", "lr"): 18,
    ("settings", 0, "data_options", "validation"): 19,
    ("settings", 0, "data_options", "deep", "x y", 1, "z"): 19,
    ("settings", 0, "schedule"): 20,
    ("settings", 0, "schedule", "kind"): 21,
    ("settings", 1): 23,
    ("settings", 1, "recipe"): 24,
    ("settings", 1, "model_options", "width"): 26,
    ("settings", 1, "steps", 0, "name"): 28,
    ("settings", 1, "steps", 1): 29,
    ("settings", 1, "steps", 1, "name"): 30,
    ("protocol",): 31,
    ("protocol", "inner", "day"): 32,
}


def paths(value, path=()):
    """Every path of a parsed document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield (*path, key)
        yield from paths(one, (*path, key))


@pytest.mark.parametrize("text", [HARD, HARD.replace("\n", "\r\n"), HARD.rstrip("\n")])
def test_every_line(text):
    found = line_numbers(text)
    assert {path: found[path] for path in LINES} == LINES
    assert set(found) == set(paths(tomllib.loads(text)))


def test_what_is_not_written_down_lies_in_what_is_around_it():
    lines = line_numbers("[[settings]]\n\nrecipe = 1\n[protocol]\n")
    assert line_of(("settings", 0, "recipe", "deeper"), lines) == 3
    assert line_of(("settings", 0, "epochs"), lines) == 1
    assert line_of(("protocol", "saliency"), lines) == 4
    assert line_of(("seeds",), lines) == 1


NAMES = st.sampled_from(["a", "b", "long_name", "x-1"])
SCALARS = st.sampled_from(["1", "-2.5", "true", '"s#[]"', "'l{}='", '"""m\n]\n"""', "1979-05-27"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: "[\n" + ", # c\n".join(parts) + "\n]"),
        st.dictionaries(NAMES, inner, max_size=2).map(
            lambda parts: "{ " + ", ".join(f"{key} = {value}" for key, value in parts.items()) + " }"
        ),
    ),
    max_leaves=6,
)


@given(st.dictionaries(NAMES, VALUES), st.lists(st.dictionaries(NAMES, VALUES), max_size=3))
def test_every_path_of_any_document_is_found_where_it_is_written(top, tables):
    written, at = [], {}
    for key, value in top.items():
        at[key,] = 1 + sum(part.count("\n") for part in written)
        written.append(f"{key} = {value}\n")
    for index, table in enumerate(tables):
        at["many", index] = 1 + sum(part.count("\n") for part in written)
        written.append("[[many]] # head\n")
        for key, value in table.items():
            at["many", index, key] = 1 + sum(part.count("\n") for part in written)
            written.append(f"{key} = {value}\n")
    text = "".join(written)
    found = line_numbers(text)
    assert set(found) == set(paths(tomllib.loads(text)))
    assert {path: found[path] for path in at} == at
