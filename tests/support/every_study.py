"""Every study of the repository by its name, as `load_study` takes it."""

from paper import STUDIES

from focalcal.lab.studies.shipped import shipped_names

EVERY_STUDY = {name: name for name in shipped_names()} | {
    path.stem: str(path) for path in sorted(STUDIES.glob("*.toml"))
}
