"""Language models in a Trainer: shifted labels, and the loss without the logits, against the models' own."""

import copy

import pytest
import torch
import transformers
from torch import nn
from torch.nn import functional as F
from transformers.modeling_outputs import CausalLMOutput, TokenClassifierOutput

from focalcal import FocalCalibrationLoss, LinearFocalCalibrationLoss
from focalcal.integrations.hugging_face import LossWithoutLogits, TrainerCalibration, compute_loss_func
from focalcal.metrics import nll

WORDS = 16
GPT2 = {"n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0}
T5 = {"d_model": 8, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2, "dropout_rate": 0}
LLAMA = {"hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
LLAMA |= {"num_key_value_heads": 2}
MODELS = {  # a class and its configuration; those from Gemma 2 to Granite do something to their logits
    "GPT2LMHeadModel": transformers.GPT2Config(**GPT2),
    "LlamaForCausalLM": transformers.LlamaConfig(**LLAMA),
    "Gemma2ForCausalLM": transformers.Gemma2Config(**LLAMA, head_dim=4, final_logit_softcapping=0.7),
    "CohereForCausalLM": transformers.CohereConfig(**LLAMA, logit_scale=0.25),
    "GraniteForCausalLM": transformers.GraniteConfig(**LLAMA, logits_scaling=8.0),
    "T5ForConditionalGeneration": transformers.T5Config(**T5, decoder_start_token_id=0),
}


def network(name="GPT2LMHeadModel", **chosen):
    torch.manual_seed(0)
    config = copy.deepcopy(MODELS[name])
    config.update({"vocab_size": WORDS, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 0} | chosen)
    model = getattr(transformers, name)(config).train()
    for embeddings in (model.get_input_embeddings(), model.get_output_embeddings()):  # logits that a cap changes
        nn.init.normal_(embeddings.weight)
    return model


def texts(number=2):
    words = torch.randint(2, WORDS, (number, 7), generator=torch.Generator().manual_seed(1))
    return words, torch.where(words == 3, -100, words)


def inputs_of(model, words, labels):
    inputs = {"input_ids": words}
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = model.prepare_decoder_input_ids_from_labels(labels)
    return inputs


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("items", [None, 40])
def test_without_focus_the_loss_and_its_gradients_are_the_models_own(name, items):
    model = network(name)
    words, labels = texts()
    own = model(input_ids=words, labels=labels).loss
    if items is not None:
        counted = labels if model.config.is_encoder_decoder else labels[:, 1:]
        own = own * counted.ne(-100).sum() / items
    wanted = torch.autograd.grad(own, list(model.parameters()))
    without = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=0, lam=0, chunk=3))
    dense = compute_loss_func(FocalCalibrationLoss(gamma=0, lam=0))
    for loss, length in ((without, 1), (dense, words.shape[1])):
        outputs = model(**inputs_of(model, words, labels))
        assert outputs.logits.shape == (len(words), length, WORDS)
        value = loss(outputs, labels, num_items_in_batch=items)
        torch.testing.assert_close(value, own, rtol=0, atol=1e-6)
        torch.testing.assert_close(torch.autograd.grad(value, list(model.parameters())), wanted, rtol=1e-4, atol=1e-6)
        without.hook.remove()


@pytest.mark.parametrize("name", MODELS)
def test_evaluation_and_generation_have_all_logits(name):
    model = network(name)
    words, labels = texts()
    without = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1))
    outputs = model.eval()(**inputs_of(model, words, labels))
    wanted = compute_loss_func(FocalCalibrationLoss(gamma=3, lam=1))(outputs, labels)
    torch.testing.assert_close(without(outputs, labels), wanted)
    assert model.generate(words[:, :3], max_new_tokens=2, min_new_tokens=2, do_sample=False).shape[0] == 2


