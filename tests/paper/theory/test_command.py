"""`python -m paper.theory`: where it writes, and that what it leaves is whole."""

import os
import sys

import paper.theory.result_files
import paper.theory.theory_study
import pytest
from paper.theory.__main__ import app
from typer.testing import CliRunner

from focalcal.lab.store import Store


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_study_writes_its_folder_and_says_where(run, tmp_path):
    result = run("--out", tmp_path / "new" / "theory", "--no-cross-check")
    assert result.exit_code == 0
    written = sorted(path.name for path in (tmp_path / "new" / "theory").iterdir())
    assert written == sorted(paper.theory.result_files.FILES)
    assert str(tmp_path / "new" / "theory" / "index.html") in result.output.splitlines()


def test_study_writes_beside_the_reports_of_the_store_that_it_makes_if_need_be(run, tmp_path, monkeypatch):
    monkeypatch.setattr(paper.theory.theory_study, "run_study", lambda **_: None)
    monkeypatch.setattr(paper.theory.result_files, "write_study", lambda study, out: [out])
    monkeypatch.setenv("FOCALCAL_STORE", str(tmp_path / "usual"))
    assert run().stdout.splitlines()[0] == str(tmp_path / "usual" / "report" / "theory")
    named = run("--store", tmp_path / "named")
    assert named.stdout.splitlines()[0] == str(tmp_path / "named" / "report" / "theory")
    for name in ("usual", "named"):
        assert Store(tmp_path / name, create=False).runs() == []


def test_an_interrupted_study_writes_nothing(run, tmp_path, monkeypatch):
    def interrupted(**_):
        raise KeyboardInterrupt

    monkeypatch.setattr(paper.theory.theory_study, "run_study", interrupted)
    result = run("--out", tmp_path / "theory")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr == "focalcal: interrupted; no file was left half-written\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_while_writing_leaves_whole_files_only(run, tmp_path, monkeypatch):
    contents = {name: name.encode() * 1000 for name in paper.theory.result_files.FILES}
    monkeypatch.setattr(paper.theory.theory_study, "run_study", lambda **_: None)
    monkeypatch.setattr(paper.theory.result_files, "rendered_study", lambda study: contents)
    calls = iter(range(100))
    fsync = os.fsync

    def interrupted_at_the_third(descriptor):
        if next(calls) == 2:
            raise KeyboardInterrupt
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted_at_the_third)
    assert run("--out", tmp_path).exit_code == 130
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict(list(contents.items())[:2])


@pytest.mark.parametrize(("options", "wanted"), [([], True), (["--no-cross-check"], False)])
def test_the_study_is_told_what_was_asked_for(run, tmp_path, monkeypatch, options, wanted):
    told = []

    def running(*, cross_check, progress):
        progress(1, 2)
        told.append(cross_check)

    monkeypatch.setattr(paper.theory.theory_study, "run_study", running)
    monkeypatch.setattr(paper.theory.result_files, "write_study", lambda study, out: [out / "one", out / "two"])
    result = run("--out", tmp_path, *options)
    assert result.stdout.splitlines()[:2] == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert told == [wanted]


@pytest.mark.parametrize("package", ["matplotlib", "jinja2", "pyarrow", "rich"])
def test_a_missing_package_is_named_with_its_extra_before_the_study_runs(run, tmp_path, monkeypatch, package):
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)
    ran = []
    monkeypatch.setattr(paper.theory.theory_study, "run_study", lambda **_: ran.append(True))
    result = run("--out", tmp_path / "theory")
    assert result.exit_code == 2
    assert f"needs the package {package}: pip install " in result.stderr
    assert (ran, list(tmp_path.iterdir())) == ([], [])


@pytest.fixture
def unrun(monkeypatch):
    """A study that notes that it ran."""
    ran = []
    monkeypatch.setattr(paper.theory.theory_study, "run_study", lambda **_: ran.append(True))
    return ran


@pytest.mark.parametrize("name", ["README.md", "index.html"])
def test_files_that_are_not_a_studys_are_refused_before_it_runs(run, tmp_path, monkeypatch, unrun, name):
    (tmp_path / name).write_text("# mine\n")
    result = run("--out", tmp_path)
    assert (result.exit_code, unrun) == (2, [])
    assert f"got {tmp_path / name}; choose another folder, or overwrite them with --force" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "# mine\n"
    monkeypatch.setattr(paper.theory.result_files, "write_study", lambda study, out: [out])
    assert run("--out", tmp_path, "--force").exit_code == 0
    assert unrun == [True]


def test_a_studys_own_folder_may_be_written_again(run, tmp_path, monkeypatch, unrun):
    (tmp_path / "README.md").write_text(f"{paper.theory.result_files.TITLE}\n\nmore\n")
    (tmp_path / "index.html").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    monkeypatch.setattr(paper.theory.result_files, "write_study", lambda study, out: [out])
    assert run("--out", tmp_path).exit_code == 0
    assert unrun == [True]


def test_a_file_in_place_of_the_folder_is_refused_before_the_study_runs(run, tmp_path, unrun):
    (tmp_path / "afile").write_text("mine")
    result = run("--out", tmp_path / "afile")
    assert (result.exit_code, unrun) == (2, [])
    assert f"--out must be a folder, got the file {tmp_path / 'afile'}; choose another name" in result.stderr
    below = run("--out", tmp_path / "afile" / "theory")
    assert (below.exit_code, unrun) == (2, [])
    assert "--out must be a folder that can be written to" in below.stderr


def test_a_folder_in_place_of_a_file_is_refused_before_the_study_runs(run, tmp_path, unrun):
    (tmp_path / "cases.csv").mkdir()
    result = run("--out", tmp_path, "--force")
    assert (result.exit_code, unrun) == (2, [])
    assert f"must have room for the file cases.csv, got the folder {tmp_path / 'cases.csv'}; rename it" in result.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_refused_before_the_study_runs(run, tmp_path, unrun):
    tmp_path.chmod(0o500)
    result = run("--out", tmp_path / "theory")
    tmp_path.chmod(0o700)
    assert (result.exit_code, unrun) == (2, [])
    assert "--out must be a folder that can be written to" in result.stderr
