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


def test_neither_order_nor_padding_matters():
    network = DeepAveragingNetwork(4, vocabulary=30).eval()
    tokens = torch.randint(1, 30, (3, 12))
    padded = torch.cat([tokens[:, torch.randperm(12)], torch.zeros(3, 5, dtype=torch.long)], 1)
    torch.testing.assert_close(network(padded), network(tokens))


def test_a_document_without_words_has_the_logits_of_a_zero_vector():
    network = DeepAveragingNetwork(4, vocabulary=30, hidden=()).eval()
    torch.testing.assert_close(network(torch.zeros(1, 3, dtype=torch.long))[0], network.classifier.linear.bias)


def test_given_vectors_are_those_of_the_text_cnn():
    matrix = torch.randn(30, 6)
    assert not DeepAveragingNetwork(4, embedding=matrix).embedding.weight.requires_grad
    network = DeepAveragingNetwork(4, embedding=matrix, train_embedding=True)
    assert torch.equal(network.embedding.weight, matrix)
    network(torch.randint(0, 30, (3, 40))).sum().backward()
    assert network.embedding.weight.grad.any()
    assert not network.embedding.weight.grad[0].any()  # padding


def test_bad_tokens():
    with pytest.raises(ValueError, match=r"tokens must be \(N, L\), got shape \(3,\); pad the documents with id 0"):
        DeepAveragingNetwork(4, vocabulary=30)(torch.ones(3, dtype=torch.long))
