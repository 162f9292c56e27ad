"""The text CNN, the perceptron and the small CNN."""

import pytest
import torch
import torch.nn.functional as F

from focalcal.lab.models import MLP, GlobalPoolingCNN, SmallCNN


def test_the_text_network_is_its_formula():
    network = GlobalPoolingCNN(4, vocabulary=30, dimension=6).eval()
    tokens = torch.randint(0, 30, (3, 40))
    maps = network.embedding.weight[tokens].transpose(1, 2)
    for convolution in (network.conv1, network.conv2):
        maps = F.conv1d(maps, convolution.weight, convolution.bias).clamp(min=0)
        maps = maps.unfold(2, 5, 1).amax(3)
    strongest = F.conv1d(maps, network.conv3.weight, network.conv3.bias).clamp(min=0).amax(2)
    hidden = (strongest @ network.hidden.weight.T + network.hidden.bias).clamp(min=0)
    torch.testing.assert_close(network(tokens), hidden @ network.linear.weight.T + network.linear.bias)
    assert network.dropout.p == 0.3


def test_a_given_embedding_stays_and_a_random_one_learns():
    matrix = torch.randn(30, 6)
    assert not GlobalPoolingCNN(4, embedding=matrix).embedding.weight.requires_grad
    assert GlobalPoolingCNN(4, vocabulary=30).embedding.weight.requires_grad
    assert not GlobalPoolingCNN(4, vocabulary=30, train_embedding=False).embedding.weight.requires_grad
    network = GlobalPoolingCNN(4, embedding=matrix, train_embedding=True)
    assert torch.equal(network.embedding.weight, matrix)
    network(torch.randint(0, 30, (3, 40))).sum().backward()
    assert network.embedding.weight.grad.any()
    assert not network.embedding.weight.grad[0].any()  # padding
    with torch.no_grad():
        network.embedding.weight += 1
    assert not torch.equal(network.embedding.weight, matrix)
    assert matrix.mean().abs() < 0.5  # the caller's is untouched


def test_the_shortest_document_and_bad_arguments_of_the_text_network():
    network = GlobalPoolingCNN(4, vocabulary=30).eval()
    assert network(torch.randint(0, 30, (2, 21))).shape == (2, 4)
    for tokens in (torch.zeros(2, 20, dtype=torch.long), torch.zeros(21, dtype=torch.long)):
        with pytest.raises(ValueError, match=r"tokens must be \(N, L\) with L >= 21, .*; pad the documents"):
            network(tokens)
    for embedding, error, message in (
        (torch.zeros(3, 4, dtype=torch.long), TypeError, "must be a floating-point tensor, got torch.int64"),
        ([[1.0]], TypeError, "must be a floating-point tensor, got list"),
        (torch.zeros(3), ValueError, r"must be a matrix \(V, D\), .*, got shape \(3,\)"),
    ):
        with pytest.raises(error, match=f"embedding {message}"):
            GlobalPoolingCNN(4, embedding=embedding)


def test_an_mlp_without_hidden_layers_is_linear_flattens_images_and_counts_them():
    network = MLP(3, features=12, hidden=(), dropout=0.5)
    inputs = torch.randn(5, 12)
    torch.testing.assert_close(network(inputs), inputs @ network.linear.weight.T + network.linear.bias)
    assert network(torch.randn(5, 3, 2, 2)).shape == (5, 3)
    with pytest.raises(
        ValueError, match=r"features = 12 numbers per example, got 8 .*; build the network with features=8"
    ):
        network(torch.randn(5, 8))
    with pytest.raises(ValueError, match="hidden must be >= 1, got 0"):
        MLP(3, features=12, hidden=(0,))


@pytest.mark.parametrize(("channels", "side"), [(1, 4), (1, 8), (1, 28), (3, 32)])
def test_the_small_cnn_takes_any_image(channels, side):
    network = SmallCNN(10, channels=channels).eval()
    images = torch.randn(2, channels, side, side)
    assert network.features(images).shape == (2, 128, side // 4, side // 4)
    assert network(images).shape == (2, 10)
