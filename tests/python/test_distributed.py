"""Training under PyTorch's own torchrun: the same losses as in one process."""
import json
import os
import struct
import subprocess
import sys

import pytest

pytest.importorskip("torch.distributed.run")
CLI = os.environ["SATFORMER_CLI"]
pytestmark = pytest.mark.skipif(not os.path.exists(CLI), reason="the executable is not built")

MODEL = dict(vocab_size=61, hidden_size=32, num_hidden_layers=2, num_heads=4, intermediate_size=48,
             max_position_embeddings=64)


def write_split(path, tokens):
    path.write_bytes(struct.pack(f"<{tokens}H", *(i * i * 7 % 61 for i in range(tokens))))


@pytest.fixture
def config(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    write_split(data / "train_0.bin", 2001)
    write_split(data / "val_0.bin", 200)
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps({
        "model": {"architecture": "satformer", "config_overrides": MODEL},
        "data": {"data_dir": str(data), "seq_length": 16},
        "training": {"batch_size": 5, "gradient_accumulation_steps": 1, "max_steps": 12, "warmup_steps": 2,
                     "dtype": "float32"},
        "checkpointing": {"checkpoint_interval": 4},
        "logging": {"eval_interval": 6},
        "system": {"device": "cpu"},
        "distributed": {"timeout": 30},
    }))
    return path


def torchrun(ranks, *arguments, **options):
    return subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks),
                           "--no-python", CLI, *arguments], timeout=300, **options)


def losses(run):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(line["step"], key, line[key]) for line in lines for key in ("loss", "val_loss") if key in line]


def test_two_ranks_are_one_run(config, tmp_path):
    subprocess.run([CLI, "train", config, "--output", tmp_path / "one", "--threads", "1"], check=True)
    torchrun(2, "train", config, "--output", tmp_path / "two", "--threads", "1", check=True)
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert [line[:2] for line in one] == [line[:2] for line in two]
    assert [line[2] for line in two] == pytest.approx([line[2] for line in one], rel=1e-5)


def test_a_failure_names_the_rank(config, tmp_path):
    result = torchrun(2, "train", config, "--output", "/proc/no/such/place", capture_output=True, text=True)
    assert result.returncode != 0
    assert "satformer: error: rank 1: rank 0 has failed: " in result.stderr
