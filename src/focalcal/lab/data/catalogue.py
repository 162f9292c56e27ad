"""Where each data set comes from, what it must hold, and what one may do with it.

A checksum stands here only if it is published by the data set's authors or pinned by a widely used library for the same
file; None means that none is known to us, and then only the content is checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from focalcal.core.checks import unknown_name


@dataclass(frozen=True)
class Remote:
    """A file to download: from `url` to `path` in the data folder, then unpacked into the folder `unpack_into`.

    `checksum` is `md5:...` or `sha256:...`. A file with `unpack_into` None is read as it is; "." is the data folder.
    """

    url: str
    path: str
    size: int | None = None
    checksum: str | None = None
    unpack_into: str | None = None


@dataclass(frozen=True)
class CatalogueEntry:
    """A data set: what it is, the folder its loader reads (None: no file is needed), its files and its licence."""

    description: str
    folder: str | None = None
    remotes: tuple[Remote, ...] = ()
    licence: str = "none needed: made by this package"
    by_hand: str | None = None  # what to do where no address can be downloaded without a person


_TORONTO = "https://www.cs.toronto.edu/~kriz"
_FREE = "none stated; free to download for research, cite the authors"


def _archive(
    url: str, size: int | None, checksum: str | None, *, into: str = ".", name: str | None = None
) -> tuple[Remote, ...]:
    return (Remote(url, name or url.rpartition("/")[2], size, checksum, into),)


def _files(source: str, folder: str, *files: tuple[str, int | None, str]) -> tuple[Remote, ...]:
    """Each (name, size, checksum), read as it is."""
    return tuple(Remote(f"{source}/{name}", f"{folder}/{name}", size, checksum) for name, size, checksum in files)


CATALOGUE = {
    "digits": CatalogueEntry("1,797 handwritten digits, 8x8, inside scikit-learn", licence="CC BY 4.0 (UCI)"),
    "cifar10": CatalogueEntry(
        "60,000 colour images, 32x32, 10 classes",
        "cifar-10-batches-py",
        _archive(f"{_TORONTO}/cifar-10-python.tar.gz", 170_498_071, "md5:c58f30108f718f92721af3b95e74349a"),
        _FREE,
    ),
    "cifar100": CatalogueEntry(
        "60,000 colour images, 32x32, 100 classes",
        "cifar-100-python",
        _archive(f"{_TORONTO}/cifar-100-python.tar.gz", 169_001_437, "md5:eb9058c3a382ffc7106e4002c42a8d85"),
        _FREE,
    ),
    "cifar10c": CatalogueEntry(
        "CIFAR-10's test images under 15 corruptions at 5 severities",
        "CIFAR-10-C",
        _archive(
            "https://zenodo.org/records/2535967/files/CIFAR-10-C.tar",
            2_918_471_680,
            "md5:56bf5dcef84df0e2308c6dcbcbbd8499",
        ),
        "CC BY 4.0",
    ),
    "svhn": CatalogueEntry(
        "99,289 house numbers, 32x32, 10 digits",
        "svhn",
        _files(
            "http://ufldl.stanford.edu/housenumbers",
            "svhn",
            ("train_32x32.mat", 182_040_794, "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
            ("test_32x32.mat", 64_275_384, "md5:eb5a983be6a315427106f1b164d9cef3"),
        ),
        "non-commercial use only",
    ),
    "fashion_mnist": CatalogueEntry(
        "70,000 grey images of clothes, 28x28, 10 classes",
        "fashion-mnist",
        _files(
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "fashion-mnist",
            ("train-images-idx3-ubyte.gz", 26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
            ("train-labels-idx1-ubyte.gz", 29_515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
            ("t10k-images-idx3-ubyte.gz", 4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79"),
            ("t10k-labels-idx1-ubyte.gz", 5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
        ),
        "MIT",
    ),
    "tiny_imagenet": CatalogueEntry(
        "110,000 labelled colour images, 64x64, 200 classes",
        "tiny-imagenet-200",
        _archive(
            "http://cs231n.stanford.edu/tiny-imagenet-200.zip", 248_100_043, "md5:90528d7ca1a48142e341f4ef8d21d0de"
        ),
        "ImageNet's terms: non-commercial research and education",
    ),
    "newsgroups": CatalogueEntry(
        "18,846 posts of 20 newsgroups, split by date, without duplicates",
        "20news-bydate",
        _archive(  # the copy that scikit-learn downloads and pins
            "https://ndownloader.figshare.com/files/5975967",
            None,
            "sha256:8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
            into="20news-bydate",
            name="20news-bydate.tar.gz",
        ),
        _FREE,
    ),
    "newsgroups_19997": CatalogueEntry(
        "the original 19,997 posts of 20 newsgroups, cross-posts included",
        "20_newsgroups",
        _archive("http://qwone.com/~jason/20Newsgroups/20news-19997.tar.gz", None, None),
        _FREE,
    ),
    "ag_news": CatalogueEntry(
        "127,600 news items, 4 classes",
        "ag_news_csv",
        _files(
            "https://raw.githubusercontent.com/mhjabreel/CharCnn_Keras/master/data/ag_news_csv",
            "ag_news_csv",
            ("train.csv", None, "md5:b1a00f826fdfbd249f79597b59e1dc12"),
            ("test.csv", None, "md5:d52ea96a97a2d943681189a97654912d"),
        ),
        "non-commercial use only",
    ),
    "finsen": CatalogueEntry(
        "about 15,534 financial news items, 12 classes; its text gives the class away",
        "finsen",
        licence=_FREE,
        by_hand="take FinSen_US_Categorized.csv from https://github.com/EagleAdelaide/FinSen_Dataset",
    ),
    "chestxray14": CatalogueEntry(
        "112,120 chest radiographs of 30,805 patients, 14 findings",
        "chestxray14",
        licence="free for research; acknowledge the NIH Clinical Center",
        by_hand="download the 12 archives images_001.tar.gz ... images_012.tar.gz, Data_Entry_2017.csv (or _v2020), "
        "train_val_list.txt and test_list.txt from https://nihcc.app.box.com/v/ChestXray-NIHCC",
    ),
    "gaussian_mixture": CatalogueEntry("Gaussian classes whose posterior is known exactly"),
    "discrete": CatalogueEntry("40 states and 5 classes whose posterior is known exactly"),
    "teacher": CatalogueEntry("real inputs with labels drawn from a fixed teacher, whose posterior is known exactly"),
    "glove": CatalogueEntry(
        "GloVe 6B word vectors, 400,000 words",
        "glove",
        _archive(
            "https://nlp.stanford.edu/data/glove.6B.zip",
            862_182_613,
            "sha256:617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb",
            into="glove",
        ),
        "PDDL 1.0",
    ),
}
"""What each data set is, where its files come from, and their licence."""


def catalogue_entry(name: str) -> CatalogueEntry:
    """The entry of that name; an unknown name lists the known ones."""
    if name not in CATALOGUE:
        raise ValueError(unknown_name("a data set", name, CATALOGUE))
    return CATALOGUE[name]


def by_hand(name: str, folder: object) -> str:
    """What to put where, for a machine without a network."""
    files = catalogue_entry(name)
    if files.by_hand:
        return f"{files.by_hand}, and put it into {folder}/{files.folder}"
    return f"put {' and '.join(describe(remote, folder) for remote in files.remotes)}"


def describe(remote: Remote, folder: object) -> str:
    """A file's address, what is known of it, and where it belongs."""
    size = f"{remote.size} bytes, " if remote.size else ""
    return f"{remote.url} ({size}{remote.checksum or 'checksum unknown'}) as {folder}/{remote.path}"
