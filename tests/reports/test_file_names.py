import doctest

import focalcal.reports.file_names
from focalcal.reports.file_names import as_file_name, unused


def test_examples():
    assert doctest.testmod(focalcal.reports.file_names) == doctest.TestResults(failed=0, attempted=2)


def test_no_name_leaves_its_folder_or_takes_anothers_place():
    taken = []
    for name in ("../../up", "..", "", "a/b", "a b", "A b", "x" * 500):
        taken.append(unused(as_file_name(name), taken))
        assert taken[-1].strip(".-") == taken[-1] != ""
        assert "/" not in taken[-1]
        assert len(taken[-1]) < 200
    assert len({name.lower() for name in taken}) == len(taken)
