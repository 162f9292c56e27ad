"""What the library computed when the golden files were made, it computes now."""

import pytest
from golden.tables import TABLES
from golden.values import differences, stored

WANTED = {name: stored(name) for name in TABLES}
CASES = [(name, case) for name in TABLES for case in TABLES[name]]


@pytest.mark.parametrize(("name", "case"), CASES, ids=lambda part: part.replace(" ", "_"))
def test_same_result(name, case):
    one = TABLES[name][case]
    found = list(differences(one.value(), WANTED[name][case], one.rtol, one.atol))
    assert not found, "\n".join(found[:20])


def test_every_case_has_its_line():
    assert [(name, case) for name in WANTED for case in WANTED[name]] == CASES