@pytest.mark.parametrize("keys", ["", "past_key_values", "encoder_last_hidden_state past_key_values"])
def test_outputs_without_a_type_show_by_their_keys_whether_labels_are_shifted(keys):
    logits, labels = torch.randn(2, 7, WORDS), texts()[1]
    compute = compute_loss_func(FocalCalibrationLoss(gamma=0, lam=0))
    outputs = {"logits": logits} | dict.fromkeys(keys.split(), ())
    if not keys:
        for unknown in (outputs, (logits,)):
            with pytest.raises(ValueError, match=f"shift_labels must .* type {type(unknown).__name__}.*pass shift"):
                compute(unknown, labels)
    elif "encoder" in keys:
        torch.testing.assert_close(compute(outputs, labels), F.cross_entropy(logits.mT, labels))
    else:
        torch.testing.assert_close(compute(outputs, labels), F.cross_entropy(logits[:, :-1].mT, labels[:, 1:]))


def test_labels_of_tokens_are_shifted_for_causal_models_only_and_as_the_argument_says():
    logits, labels = torch.randn(2, 7, WORDS), texts()[1]
    loss = FocalCalibrationLoss(gamma=0, lam=0)
    kept = F.cross_entropy(logits.mT, labels)
    torch.testing.assert_close(compute_loss_func(loss)(TokenClassifierOutput(logits=logits), labels), kept)
    causal = CausalLMOutput(logits=logits)
    torch.testing.assert_close(compute_loss_func(loss, shift_labels=False)(causal, labels), kept)
    assert not torch.isclose(compute_loss_func(loss)(causal, labels), kept)
    pairs = CausalLMOutput(logits=logits[:, 0])  # one label per text, of whatever model
    torch.testing.assert_close(
        compute_loss_func(loss)(pairs, labels[:, 0]), F.cross_entropy(logits[:, 0], labels[:, 0])
    )


class Changed(transformers.LlamaForCausalLM):
    """Does something to its logits that its configuration does not name."""

    def forward(self, input_ids=None, labels=None, **kwargs):
        outputs = super().forward(input_ids, labels=labels, **kwargs)
        outputs["logits"] = self.change(outputs.logits)
        return outputs


def changed(change):
    torch.manual_seed(0)
    model = Changed(transformers.LlamaConfig(**LLAMA, vocab_size=WORDS, pad_token_id=0)).train()
    model.change = change
    return model


CHANGES = {
    "scale": lambda logits: 1.001 * logits,
    "cap": lambda logits: 1e3 * (logits / 1e3).tanh(),  # of new logits of at most 0.2, which it does not change
    "mask": lambda logits: logits.masked_fill(torch.arange(WORDS) == 5, -torch.inf),
    "offset": lambda logits: logits + 0.01,
    "order": lambda logits: logits.flip(-1),
    "tokens": lambda logits: logits - logits.detach().mean(1, keepdim=True),
    "size": lambda logits: logits[..., :-1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_model_that_does_something_else_to_its_logits_is_refused_and_left_as_it_was(change):
    model = changed(CHANGES[change])
    refused = r"model must make its logits .* got Changed, whose logits differ .* from these.*; use compute_loss_func"
    with pytest.raises(ValueError, match=refused):
        LossWithoutLogits(model, LinearFocalCalibrationLoss())
    words, _ = texts()
    assert model(input_ids=words).logits.shape[1] == words.shape[1]


@pytest.mark.parametrize("evaluated_first", [False, True])
def test_what_a_model_does_in_training_only_is_refused_in_its_first_batch(evaluated_first):
    words, labels = texts()
    model = changed(lambda logits: 1.001 * logits if model.training else logits).eval()
    compute = LossWithoutLogits(model, LinearFocalCalibrationLoss())
    if evaluated_first:
        compute(model(input_ids=words), labels)
    model.train()
    with pytest.raises(ValueError, match=r"got Changed, whose logits differ"):
        compute(model(input_ids=words), labels)


def test_the_random_states_draw_nothing_from_the_random_stream():
    model = network(resid_pdrop=0.1)
    before = torch.get_rng_state()
    LossWithoutLogits(model, LinearFocalCalibrationLoss())
    assert torch.equal(torch.get_rng_state(), before)


def test_losses_and_models_that_cannot_do_without_logits_are_refused():
    plain, embedded = nn.Linear(2, 3), network()
    plain.get_output_embeddings = lambda: plain  # no configuration
    embedded.get_output_embeddings = embedded.get_input_embeddings
    for model in (nn.Linear(2, 3), plain, embedded):
        with pytest.raises(
            TypeError, match=r"model must be of transformers and have a linear output layer.* got \w+; use"
        ):
            LossWithoutLogits(model, LinearFocalCalibrationLoss())
    with pytest.raises(TypeError, match=r"loss must take .*bias\), got FocalCal.*; use LinearFocalCalibrationLoss"):
        LossWithoutLogits(network(), FocalCalibrationLoss())
    with pytest.raises(TypeError, match=r"loss must take .*bias, \*, soft_cap\), got function"):
        LossWithoutLogits(network("Gemma2ForCausalLM"), lambda hidden, weight, labels, bias: hidden.sum())
    for options in ({"reduction": "sum"}, {"ignore_index": 0}):
        with pytest.raises(ValueError, match=f"loss must have {next(iter(options))}"):
            LossWithoutLogits(network(), LinearFocalCalibrationLoss(**options))
    compute = LossWithoutLogits(network(), LinearFocalCalibrationLoss())
    words, labels = texts()
    with pytest.raises(RuntimeError, match=r"LossWithoutLogits of the model that the Trainer trains"):
        compute(network()(input_ids=words), labels)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
def test_in_the_place_of_a_model_it_says_where_it_belongs(tmp_path):
    compute = LossWithoutLogits(network(), LinearFocalCalibrationLoss())
    with pytest.raises(AttributeError, match=r"it is no model; call Trainer\(model, compute_loss_func="):
        transformers.Trainer(compute, arguments(transformers.TrainingArguments, tmp_path))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_in_half_precision_has_the_loss_of_its_own_logits(name, dtype):
    model = network(name).to(dtype)
    words, labels = texts()
    dense = compute_loss_func(FocalCalibrationLoss(gamma=3, lam=1))(model(**inputs_of(model, words, labels)), labels)
    without = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1))
    value = without(model(**inputs_of(model, words, labels)), labels)
    torch.testing.assert_close(value.float(), dense.float(), rtol=1e-2, atol=0)


