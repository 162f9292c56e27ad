"""`python -m paper.theory`: what it leaves is whole, whenever it is stopped."""

import os
import sys

import paper.theory.__main__ as command
import paper.theory.result_files
import pytest


@pytest.mark.parametrize(("options", "cross_check"), [([], True), (["--no-cross-check"], False)])
def test_the_study_is_told_what_was_asked_for_and_the_files_are_named(
    study, tmp_path, monkeypatch, capsys, options, cross_check
):
    told = []
    monkeypatch.setattr(command, "run_study", lambda **asked: told.append(asked["cross_check"]) or study)
    monkeypatch.setattr(sys, "argv", ["theory", "--out", str(tmp_path / "new" / "theory"), *options])
    command.main()
    assert told == [cross_check]
    written = sorted(path.name for path in (tmp_path / "new" / "theory").iterdir())
    assert written == sorted(paper.theory.result_files.FILES)
    assert str(tmp_path / "new" / "theory" / "index.html") in capsys.readouterr().out.splitlines()


def test_an_interrupt_while_writing_leaves_whole_files_only(tmp_path, monkeypatch):
    contents = {name: name.encode() * 1000 for name in paper.theory.result_files.FILES}
    monkeypatch.setattr(paper.theory.result_files, "rendered_study", lambda study: contents)
    calls, fsync = iter(range(100)), os.fsync

    def interrupted_at_the_third(descriptor):
        if next(calls) == 2:
            raise KeyboardInterrupt
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        paper.theory.result_files.write_study(None, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict(list(contents.items())[:2])
