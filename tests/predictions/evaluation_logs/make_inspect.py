"""Write logs of Inspect 0.3.285: `python make_inspect.py`, with inspect_ai.

Answers come from the package's mock model: letters with the log-probabilities of the four most probable tokens for
`letters`, and text with a stated confidence for `stated`.
"""

import math
import os
import random
import tempfile
from pathlib import Path

os.environ["INSPECT_DISPLAY"] = "none"

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessageAssistant,
    GenerateConfig,
    Logprob,
    Logprobs,
    ModelOutput,
    ModelUsage,
    TopLogprob,
    get_model,
)
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import generate, multiple_choice

HERE = Path(__file__).parent / "inspect"
DRAW = random.Random(0)
USAGE = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer would be fetched


def answer(letter, weights):
    listed = sorted(((math.log(w), token) for token, w in weights.items()), reverse=True)
    top = [TopLogprob(token=token, logprob=p) for p, token in listed]
    token = Logprob(token=letter, logprob=math.log(weights[letter]), top_logprobs=top)
    prefix = Logprob(token="ANSWER: ", logprob=-1e-3, top_logprobs=[])
    message = ChatMessageAssistant(content=f"ANSWER: {letter}", source="generate")
    return ModelOutput(
        model="mockllm/model",
        choices=[ChatCompletionChoice(message=message, logprobs=Logprobs(content=[prefix, token]))],
        usage=USAGE,
    )


def weights():
    drawn = [DRAW.gammavariate(0.5, 1) + 0.01 for _ in range(5)]
    return {token: w / sum(drawn) for token, w in zip("ABCD ", drawn, strict=True) if token != " "}


samples, outputs = [], []
for number in range(12):
    chances = weights()
    said = max(chances, key=chances.get)
    target = said if DRAW.random() < 0.6 else DRAW.choice("ABCD")
    about = {"subject": ("law", "botany")[number % 2]}
    samples.append(Sample(input=f"Question {number}?", choices=list("wxyz"), target=target, id=number, metadata=about))
    outputs += [answer(said, chances)] * 2  # epochs
letters = Task(
    name="letters", dataset=samples, solver=multiple_choice(), scorer=choice(), epochs=2,
    config=GenerateConfig(logprobs=True, top_logprobs=4),
)  # fmt: skip
stated = [
    Sample(input=f"What is {n} + {n}?", target=str(2 * n), id=f"sum-{n}", metadata={"subject": "sums"})
    for n in range(12)
]
said = [f"{2 * n + (n % 3 == 0)}\nConfidence: {DRAW.choice((70, 80, 90, 95))}%" for n in range(12)]
spoken = [ModelOutput.from_content("mockllm/model", text) for text in said]
for output in spoken:
    output.usage = USAGE
for task, texts, suffix in (
    (letters, outputs, "eval"),
    (Task(name="stated", dataset=stated, solver=generate(), scorer=includes()), spoken, "json"),
):
    model = get_model("mockllm/model", custom_outputs=list(texts), memoize=False)
    (log,) = eval(task, model=model, log_dir=tempfile.mkdtemp(), log_format=suffix, max_connections=1, max_samples=1)
    assert log.status == "success", str(log.error)[:300]
    log = read_eval_log(log.location)
    for sample in log.samples:  # what the reader does not look at, and is most of the file
        sample.events, sample.messages, sample.attachments, sample.events_data = [], [], {}, None
    HERE.mkdir(exist_ok=True)
    write_eval_log(log, str(HERE / f"{task.name}.{suffix}"))