def test_a_second_loss_takes_the_first_ones_place_and_a_batch_without_labels_counts_nothing():
    model = network()
    words, labels = texts()
    LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=5, lam=5))
    second = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=0, lam=0))
    torch.testing.assert_close(
        second(model(input_ids=words), labels), model.eval()(input_ids=words, labels=labels).loss
    )
    model.train()
    assert second(model(input_ids=words), torch.full_like(labels, -100), num_items_in_batch=3) == 0


def test_in_autocast_the_output_layer_computes_in_half_precision_as_the_model_does():
    model = network("LlamaForCausalLM")
    words, labels = texts()
    without = LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=0, lam=0))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(input_ids=words)
    value = without(outputs, labels)  # outside, as the Trainer calls it
    without.hook.remove()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        own = model(input_ids=words, labels=labels).loss
    torch.testing.assert_close(value, own, rtol=1e-3, atol=0)


def adapted(model, **chosen):
    peft = pytest.importorskip("peft")
    torch.manual_seed(0)
    task = "SEQ_2_SEQ_LM" if model.config.is_encoder_decoder else "CAUSAL_LM"
    settings = {"r": 2, "lora_alpha": 4, "task_type": task, "target_modules": "all-linear"} | chosen
    return peft.get_peft_model(model, peft.LoraConfig(**settings))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", ["adapter", "loss"])
def test_an_output_layer_that_peft_trains_whole_is_trained(first):
    model = network(tie_word_embeddings=False)
    loss = LinearFocalCalibrationLoss(gamma=0, lam=0)
    if first == "loss":
        without = LossWithoutLogits(model, loss)
        model = adapted(model, modules_to_save=["lm_head"])
    else:
        model = adapted(model, modules_to_save=["lm_head"])
        without = LossWithoutLogits(model, loss)
    words, labels = texts()
    outputs = model(input_ids=words)
    assert outputs.logits.shape[1] == 1
    head = model.get_output_embeddings().modules_to_save.default.weight
    (gradient,) = torch.autograd.grad(without(outputs, labels), head)
    (wanted,) = torch.autograd.grad(model.eval()(input_ids=words, labels=labels).loss, head)
    torch.testing.assert_close(gradient, wanted)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first", ["adapter", "loss"])
