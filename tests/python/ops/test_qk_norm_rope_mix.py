"""qk_norm_rope_mix in Python: opcheck, gradcheck, torch.compile."""

import pytest

from support import DTYPES, Random, ops, torch

B, T, H, H_KV, HD = 2, 3, 4, 2, 6
MIXES = ["none", "selective", "static"]


def make_inputs(mix, dtype=torch.float32, requires_grad=False, seed=0):
    """The arguments by name; q, k, v and logits are slices of one projection."""
    values, randn = Random(dtype, seed), Random(torch.promote_types(dtype, torch.float32), seed + 1)
    packed = values(B, T, (H + 2 * H_KV) * HD + H_KV)
    q, k, v, logits = packed.split([H * HD, H_KV * HD, H_KV * HD, H_KV], -1)
    angles = randn(T, 1, HD // 2)
    inputs = {
        "q": q.unflatten(-1, (H, HD)),
        "k": k.unflatten(-1, (H_KV, HD)),
        "v": v.unflatten(-1, (H_KV, HD)),
        "cos": angles.cos(),
        "sin": angles.sin(),
        "q_weight": 1 + randn(HD) / 4,
        "k_weight": 1 + randn(HD) / 4,
    }
    if mix != "none":
        inputs["first_values"] = values(B, T, H_KV, HD)
    if mix == "selective":
        inputs["logits"] = logits
        inputs["gate"] = "softmax_sigmoid"
    if mix == "static":
        inputs["lambda1"], inputs["lambda2"] = randn(), randn()
    return {
        name: x.detach().requires_grad_(requires_grad and name not in ("cos", "sin")) if torch.is_tensor(x) else x
        for name, x in inputs.items()
    }


def tensors_of(inputs):
    return [x for name, x in inputs.items() if torch.is_tensor(x) and name not in ("cos", "sin")]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck(mix, requires_grad, dtype):
    inputs = make_inputs(mix, dtype, requires_grad=requires_grad)
    torch.library.opcheck(ops.qk_norm_rope_mix.default, (), inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mix", MIXES)
def test_opcheck_backward(mix, dtype):
    """It writes into targets, here slices of one packed gradient, and adds to that of the first values."""
    inputs, targets = make_inputs(mix, dtype), make_inputs(mix, dtype, seed=2)
    names = ["q", "k", "v", "cos", "sin", "q_weight", "k_weight"]
    mixed = [inputs.get(name) for name in ("first_values", "logits")]
    tail = ["q", "k", "v", "logits", "first_values"]
    grads = ops.qk_norm_rope_mix(**make_inputs(mix, dtype, seed=4))
    arguments = [*grads, *(inputs[name] for name in names), 1e-5, *mixed, inputs.get("gate", "relu"),
                 inputs.get("lambda1"), inputs.get("lambda2"), *(targets.get(name) for name in tail), [True] * 5]
    torch.library.opcheck(ops.qk_norm_rope_mix_backward.default, tuple(arguments))


@pytest.mark.parametrize("mix", MIXES)
def test_gradcheck(mix):
    inputs = make_inputs(mix, torch.float64, requires_grad=True)
    names = [name for name, x in inputs.items() if torch.is_tensor(x) and x.requires_grad]

    def function(*tensors):
        return ops.qk_norm_rope_mix(**(inputs | dict(zip(names, tensors))))

    assert torch.autograd.gradcheck(function, tensors_of(inputs))
    assert torch.autograd.gradgradcheck(function, tensors_of(inputs), fast_mode=True)


@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_full_graph(mix, dynamic):
    def function(inputs):
        q, k, v = ops.qk_norm_rope_mix(**inputs)
        return (q * q).sum() + (k * k * k).sum() + (v * v).sum()

    # aot_eager traces forward and backward as the inductor does but needs no C++ compiler.
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    got, expected = make_inputs(mix, requires_grad=True), make_inputs(mix, requires_grad=True)
    compiled(got).backward()
    function(expected).backward()
    for a, b in zip(tensors_of(got), tensors_of(expected)):
        torch.testing.assert_close(a.grad, b.grad)


def test_without_a_copy_there_are_no_values():
    assert ops.qk_norm_rope_mix(**make_inputs("none"), copy_values=False)[2] is None


def test_errors_name_the_argument():
    inputs = make_inputs("none")
    inputs["v"] = inputs["v"][:, :, :1]
    with pytest.raises(RuntimeError, match=r"qk_norm_rope_mix: v must be \[2, 3, 2, 6\] like k, got \[2, 3, 1, 6\]"):
        ops.qk_norm_rope_mix(**inputs)
