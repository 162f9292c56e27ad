"""Rewards of reinforcement learning that pay for being right and for saying how sure one is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["brier_reward", "grpo_reward"]


def brier_reward(confidence: float, correct: float, *, weight: float = 1.0) -> float:
    """correct - weight (confidence - correct)^2.

    The Brier score is strictly proper: whatever the answer, the expected reward of stating c is largest where c is
    the probability of being right. With weight <= 1 an answer that is right more often is never worth less, since
    at the best c the expected reward is p - weight p (1 - p), which rises with p (Damani et al., 2025, "Beyond
    binary rewards: training LMs to reason about their uncertainty", has weight 1).

    Args:
        confidence: as stated, in [0, 1].
        correct: 0, 1 or a grade between them.
        weight: of the Brier score.

    Returns:
        The reward.

    >>> brier_reward(0.8, 1), round(brier_reward(0.8, 0), 2)
    (0.96, -0.64)
    """
    for name, value in (("confidence", confidence), ("correct", correct)):
        if not 0 <= value <= 1:
            raise ValueError(f"{name} must be from 0 to 1, got {value!r}; divide percentages by 100")
    if not weight >= 0:
        raise ValueError(f"weight must be >= 0, got {weight!r}; 1 counts the Brier score as much as being right")
    return float(correct) - weight * (float(confidence) - float(correct)) ** 2


def grpo_reward(
    read: Callable[[Any, dict[str, Any]], tuple[float, float] | None], *, weight: float = 1.0
) -> Callable[..., list[float]]:
    """`GRPOTrainer(reward_funcs=grpo_reward(read))`: `brier_reward` of what `read(completion, row)` finds.

    Args:
        read: returns the stated confidence and whether the answer is right, `row` being the columns of the data
            set; or None for a completion that cannot be read, which is paid as the worst there is, -weight.
        weight: of the Brier score.

    Returns:
        A function from completions to rewards.

    >>> reward = grpo_reward(lambda completion, row: (0.8, row["answer"] in completion))
    >>> [round(paid, 2) for paid in reward(["It is Rome", "It is Bern"], answer=["Rome", "Rome"])]
    [0.96, -0.64]
    """

    def reward(completions: Sequence[Any], **columns: Any) -> list[float]:
        rewards = []
        for at, completion in enumerate(completions):
            row = {
                name: values[at]
                for name, values in columns.items()
                if isinstance(values, list | tuple) and len(values) == len(completions)
            }
            found = read(completion, row)
            rewards.append(-float(weight) if found is None else brier_reward(*found, weight=weight))
        return rewards

    reward.__name__ = "brier_reward"  # what a trainer logs it as
    return reward