def test_an_output_layer_with_an_adapter_is_refused(first):
    model, loss = network(tie_word_embeddings=False), LinearFocalCalibrationLoss()
    words, labels = texts()
    refused = r"output layer must train its weight and bias only, got lora_A.*target_modules"
    if first == "adapter":
        model = adapted(model, target_modules=["lm_head"])
        with pytest.raises(ValueError, match=refused):
            LossWithoutLogits(model, loss)
    else:
        without = LossWithoutLogits(model, loss)
        model = adapted(model, target_modules=["lm_head"])
        with pytest.raises(ValueError, match=refused):
            without(model(input_ids=words), labels)


@pytest.mark.filterwarnings("ignore")
def test_prompt_tuning_is_refused():
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(network(), peft.PromptTuningConfig(num_virtual_tokens=3, task_type="CAUSAL_LM"))
    words, labels = texts()
    inputs = {"input_ids": words, "attention_mask": torch.ones_like(words)}
    without = LossWithoutLogits(model, LinearFocalCalibrationLoss())
    with pytest.raises(ValueError, match=r"labels must be .* shape \(2, 9\), got \(2, 6\)"):
        without(model(**inputs), labels)
    without.hook.remove()
    with pytest.raises(ValueError, match=r"labels must have the shape .* \(2, 10\), got \(2, 7\)"):
        compute_loss_func(FocalCalibrationLoss())(model(**inputs), labels)


def arguments(kind, folder, **chosen):
    quiet = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "seed": 0, "learning_rate": 0.01}
    steps = {"max_steps": 4, "per_device_train_batch_size": 2, "gradient_accumulation_steps": 2, "logging_steps": 1}
    return kind(str(folder), **quiet, **steps, **chosen)


def documents(model):
    words, labels = texts(9)
    columns = inputs_of(model, words, labels) | {"labels": labels}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def trainer_of(model, folder, without, **chosen):
    settings = {"gamma": 3, "lam": 1}
    dense = compute_loss_func(FocalCalibrationLoss(**settings))
    return transformers.Trainer(
        model=model,
        args=arguments(transformers.TrainingArguments, folder, **chosen),
        train_dataset=documents(model),
        compute_loss_func=LossWithoutLogits(model, LinearFocalCalibrationLoss(**settings)) if without else dense,
    )


def assert_same_weights(model, other):
    for name, value in model.state_dict().items():
        torch.testing.assert_close(value, other.state_dict()[name], rtol=1e-4, atol=1e-5)


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lora", [False, True])
@pytest.mark.parametrize("name", [name for name in MODELS if name != "GraniteForCausalLM"])  # a scale, as Cohere's
def test_a_model_trained_without_logits_is_the_one_trained_with_them(name, lora, tmp_path):
    """With accumulation, gradient checkpointing and the default way to save; the checkpoint is the model's own."""
    models = [adapted(network(name)) if lora else network(name, tie_word_embeddings=True) for _ in range(2)]
    for model, without in zip(models, (True, False), strict=True):
        chosen = {"gradient_checkpointing": True} if without else {"save_strategy": "no"}
        trainer_of(model, tmp_path / str(without), without, **chosen).train()
    assert_same_weights(*models)
    if lora:
        read = pytest.importorskip("peft").PeftModel.from_pretrained(network(name), tmp_path / "True/checkpoint-4")
    else:
        read = type(models[0]).from_pretrained(tmp_path / "True/checkpoint-4")
    assert_same_weights(read, models[1])


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lora", [False, True])
def test_a_training_that_is_resumed_ends_as_the_one_that_was_not(lora, tmp_path):
    dense, whole, resumed = (adapted(network()) if lora else network() for _ in range(3))
    trainer_of(dense, tmp_path / "dense", without=False, save_strategy="no").train()
    trainer_of(whole, tmp_path / "own", without=True, save_steps=2).train()
    trainer_of(resumed, tmp_path / "own", without=True).train(resume_from_checkpoint=str(tmp_path / "own/checkpoint-2"))
    assert_same_weights(whole, dense)
    assert_same_weights(resumed, dense)


