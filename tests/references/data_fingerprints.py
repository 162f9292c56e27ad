"""Fingerprints of splits, so that none changes unnoticed: computed by this package, nowhere published.

CIFAR-10's are of the official content: the mean and deviation of its training pixels equal the published ones to all
eight digits. Posteriors are left out, whose last bit depends on the machine's matrix product.
"""

import pytest

FINGERPRINTS = {
    "digits": {
        "train": "94b7fd6dc264e83f2d9bb2fe181ecb23ce7fa96df7b3da711e2e3c3eb8db0edd",
        "val": "44a528c2922c5d959fcc3f4d6964c5b213b51654abd66c6490f8047f83cddd35",
        "test": "74c07f5e647512b4d57012aa1f89e16bc77c3b650cab7207432c2d47714219c2",
    },
    "cifar10": {
        "train": "e9e1b37980432f592e54b25c64b721f7faa88731bf84c5cf467be3eb3486fd2d",
        "val": "171912e63a2e9b2f144923fd7dc94c64f6148f65b726437f7f588cd4292a3ad4",
        "test": "dee6eec10fe69edb2e7698b5bc124d1667a994c8e5e3e77eb2abf025709f8f3b",
    },
    "gaussian_mixture": {
        "train": "be1e4a522e3ff7fbe26d2d52310f1619eaae02ffc0df2aadf8d50c0cf5361eeb",
        "val": "db41a34ae653f4c07eb41017a6f3a1f76cec999a217dd40f9ca7dc6626d971e4",
        "test": "48940909d8dd311786d879ede1df4ec8e519f27dec11508c74317708f6c403f2",
    },
    "discrete": {
        "train": "3f4b1d37719686c2a75fcb5b7a4a788af9ac9e1f0c4376833ef9fe95c8bf9af3",
        "val": "0de44498c59563aa0d8c267615799b00bb06db6e94cd403f044c2b6f80ad860c",
        "test": "368cb396cfaef79b7ee411796c040d5435e7b86179a33188bd4415f8c2ffbf30",
    },
}

# Of copies and parts: the SHA-256 of the last file read, and the fingerprints that belong to it and no other.
OF_FILES = {
    "cifar100": (
        "5329fcbee584ecaa69e3304479628e7220dfaf563e314bfb22d3871c2003a589",
        {"test": "cb246bb5e6e7ff4a0336a8f9d1de89a202a8d38c790d64091840e025c30bac74"},
    ),
    "svhn": (
        "1a7dcd7039ce234976f5614e091c61019b3ad484b0d7bb1c4936e4df4c857f88",
        {"test": "dbd0cc7c959391ae0dc366969b9c68272df19b75b2ab5228856af56354c56f3a"},
    ),
    "newsgroups": (
        "e09ea16bfa8db929ce9abb2de722451e2009916ad0ba3cdf2209b4f09a4da526",
        {
            "train": "4227c0917bb22dce2d471a5a3818123f3b41f1ab18cbd5328aaa9e8649c9786d",
            "val": "dd06b98cf197dbe5022583d334274b00a716f4d0a0749380174872c9787b4a05",
            "test": "0f8382f4c75ac7ecb031e988eb8937b3fe1d0d1b8fecb9c8105fd03650fce10b",
        },
    ),
    "newsgroups_19997": (
        "7eca907871e8e3d99095736b4a402d7ca9161438c85a6cf90f4f473f668f4ed6",
        {
            "train": "f5bd4a8d0f832e191b1f3caa555cfc52a107c1e65196eb92b63c804fae336889",
            "val": "823525a0790e6d55d014040252e40c4a864937226046d94d24197f0328cbc9fc",
            "test": "4cc9e765395e23d73b844632bacf85043ab6a35984b772306590e405da417d53",
        },
    ),
    "ag_news": (
        "79443885edce9f5fd7b3eb2ffb4c0c7bb870ed8267d929f4e8ce7b128cb03bb4",
        {
            "train": "4c8c19140d50cc916bef432fa4786db14cc3ee0cd6530f2736d78d520df2dd69",
            "test": "425fde3a57abac953e60243d05a06ab1af25cc58353009d3eaba6e85c9a29f65",
        },
    ),
    "finsen": (
        "fdb2fb1e0e61dd69a5e2fd540c4fff19252163114392c6eed1424ceb44d37bd2",
        {
            "train": "30296e2189ab89884b7bec2cf105398f5b1fc626e3644cf4d9e99032f6b1c2a0",
            "test": "6ba125a07f4bfd8dcb046b7febba6d2fa4274a372f75c89941ef6234052af6b2",
        },
    ),
    "finsen, stripped": (
        "fdb2fb1e0e61dd69a5e2fd540c4fff19252163114392c6eed1424ceb44d37bd2",
        {
            "train": "30d91eaf63aab25da53e0360f09459ec31739e6b7784e4e2c1e174c9576b9956",
            "test": "ba24c1fc747357c6d2b18c9c318ecfd077bfac3f6c9c9caf38750ece8c9e22e2",
        },
    ),
}


def assert_pinned(key, data):
    """The splits that this data set's files have always had; skip if these are other files."""
    file, expected = OF_FILES[key]
    if data.provenance["files"][-1]["sha256"] != file:
        pytest.skip(f"the {data.name} at hand is not the copy whose splits are pinned")
    assert {split: data.provenance["fingerprints"][split] for split in expected} == expected
    assert all(len(data.splits[split]) == 0 for split in set(data.splits) - set(expected))
