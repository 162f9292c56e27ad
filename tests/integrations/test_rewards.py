"""A reward for stated confidences pays best what is the probability of being right; a policy learns it."""

import numpy as np
import pytest

from focalcal.integrations.rewards import brier_reward, grpo_reward


@pytest.mark.parametrize("weight", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("right", [0.0, 0.3, 0.77, 1.0])
def test_the_best_confidence_is_the_probability_of_being_right(right, weight):
    grid = np.linspace(0, 1, 101)
    expected = [
        right * brier_reward(c, 1, weight=weight) + (1 - right) * brier_reward(c, 0, weight=weight) for c in grid
    ]
    assert grid[int(np.argmax(expected))] == pytest.approx(right, abs=1e-9)


def test_a_toy_policy_learns_to_say_how_often_it_is_right():
    """Policy gradients with the advantages of GRPO, (reward - mean) / std of a group of 64, over eleven confidences."""
    draws, right, scores = np.random.default_rng(0), 0.7, np.zeros(11)
    reward = grpo_reward(lambda completion, row: (completion / 10, row["right"]))
    for _ in range(600):
        policy = np.exp(scores - scores.max())
        policy /= policy.sum()
        said = draws.choice(11, 64, p=policy)
        paid = np.array(reward(said.tolist(), right=(draws.random(64) < right).astype(float).tolist()))
        advantage = (paid - paid.mean()) / (paid.std() + 1e-4)
        gradient = np.bincount(said, advantage, 11) - advantage.sum() * policy
        scores += 0.02 * gradient / 8
    assert scores.argmax() in (6, 7, 8)
    assert abs((np.arange(11) / 10 * policy).sum() - right) < 0.12


def test_what_cannot_be_read_is_paid_as_the_worst():
    reward = grpo_reward(lambda completion, row: None if completion == "?" else (0.9, row["right"]), weight=0.5)
    found = reward(["?", "yes"], right=[1, 0], prompts=["a", "b"], trainer_state=object())
    assert found == [-0.5, pytest.approx(-0.405)]
    for wrong in ((80, 1), (0.5, 2)):
        with pytest.raises(ValueError, match="must be from 0 to 1"):
            brier_reward(*wrong)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_trls_grpo_trainer_takes_the_reward(tmp_path):
    trl, transformers = pytest.importorskip("trl"), pytest.importorskip("transformers")
    datasets, tokenizers = pytest.importorskip("datasets"), pytest.importorskip("tokenizers")
    words = ["<pad>", "<eos>", "q", *(f"c{k}" for k in range(11))]
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<pad>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=made, pad_token="<pad>", eos_token="<eos>")
    size = {"n_embd": 8, "n_layer": 1, "n_head": 1, "n_positions": 8, "bos_token_id": 1, "eos_token_id": 1}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(words), pad_token_id=0, **size))
    paid = []

    def read(completion, row):
        stated = completion.split()[:1]
        paid.append(row["right"])
        return (int(stated[0][1:]) / 10, row["right"]) if stated and stated[0].startswith("c") else None

    trainer = trl.GRPOTrainer(
        model=model,
        reward_funcs=grpo_reward(read),
        train_dataset=datasets.Dataset.from_dict({"prompt": ["q"] * 8, "right": [1.0, 0.0] * 4}),
        processing_class=tokenizer,
        args=trl.GRPOConfig(
            str(tmp_path), max_steps=2, per_device_train_batch_size=4, num_generations=4, max_completion_length=2,
            report_to="none", disable_tqdm=True, use_cpu=True, bf16=False, save_strategy="no", logging_steps=1,
        ),
    )  # fmt: skip
    trainer.train()
    logged = [record for record in trainer.state.log_history if "rewards/brier_reward/mean" in record]
    assert len(logged) == 2
    assert len(paid) == 8
    assert all(-1 <= record["rewards/brier_reward/mean"] <= 1 for record in logged)
