"""`satformer export --format torchscript` in Python: the reference vectors' logits, gates and gradients.

The models are those of tests/data/golden, whose numbers the authors' PyTorch code computed; `satformer verify` holds the
C++ models to the same numbers with the same tolerances.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import zlib

import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

LIBRARY = os.environ["SATFORMER_OPS_LIBRARY"]
CLI = os.environ["SATFORMER_CLI"]
GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "data/golden"
pytestmark = [pytest.mark.skipif(not os.path.exists(CLI), reason="the executable is not built"),
              pytest.mark.filterwarnings("ignore::DeprecationWarning"),
              pytest.mark.filterwarnings("ignore::FutureWarning")]

torch.ops.load_library(LIBRARY)

CASES = ["satformer_gqa", "resformer"]
VALUES, GRADIENTS = 2e-5, 2e-4  # as docs/verify.md


def error(found, expected):
    return ((found - expected).abs().max() / expected.abs().max()).item()


def write_checkpoint(golden, case, folder):
    """A checkpoint folder (docs/checkpoints.md) with a case's parameters."""
    folder.mkdir()
    shutil.copy(GOLDEN / case / "config.json", folder)
    parameters = {name.removeprefix("grad."): golden[name.removeprefix("grad.")]
                  for name in golden if name.startswith("grad.")}
    safetensors.save_file(parameters, folder / "model.safetensors")
    files = {path.name: {"bytes": path.stat().st_size, "crc32": f"{zlib.crc32(path.read_bytes()):08x}"}
             for path in folder.iterdir()}
    text = json.dumps({"files": files, "format": 1}, indent=1, sort_keys=True)
    line = f'{{\n "crc32": "{zlib.crc32((text + chr(10)).encode()):08x}",\n'
    (folder / "manifest.json").write_text(text.replace("{\n", line, 1) + "\n")


@pytest.fixture(scope="module", params=CASES)
def exported(request, tmp_path_factory):
    """(reference tensors, path of the exported model)"""
    folder = tmp_path_factory.mktemp(request.param)
    golden = safetensors.load_file(GOLDEN / request.param / "golden.safetensors")
    write_checkpoint(golden, request.param, folder / "checkpoint")
    path, report = folder / "model.pt", folder / "report.json"
    subprocess.run([CLI, "export", folder / "checkpoint", "--format", "torchscript", "--output", path,
                    "--json", report], check=True)
    result = json.loads(report.read_text())
    assert result["methods"] == ["forward", "step", "gates", "set_gate_intervention"]
    assert result["difference"] < 1e-6
    return golden, path


def test_logits_are_the_references(exported):
    golden, path = exported
    model = torch.jit.load(path)
    frozen = torch.jit.freeze(torch.jit.load(path).eval())
    with torch.inference_mode():
        for _ in range(3):  # the executor profiles the first calls and specialises the later ones
            assert error(model(golden["input_ids"]), golden["logits"]) < VALUES
            assert error(frozen(golden["input_ids"]), golden["logits"]) < VALUES


def test_steps_are_the_references(exported):
    golden, path = exported
    model, ids, logits, caches = torch.jit.load(path), golden["input_ids"], [], []
    with torch.inference_mode():
        for piece in ids.split([9, 1, 1, ids.size(1) - 11], dim=1):
            part, caches = model.step(piece, caches)
            logits.append(part)
    assert error(torch.cat(logits, 1), golden["logits"]) < VALUES
    assert [tuple(cache.shape[:2]) for cache in caches] == [tuple(ids.shape)] * (2 * model.num_layers)


def test_gates_are_the_references(exported):
    golden, path = exported
    model, ids = torch.jit.load(path), golden["input_ids"]
    with torch.no_grad():
        gates = model.gates(ids)
        assert model.gate_layers == [1, 2, 3] and gates[0].abs().max() == 0
        for layer in model.gate_layers:
            if "lambda1" in golden:
                expected = golden["lambda1"][layer - 1].expand_as(gates[layer])
            else:
                expected = golden[f"alpha.{layer}"]
            assert error(gates[layer], expected) < VALUES
        before = model(ids)
        model.set_gate_intervention(torch.tensor(0.0), torch.tensor(0.0))
        assert model.gates(ids).abs().max() == 0 and error(model(ids), before) > 1e-3
        model.set_gate_intervention(torch.ones(model.num_layers, 1), torch.zeros(model.num_kv_heads))
        assert torch.equal(model(ids), before)


def test_gradients_are_the_references(exported):
    golden, path = exported
    model, ids = torch.jit.load(path), golden["input_ids"]
    found = dict(model.named_parameters())
    assert {f"grad.{name}" for name in found} == {name for name in golden if name.startswith("grad.")}
    for parameter in found.values():
        parameter.requires_grad_(True)
    for _ in range(3):  # the later calls run the executor's own derivatives around the operators' ones
        for parameter in found.values():
            parameter.grad = None
        loss = torch.nn.functional.cross_entropy(model(ids).flatten(0, 1), golden["targets"].flatten())
        loss.backward()
        assert error(loss.detach(), golden["loss"]) < VALUES
        for name, parameter in found.items():
            assert error(parameter.grad, golden[f"grad.{name}"]) < GRADIENTS, name


def test_the_file_says_what_it_is(exported):
    _, path = exported
    files = {"config.json": "", "satformer_version": ""}
    model = torch.jit.load(path, _extra_files=files)
    assert json.loads(files["config.json"])["num_hidden_layers"] == model.num_layers == 4
    assert files["satformer_version"]
    assert [name for name, _ in model.named_buffers()] == ["gate_scale", "gate_shift"]


def test_without_the_operator_library(exported):
    _, path = exported
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", f"import torch; torch.jit.load({str(path)!r})"],
                         capture_output=True, text=True)
    assert run.returncode != 0
    assert "Unknown builtin op: satformer::" in run.stderr
