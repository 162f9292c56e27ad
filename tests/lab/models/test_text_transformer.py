"""BERT for documents, from weights that the package writes here."""

import pytest
import torch
from support.model_examples import small

from focalcal.lab.models import build_model


@pytest.fixture(autouse=True)
def package():
    return pytest.importorskip("transformers")


def test_neither_padding_nor_the_rest_of_the_batch_matters():
    network = small("minilm").eval()
    tokens = torch.randint(1, 50, (3, 12))
    tokens[0, 5:] = 0
    together = network(tokens)
    torch.testing.assert_close(network(tokens[:1, :5]), together[:1])
    torch.testing.assert_close(network(torch.cat([tokens, torch.zeros(3, 40, dtype=torch.long)], 1)), together)
    seen = []
    network.network.bert.encoder.register_forward_pre_hook(lambda _m, inputs: seen.append(inputs[0].shape[1]))
    network(tokens[:1])
    assert seen == [5]  # columns


def test_weights_from_a_folder_with_a_new_head(package, tmp_path):
    architecture = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    published = package.BertModel(package.BertConfig(**architecture, intermediate_size=64))
    published.save_pretrained(tmp_path)
    network = small("minilm", pretrained=str(tmp_path), dropout=0.3)
    state = network.network.bert.state_dict()
    assert all(torch.equal(state[name], value) for name, value in published.state_dict().items())
    assert {module.p for module in network.modules() if isinstance(module, torch.nn.Dropout)} == {0.3}
    with pytest.raises(ValueError, match="pretrained must hold a network with num_hidden_layers = 3, got 2"):
        small("minilm", pretrained=str(tmp_path), layers=3)
    with pytest.raises(ValueError, match=r"tokens must be \(N, L\), got shape \(4,\)"):
        network(torch.ones(4, dtype=torch.long))


@pytest.mark.slow
def test_the_real_weights(data_folder):
    folder = data_folder / "minilm-l6"
    if not folder.is_dir():
        pytest.skip(f"needs the weights of all-MiniLM-L6-v2 in {folder} (docs/guide/models.md)")
    from focalcal.lab.data.documents import WordPieces

    pieces = WordPieces(folder / "tokenizer.json")
    texts = ["Shares fall as the bank warns on profit", "Stocks drop after lender's earnings alert", "They won the cup"]
    tokens = torch.from_numpy(pieces.rows(texts, length=32))
    network = build_model("minilm", classes=4, pretrained=str(folder)).eval()
    with torch.no_grad():
        hidden = network.network.bert(input_ids=tokens, attention_mask=tokens != 0).last_hidden_state
    mask = (tokens != 0)[..., None]
    vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1))
    alike = vectors @ vectors.T  # the mean over the tokens is what these weights were tuned for
    assert alike[0, 1] > 0.5 > alike[0, 2]
