"""causal_attention and causal_attention_backward in Python."""

import pytest

from support import Random, check_compile, check_gradients, opcheck, ops, torch


def make_inputs(dtype, length=7):
    """q, k and v with two query heads for each head of k; q is a slice of a wider tensor."""
    random = Random(dtype)
    return random(2, length, 4, 10)[..., 1:9], random(2, length, 2, 8), random(2, length, 2, 8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_opcheck(dtype):
    inputs = make_inputs(dtype)
    opcheck(ops.causal_attention, inputs)
    out, logsumexp = ops.causal_attention(*inputs)
    torch.library.opcheck(ops.causal_attention_backward.default, (torch.ones_like(out), *inputs, out, logsumexp))


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    check_compile(lambda q, k, v: ops.causal_attention(q, k, v)[0], make_inputs(torch.float32), dynamic)


def test_gradients():
    check_gradients(lambda q, k, v: ops.causal_attention(q, k, v)[0], make_inputs(torch.float64, length=4), twice=True)


@pytest.mark.parametrize("length", [1, 50, 200])
def test_values(length):
    inputs = [x.requires_grad_() for x in make_inputs(torch.float32, length)]
    heads = [x.transpose(1, 2) for x in inputs]
    expected = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True, enable_gqa=True)
    out = ops.causal_attention(*inputs)[0].transpose(1, 2)
    torch.testing.assert_close(out, expected)
    grad = Random(seed=1)(*out.shape)
    for a, b in zip(torch.autograd.grad(out, inputs, grad), torch.autograd.grad(expected, inputs, grad)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_errors_name_the_argument():
    q, k, v = make_inputs(torch.float32)
    with pytest.raises(TypeError, match="causal_attention: q must be float32 or float64, got BFloat16"):
        ops.causal_attention(q.bfloat16(), k, v)
    with pytest.raises(RuntimeError, match="the number of k's heads must divide q's 3, got 2"):
        ops.causal_attention(q[:, :, :3], k, v)
