"""What every entry of MODELS promises, whatever its architecture."""

import copy
import doctest
import pickle

import pytest
import torch
import torch.nn.functional as F
from support.model_examples import CLASSES, TRANSFORMERS, inputs, small

import focalcal.lab.models
from focalcal.lab.models import MODEL_INFO, MODELS, build_model

# Entries that differ from another in depth or in their description alone need not all be built again and again.
FAMILIES = [
    n for n in MODELS if n not in ("resnet32", "resnet44", "resnet56", "resnet110", "resnet50_tiny", "deit_small")
]
ONE_OF_A_CLASS = [n for n in FAMILIES if n not in ("resnet20", "resnet50", "wide_resnet26_10", "chexnet")]
COMPILED = ["resnet8", "gp_cnn", "dan", "mlp", "small_cnn"]


@pytest.fixture(autouse=True)
def _transformers(request):
    if any(name in request.node.name for name in TRANSFORMERS):
        pytest.importorskip("transformers")


def gradients(network, batch, labels):
    network.zero_grad()
    F.cross_entropy(network(batch), labels).backward()
    return {name: p.grad for name, p in network.named_parameters() if p.requires_grad}


@pytest.mark.parametrize("name", MODELS)
def test_a_step_of_training_moves_every_weight_and_lowers_the_loss(name):
    network = small(name).train()
    batch, labels = inputs(name, 6), torch.arange(6) % CLASSES
    logits = network(batch)
    assert logits.shape == (6, CLASSES)
    assert logits.dtype == torch.float32
    grads = gradients(network, batch, labels)
    assert grads
    for parameter, grad in grads.items():
        assert grad is not None, parameter
        assert torch.isfinite(grad).all(), parameter
        if not parameter.endswith("k_proj.bias"):  # a constant added to every key's score leaves a softmax as it is
            assert grad.any(), parameter
    torch.manual_seed(1)  # for the dropout
    before = F.cross_entropy(network(batch), labels)
    norm = torch.stack([g.square().sum() for g in grads.values()]).sum().sqrt()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.grad is not None:
                parameter -= 1e-2 / norm * parameter.grad
    torch.manual_seed(1)
    assert F.cross_entropy(network(batch), labels) < before


@pytest.mark.parametrize("name", MODELS)
def test_in_evaluation_an_example_has_one_answer(name):
    network = small(name).eval()
    batch = inputs(name)
    state = {key: value.clone() for key, value in network.state_dict().items()}
    with torch.no_grad():
        logits = network(batch)
        assert torch.equal(network(batch), logits)
        for row in (0, 3):
            torch.testing.assert_close(network(batch[row : row + 1]), logits[row : row + 1], rtol=1e-4, atol=1e-4)
    assert all(torch.equal(value, state[key]) for key, value in network.state_dict().items())


@pytest.mark.parametrize("name", ONE_OF_A_CLASS)
def test_the_seed_decides_the_weights(name):
    first = small(name).state_dict()
    second = small(name).state_dict()
    torch.manual_seed(0)
    again = small(name).state_dict()
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert any(not torch.equal(first[key], second[key]) for key in first)


@pytest.mark.parametrize("name", ONE_OF_A_CLASS)
def test_survives_copy_pickle_and_state_dict(name):
    network = small(name).eval()
    batch = inputs(name, 2)
    fresh = small(name).eval()
    fresh.load_state_dict(network.state_dict())
    with torch.no_grad():
        logits = network(batch)
        for twin in (copy.deepcopy(network), pickle.loads(pickle.dumps(network)), fresh):
            torch.testing.assert_close(twin(batch), logits)


@pytest.mark.parametrize("name", [n for n in FAMILIES if MODEL_INFO[n].feature_layer is not None])
def test_the_named_layer_carries_the_features(name):
    info = MODEL_INFO[name]
    network = small(name).eval()
    kept = []
    handle = network.get_submodule(info.feature_layer).register_forward_hook(lambda _m, _i, output: kept.append(output))
    logits = network(inputs(name, 2))
    handle.remove()
    (features,) = kept
    assert features.dim() == (4 if info.feature_layout == "maps" else 3)
    assert features.shape[0] == 2
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), features)
    patches = gradient[:, 1:] if info.feature_layout == "class_and_patches" else gradient
    assert patches.any()


@pytest.mark.parametrize("name", MODELS)
def test_bad_numbers_of_classes_are_refused(name):
    options = {"features": 4} if MODEL_INFO[name].inputs == "features" else {}
    for wrong in (0, -3):
        with pytest.raises(ValueError, match=rf"classes must be >= \d, got {wrong}"):
            build_model(name, classes=wrong, **options)
    for wrong in (2.5, "10", None, True):
        with pytest.raises(TypeError, match="classes must be a whole number, got"):
            build_model(name, classes=wrong, **options)
    if not MODEL_INFO[name].multilabel:
        with pytest.raises(ValueError, match="classes must be >= 2, got 1"):
            build_model(name, classes=1, **options)


@pytest.mark.parametrize("name", MODELS)
def test_unknown_options_are_refused_by_name(name):
    with pytest.raises(TypeError, match=rf"{name} has no option 'width_of_things'; it has "):
        build_model(name, classes=3, width_of_things=2)


@pytest.mark.parametrize("name", COMPILED)
def test_compiles_as_one_graph(name):
    network = small(name).eval()
    batch = inputs(name, 2)
    with torch.no_grad():
        compiled = torch.compile(network, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(batch), network(batch))


def test_every_entry_is_described():
    assert list(MODEL_INFO) == list(MODELS)


def test_the_example_of_the_docstring():
    results = doctest.testmod(focalcal.lab.models)
    assert results.attempted > 0
    assert results.failed == 0


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"'resnet21' is not a model; did you mean .*Known: resnet8, .*, swin_tiny"):
        build_model("resnet21", classes=10)


def test_the_depth_of_a_name_is_not_an_option():
    with pytest.raises(TypeError, match="resnet20 has no option 'depth'"):
        build_model("resnet20", classes=10, depth=32)
