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


# Two network namespaces are two hosts with a cable between them. $1 the executable, $2 the configuration, $3 the folder.
HOSTS = r"""
set -eu
cli=$1 config=$2 folder=$3
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip netns add left
ip netns add right
ip link add cable type veth peer name elbac
ip link set cable netns left
ip link set elbac netns right
ip -n left address add 10.77.0.1/24 dev cable
ip -n right address add 10.77.0.2/24 dev elbac
for side in left right; do ip -n $side link set lo up; done
ip -n left link set cable up
ip -n right link set elbac up
export WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=10.77.0.1 MASTER_PORT=29511
run() {  # SIDE RANK INTERFACE ARGUMENTS...
  local side=$1 rank=$2 interface=$3
  shift 3
  RANK=$rank GLOO_SOCKET_IFNAME=$interface exec ip netns exec $side "$cli" train "$config" --threads 1 "$@"
}
"""
TRAIN = HOSTS + r"""
(run left 0 cable --output "$folder/run") & first=$!
(run right 1 elbac --output "$folder/run") & second=$!
wait $first && wait $second
"""
CUT = HOSTS + r"""
endless="--set max_steps=1000000 --set timeout=6"
(run left 0 cable --output "$folder/run" $endless 2>"$folder/left") & first=$!
(run right 1 elbac --output "$folder/run" $endless 2>"$folder/right") & second=$!
for attempt in $(seq 600); do [ -d "$folder/run/checkpoints/step_00000004" ] && break; sleep 0.1; done
ip -n left link set cable down
wait $first && exit 1
wait $second && exit 1
true
"""


def in_namespaces(script, config, folder):
    command = ["unshare", "--mount", "--net", "bash", "-c"]
    if subprocess.run([*command, HOSTS, "bash", CLI, config, folder], capture_output=True).returncode != 0:
        pytest.skip("this user may not make network namespaces")
    subprocess.run([*command, script, "bash", CLI, config, folder], check=True, timeout=120)


def test_two_hosts(config, tmp_path):
    subprocess.run([CLI, "train", config, "--output", tmp_path / "one", "--threads", "1"], check=True)
    in_namespaces(TRAIN, config, tmp_path)
    one, two = losses(tmp_path / "one"), losses(tmp_path / "run")
    assert [line[2] for line in two] == pytest.approx([line[2] for line in one], rel=1e-5)


def test_a_cut_cable_ends_both_hosts(config, tmp_path):
    in_namespaces(CUT, config, tmp_path)
    # Rank 0 has the store and misses rank 1; rank 1 misses the store.
    assert "satformer: error: rank 0: rank 1 " in (tmp_path / "left").read_text()
    assert "satformer: error: rank 1: rank 0" in (tmp_path / "right").read_text()