EVALUATED = {
    "causal": lambda: network("LlamaForCausalLM"),
    "adapted": lambda: adapted(network("LlamaForCausalLM")),
    "of a name of its own": lambda: changed(lambda logits: logits),
    "encoder and decoder": lambda: network("T5ForConditionalGeneration"),
}


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EVALUATED)
def test_the_callback_shifts_the_labels_of_a_causal_model(name, tmp_path):
    model = EVALUATED[name]()
    calibration = TrainerCalibration(resamples=20)
    trainer = transformers.Trainer(
        model=model,
        args=arguments(transformers.TrainingArguments, tmp_path, per_device_eval_batch_size=9),
        eval_dataset=documents(model),
        compute_loss_func=LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=0, lam=0)),
        compute_metrics=calibration.compute_metrics,
        callbacks=[calibration],
    )
    measured = trainer.evaluate()
    words, labels = texts(9)
    logits = model(**inputs_of(model, words, labels)).logits
    if not model.config.is_encoder_decoder:
        logits, labels = logits[:, :-1], labels[:, 1:]
    probs, kept = logits[labels.ne(-100)].double().softmax(1), labels[labels.ne(-100)]
    if name != "of a name of its own":  # the Trainer counts labels as shifted for the names that it knows
        assert measured["eval_nll"] == pytest.approx(measured["eval_loss"], abs=1e-5)
    assert measured["eval_nll"] == pytest.approx(nll(probs, kept), abs=1e-6)


def test_a_callback_that_the_trainer_was_not_given_refuses_tokens():
    evaluated = transformers.EvalPrediction(torch.randn(2, 7, WORDS).numpy(), texts()[1].numpy())
    with pytest.raises(ValueError, match=r"shift_labels must say .*pass callbacks=\[calibration\]"):
        TrainerCalibration().compute_metrics(evaluated)
    assert TrainerCalibration(shift_labels=False).compute_metrics(evaluated)["nll"] > 0


@pytest.mark.once
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lora", [False, True])
def test_trls_trainer_trains_on_the_loss_with_logits_and_without(lora, tmp_path):
    """The loss of every step is that of the logits, not the cross-entropy that SFTTrainer computes by itself."""
    trl, peft = pytest.importorskip("trl"), pytest.importorskip("peft")
    datasets, tokenizers = pytest.importorskip("datasets"), pytest.importorskip("tokenizers")
    vocabulary = {"<pad>": 0, "<eos>": 1} | {f"w{i}": i for i in range(2, WORDS)}
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="<eos>")
    data = datasets.Dataset.from_dict({"input_ids": texts(9)[0].tolist()})
    adapter = peft.LoraConfig(r=2, target_modules=["v_proj", "down_proj"], task_type="CAUSAL_LM")
    losses, evaluated, models = [], [], []
    for loss in ("without", "dense", None):
        model = network("LlamaForCausalLM")
        own = {
            "without": lambda model=model: LossWithoutLogits(model, LinearFocalCalibrationLoss(gamma=3, lam=1)),
            "dense": lambda: compute_loss_func(FocalCalibrationLoss(gamma=3, lam=1)),
            None: lambda: None,
        }[loss]()
        trainer = trl.SFTTrainer(
            model=model,
            args=arguments(
                trl.SFTConfig,
                tmp_path / str(loss),
                max_length=7,
                bf16=False,
                save_strategy="steps" if loss == "without" else "no",
            ),
            train_dataset=data,
            eval_dataset=data,
            processing_class=tokenizer,
            peft_config=adapter if lora else None,
            compute_loss_func=own,
        )
        trainer.train()
        evaluated.append(trainer.evaluate()["eval_loss"])
        losses.append([record["loss"] for record in trainer.state.log_history if "loss" in record])
        models.append(trainer.model)
    assert losses[0] == pytest.approx(losses[1], abs=2e-4)
    assert evaluated[0] == pytest.approx(evaluated[1], abs=2e-4)
    assert losses[0] != pytest.approx(losses[2], abs=0.1)
    assert_same_weights(*models[:2])
    saved = "adapter_model.safetensors" if lora else "model.safetensors"
    assert (tmp_path / "without/checkpoint-4" / saved).exists()
