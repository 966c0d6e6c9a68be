"""The event files of `satformer train`, read by the tensorboard package."""
import json
import os
import struct
import subprocess

import pytest

event_accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
CLI = os.environ["SATFORMER_CLI"]
pytestmark = pytest.mark.skipif(not os.path.exists(CLI), reason="the executable is not built")

MODEL = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_heads=4, intermediate_size=48,
             max_position_embeddings=64)


def write_split(path, tokens):
    path.write_bytes(struct.pack(f"<{tokens}H", *(i * 7 % 61 for i in range(tokens))))


@pytest.fixture
def train(tmp_path):
    data, run = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    write_split(data / "train_0.bin", 2001)
    write_split(data / "val_0.bin", 200)
    config = tmp_path / "tiny.json"
    config.write_text(json.dumps({
        "model": {"architecture": "satformer", "config_overrides": MODEL},
        "data": {"data_dir": str(data), "seq_length": 16},
        "training": {"batch_size": 2, "gradient_accumulation_steps": 1, "max_steps": 8, "warmup_steps": 2,
                     "dtype": "float32"},
        "checkpointing": {"checkpoint_interval": 4},
        "logging": {"eval_interval": 4},
        "system": {"device": "cpu"},
    }))

    def start(*flags):
        subprocess.run([CLI, "train", config, "--output", run, "--threads", "1", *flags], check=True)
        return run

    return start


def scalars(run, tag):
    accumulator = event_accumulator.EventAccumulator(str(run / "tensorboard"))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(tag)]


def metrics(run, key):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], line[key]) for line in lines if key in line]


def same(events, lines):
    assert [step for step, _ in events] == [step for step, _ in lines]
    assert [value for _, value in events] == pytest.approx([value for _, value in lines], rel=1e-6)


def test_events_are_the_metrics(train):
    run = train()
    same(scalars(run, "train/loss"), metrics(run, "loss"))
    same(scalars(run, "train/lr"), metrics(run, "lr"))
    same(scalars(run, "train/grad_norm"), metrics(run, "grad_norm"))
    same(scalars(run, "val/loss"), metrics(run, "val_loss"))
    assert [step for step, _ in scalars(run, "train/loss")] == list(range(1, 9))


def test_a_resumed_run_replaces_the_events_after_its_checkpoint(train):
    run = train()
    # As if the process had died after step 8 with the checkpoint of step 4 as its last.
    newest = run / "checkpoints" / "step_00000008"
    newest.rename(run / "elsewhere")
    train("--resume", "--set", "training.learning_rate=1e-2")
    assert len(list((run / "tensorboard").iterdir())) == 2
    same(scalars(run, "train/loss"), metrics(run, "loss"))
    same(scalars(run, "train/lr"), metrics(run, "lr"))
    assert [step for step, _ in scalars(run, "train/loss")] == list(range(1, 9))
