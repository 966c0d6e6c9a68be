"""satformer's operators in Python: opcheck, autograd, autocast, torch.compile, TorchScript.

SATFORMER_OPS_LIBRARY names libsatformer_ops.so; libsatformer_ops_cuda.so beside it is tried too.
"""

import os
import pathlib

import pytest

torch = pytest.importorskip("torch")

LIBRARY = os.environ.get("SATFORMER_OPS_LIBRARY")
if not LIBRARY:
    pytest.skip("SATFORMER_OPS_LIBRARY is not set: the path of libsatformer_ops.so", allow_module_level=True)
torch.ops.load_library(LIBRARY)

ops = torch.ops.satformer
GATES = ["relu", "sigmoid", "softmax", "softmax_sigmoid", "tanh", "identity"]
B, T, H, HD = 2, 3, 4, 5


def make_inputs(dtype=torch.float32, requires_grad=False, seed=0, packed=False):
    """v, first_values, logits, scale and shift; v is a slice of a wider tensor when packed."""
    generator = torch.Generator().manual_seed(seed)

    def randn(*shape):
        return torch.randn(*shape, generator=generator).to(dtype)

    v = randn(B, T, 3, H, HD)[:, :, 2] if packed else randn(B, T, H, HD)
    logits = randn(B, T, H)
    logits += 0.1 * logits.sign()  # away from relu's corner
    tensors = [v, randn(B, T, H, HD), logits, randn(H), randn(())]
    return [t.detach().requires_grad_(requires_grad) for t in tensors]


def reference(v, first_values, logits, gate, scale=None, shift=None):
    heads = logits.shape[-1]
    alpha = {
        "relu": lambda x: torch.relu(x),
        "sigmoid": lambda x: torch.sigmoid(x),
        "softmax": lambda x: torch.softmax(x, -1) * heads,
        "softmax_sigmoid": lambda x: torch.softmax(x, -1) * torch.sigmoid(x) * heads,
        "tanh": lambda x: torch.tanh(x),
        "identity": lambda x: x,
    }[gate](logits)
    if scale is not None:
        alpha = scale * alpha
    if shift is not None:
        alpha = alpha + shift
    return v + alpha.unsqueeze(-1) * first_values


@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("packed", [False, True])
def test_opcheck_functional(gate, packed):
    v, first, logits, scale, shift = make_inputs(requires_grad=True, packed=packed)
    torch.library.opcheck(ops.gated_value_mix.default, (v, first, logits, gate, scale, shift))


def test_opcheck_functional_without_intervention():
    v, first, logits, _, _ = make_inputs(requires_grad=True)
    torch.library.opcheck(ops.gated_value_mix.default, (v, first, logits))
    torch.library.opcheck(ops.gated_value_mix.default, (v.detach(), first.detach(), logits.detach(), "tanh"))


@pytest.mark.parametrize("gate", ["relu", "softmax_sigmoid"])
def test_opcheck_in_place(gate):
    _, first, logits, scale, shift = make_inputs(requires_grad=True)
    v = make_inputs(packed=True)[0]
    torch.library.opcheck(ops.gated_value_mix_.default, (v, first, logits, gate, scale, shift))
    torch.library.opcheck(ops.gated_value_mix_.default, (v, first.detach(), logits.detach(), gate))


@pytest.mark.parametrize("gate", ["relu", "softmax", "softmax_sigmoid"])
@pytest.mark.parametrize("mask", [[True] * 4, [True, False, False, False], [False, True, False, True]])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck_backward(gate, mask, requires_grad):
    grad, first, logits, scale, shift = make_inputs(requires_grad=requires_grad)
    torch.library.opcheck(
        ops.gated_value_mix_backward.default, (grad, first, logits, gate, scale, shift, mask)
    )


@pytest.mark.parametrize("gate", GATES)
def test_values_and_gradcheck(gate):
    inputs = make_inputs(torch.float64, requires_grad=True, packed=True)
    v, first, logits, scale, shift = inputs
    torch.testing.assert_close(
        ops.gated_value_mix(v, first, logits, gate, scale, shift),
        reference(v, first, logits, gate, scale, shift),
    )

    def mix(v, first, logits, scale, shift):
        return ops.gated_value_mix(v, first, logits, gate, scale, shift)

    def mix_in_place(v, first, logits, scale, shift):
        v = v.clone()
        ops.gated_value_mix_(v, first, logits, gate, scale, shift)
        return v

    for function in (mix, mix_in_place):
        assert torch.autograd.gradcheck(function, inputs)
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_compile_full_graph(in_place, dynamic):
    def function(x, first, logits, scale, shift):
        v = x * 2
        if in_place:
            ops.gated_value_mix_(v, first, logits, "softmax_sigmoid", scale, shift)
        else:
            v = ops.gated_value_mix(v, first, logits, "softmax_sigmoid", scale, shift)
        return (v * v).sum()

    # aot_eager traces forward and backward as the inductor does but needs no C++ compiler.
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    got, expected = make_inputs(requires_grad=True), make_inputs(requires_grad=True)
    got_loss, expected_loss = compiled(*got), function(*expected)
    got_loss.backward()
    expected_loss.backward()
    torch.testing.assert_close(got_loss, expected_loss)
    for a, b in zip(got, expected):
        torch.testing.assert_close(a.grad, b.grad)


