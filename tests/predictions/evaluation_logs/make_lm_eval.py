"""Write the samples of lm-evaluation-harness 0.4.13: `python make_lm_eval.py`, with lm_eval, transformers and torch.

The model is a GPT-2 of random weights with a vocabulary of 40 words; questions have three or four options.
"""

import json
import os
import random
import sys
from pathlib import Path

os.environ["HF_DATASETS_OFFLINE"] = os.environ["HF_HUB_OFFLINE"] = "1"

import tempfile

import tokenizers
import torch
import transformers
from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.models.huggingface import HFLM
from lm_eval.tasks import TaskManager

HERE = Path(__file__).parent
WORDS = ["<pad>", "<eos>", "Question:", "Answer:", *(f"w{i}" for i in range(36))]
DRAW = random.Random(0)


def language_model(seed):
    torch.manual_seed(seed)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<pad>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    size = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64, "initializer_range": 0.6}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=len(WORDS), **size))
    return HFLM(pretrained=model.eval(), tokenizer=tokenizer, batch_size=4)


def question(number, options):
    words = DRAW.sample(WORDS[4:], 3 + options)
    return {
        "number": number,
        "subject": ("law", "botany")[number % 2],
        "question": " ".join(words[:3]),
        "choices": words[3:],
        "answer": DRAW.randrange(options),
    }


def task(name, folder, questions, metrics=("acc",), **more):
    path = Path(folder) / f"{name}.json"
    path.write_text("\n".join(map(json.dumps, questions)))
    own = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}},
        "test_split": "test",
        "doc_to_text": "Question: {{question}} Answer:",
        "target_delimiter": " ",
    }
    choice = {
        "output_type": "multiple_choice",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{answer}}",
        "metric_list": [{"metric": name} for name in metrics],
    }
    return own | (more or choice)


generate = {
    "output_type": "generate_until",
    "doc_to_target": "{{choices[answer]}}",
    "generation_kwargs": {"until": ["<eos>"], "max_gen_toks": 3},
    "metric_list": [{"metric": "exact_match"}],
}
with tempfile.TemporaryDirectory() as folder:
    fours, mixed = [question(n, 4) for n in range(40)], [question(n, 3 + n % 2) for n in range(24)]
    tasks = [
        task("four_options", folder, fours, ("acc", "brier_score")),
        task("three_or_four", folder, mixed),
        task("free_answers", folder, fours[:4], **generate),
    ]
    for name, seed in (("model_a", 0), ("model_b", 1)):
        chosen = tasks if name == "model_a" else tasks[:2]
        results = simple_evaluate(
            language_model(seed), tasks=chosen, task_manager=TaskManager(), log_samples=True, bootstrap_iters=0
        )
        samples = results.pop("samples")
        where = HERE / "lm_eval" / name
        tracker = EvaluationTracker(output_path=str(where))
        tracker.general_config_tracker.model_name_sanitized, tracker.date_id = "", "2026-11-19"
        for one in samples:
            tracker.save_results_samples(task_name=one, samples=samples[one])
        own = {
            name: {k: v for k, v in found.items() if "stderr" not in k} for name, found in results["results"].items()
        }
        where.mkdir(parents=True, exist_ok=True)
        (where / "results.json").write_text(json.dumps(own, indent=1))
sys.stdout.write("done\n")
