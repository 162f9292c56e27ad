"""The deep averaging network."""

import pytest
import torch

from focalcal.lab.models import DeepAveragingNetwork


def test_it_is_its_formula():
    network = DeepAveragingNetwork(4, vocabulary=30, dimension=6, hidden=(5,)).eval()
    tokens = torch.randint(1, 30, (3, 12))
    tokens[0, 7:] = 0
    vectors = [network.embedding.weight[row[row > 0]].mean(0) for row in tokens]
    hidden, linear = network.classifier.hidden[0], network.classifier.linear
    expected = linear((torch.stack(vectors) @ hidden.weight.T + hidden.bias).clamp(min=0))
    torch.testing.assert_close(network(tokens), expected)


def test_neither_order_nor_padding_matters_and_without_words_there_is_a_zero_vector():
    network = DeepAveragingNetwork(4, vocabulary=30, hidden=()).eval()
    tokens = torch.randint(1, 30, (3, 12))
    padded = torch.cat([tokens[:, torch.randperm(12)], torch.zeros(3, 5, dtype=torch.long)], 1)
    torch.testing.assert_close(network(padded), network(tokens))
    torch.testing.assert_close(network(torch.zeros(1, 3, dtype=torch.long))[0], network.classifier.linear.bias)
    with pytest.raises(ValueError, match=r"tokens must be \(N, L\), got shape \(3,\); pad the documents with id 0"):
        network(torch.ones(3, dtype=torch.long))