def test_compile_with_inductor():
    def function(x, first, logits):
        return ops.gated_value_mix(x * 2, first, logits).square().sum()

    compiled = torch.compile(function, fullgraph=True)
    got, expected = make_inputs(requires_grad=True)[:3], make_inputs(requires_grad=True)[:3]
    compiled(*got).backward()
    function(*expected).backward()
    for a, b in zip(got, expected):
        torch.testing.assert_close(a.grad, b.grad)


def test_export_with_a_dynamic_length():
    class Mix(torch.nn.Module):
        def forward(self, v, first, logits):
            return ops.gated_value_mix(v * 2, first, logits, "softmax_sigmoid")

    v, first, logits, _, _ = make_inputs()
    length = torch.export.Dim("length", min=2, max=64)
    program = torch.export.export(Mix(), (v, first, logits), dynamic_shapes=({1: length},) * 3)
    longer = [torch.cat([x, x + 1], 1) for x in (v, first, logits)]
    for inputs in ((v, first, logits), longer):
        torch.testing.assert_close(program.module()(*inputs), Mix()(*inputs))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype):
    v, first, logits, scale, shift = make_inputs(requires_grad=True)
    with torch.autocast("cpu", dtype=dtype):
        out = ops.gated_value_mix(v, first, logits, "sigmoid", scale, shift)
    assert out.dtype == dtype
    direct = ops.gated_value_mix(v.to(dtype), first.to(dtype), logits, "sigmoid", scale, shift)
    assert torch.equal(out, direct)
    out.float().sum().backward()
    assert all(t.grad is not None and t.grad.dtype == torch.float32 for t in (v, first, logits, scale, shift))


def test_torchscript(tmp_path):
    @torch.jit.script
    def mix(v: torch.Tensor, first: torch.Tensor, logits: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        mixed = torch.ops.satformer.gated_value_mix(v, first, logits, "tanh", scale)
        torch.ops.satformer.gated_value_mix_(mixed, first, logits)
        return mixed

    v, first, logits, scale, _ = make_inputs()
    expected = reference(reference(v, first, logits, "tanh", scale), first, logits, "relu")
    torch.testing.assert_close(mix(v, first, logits, scale), expected)
    path = str(tmp_path / "mix.pt")
    mix.save(path)
    torch.testing.assert_close(torch.jit.load(path)(v, first, logits, scale), expected)


def test_in_place_under_autograd():
    inputs = make_inputs(requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        ops.gated_value_mix_(*inputs[:3])
    v = inputs[0] * 1
    version = v._version
    assert ops.gated_value_mix_(v, *inputs[1:3]) is None
    assert v._version == version + 1
    v.sum().backward()
    assert torch.equal(inputs[0].grad, torch.ones(B, T, H, HD))


def test_errors_name_the_argument():
    v, first, logits, _, _ = make_inputs()
    with pytest.raises(RuntimeError, match=r"gated_value_mix: logits must be \[2, 3, 4\] like v without its last"):
        ops.gated_value_mix(v, first, logits[:, :, :3])
    with pytest.raises(ValueError, match="gate must be one of relu, sigmoid, softmax, softmax_sigmoid, tanh"):
        ops.gated_value_mix(v, first, logits, "gelu")
    with pytest.raises(TypeError, match="first_values must be Float like v, got BFloat16"):
        ops.gated_value_mix(v, first.bfloat16(), logits)


def test_cuda_library_loads_without_a_gpu():
    path = pathlib.Path(LIBRARY).with_name("libsatformer_ops_cuda.so")
    if not path.exists():
        pytest.skip(f"{path.name} was not built")
    torch.ops.load_library(str(path))
    for name in ("gated_value_mix", "gated_value_mix_", "gated_value_mix_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"satformer::{name}", "CUDA")
    v, first, logits, _, _ = make_inputs()
    torch.testing.assert_close(ops.gated_value_mix(v, first, logits), reference(v, first, logits, "relu"))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("gate", GATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_cuda_equals_cpu(gate, dtype):
    torch.ops.load_library(str(pathlib.Path(LIBRARY).with_name("libsatformer_ops_cuda.so")))
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 2**-7, torch.float16: 2**-10}[dtype]
    for head_dim in (1, 37, 64, 128):
        v = torch.randn(2, 7, 3, 6, head_dim).to(dtype)[:, :, 1]
        first, logits = torch.randn(2, 7, 6, head_dim).to(dtype), torch.randn(2, 7, 6)
        cpu = [t.detach().requires_grad_() for t in (v, first, logits, torch.randn(6), torch.randn(()))]
        gpu = [t.detach().cuda().requires_grad_() for t in cpu]
        results = []
        for x in (cpu, gpu):
            out = ops.gated_value_mix(x[0], x[1], x[2], gate, x[3], x[4])
            out.float().square().sum().backward()
            results.append([out.detach().cpu().float()] + [t.grad.cpu().float() for t in x])
        for a, b in zip(*results):
            scale = max(1.0, a.abs().max().item()) if a.numel() else 1.0
            assert (a - b).abs().max().item() <= 4 * tolerance * scale
