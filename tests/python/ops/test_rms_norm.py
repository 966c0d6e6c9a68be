"""rms_norm, add_rms_norm, rms_norm_apply and rms_norm_backward in Python."""

import pytest

from support import DTYPES, Random, check_compile, check_gradients, opcheck, ops, torch

EPS = 1e-5


def rms_norm(x, residual, weight):
    return ops.rms_norm(x * residual, weight, EPS)[0]


def add_rms_norm(x, residual, weight):
    return ops.add_rms_norm(x, residual, weight, EPS)[:2]


def rms_norm_apply(x, residual, weight):
    return ops.rms_norm_apply(x, weight, residual[..., :1])


FUNCTIONS = [rms_norm, add_rms_norm, rms_norm_apply]


def make_inputs(dtype, seed=0):
    """x, residual, weight; x is a slice of wider rows."""
    random = Random(dtype, seed)
    return random(2, 3, 8)[..., 1:7], random(2, 3, 6), random(6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck(dtype):
    x, residual, weight = make_inputs(dtype)
    inverse_rms = Random(seed=1)(2, 3, 1)
    opcheck(ops.rms_norm, (x, weight, EPS))
    opcheck(ops.add_rms_norm, (x.float(), residual, weight, EPS, dtype))
    opcheck(ops.rms_norm_apply, (x, weight, inverse_rms))
    torch.library.opcheck(ops.rms_norm_backward.default, (residual, None, x, weight, inverse_rms))
    torch.library.opcheck(ops.rms_norm_backward.default, (residual, x.float(), x.float(), weight, inverse_rms, dtype))


def test_opcheck_backward_with_gradients():
    """Traces the composite definition, which second derivatives take."""
    x, residual, weight = make_inputs(torch.float32)
    inverse_rms = Random(seed=1)(2, 3, 1)
    opcheck(ops.rms_norm_backward, (residual, residual, x, weight, inverse_rms))


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(function, dynamic):
    check_compile(function, make_inputs(torch.float32), dynamic)


def test_compile_mixed_dtypes():
    x, residual, weight = make_inputs(torch.bfloat16)

    def function(x, residual, weight):
        return ops.add_rms_norm(x, residual, weight, EPS, torch.bfloat16)

    check_compile(function, (x.float(), residual, weight.float()), dynamic=False)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients(function):
    inputs = make_inputs(torch.float64)
    check_gradients(function, inputs, twice=True)


def test_one_tensor_as_both_terms():
    x, _, weight = make_inputs(torch.float64)
    check_gradients(lambda x, weight: add_rms_norm(x, x, weight), (x, weight))


def test_gradients_of_what_requires_them():
    x, residual, weight = make_inputs(torch.float32)
    weight.requires_grad_()
    total, y, inverse_rms = ops.add_rms_norm(x, residual, weight, EPS)
    assert y.requires_grad and not inverse_rms.requires_grad
    total.sum().backward(retain_graph=True)  # the weight has no part in it
    assert weight.grad is None
    y.sum().backward()
    torch.testing.assert_close(weight.grad, ((x + residual) * inverse_rms).sum((0, 1)))


def test_errors_name_the_argument():
    x, residual, weight = make_inputs(torch.float32)
    with pytest.raises(RuntimeError, match=r"add_rms_norm: residual must be \[2, 3, 6\] like x, got \[2, 3, 5\]"):
        ops.add_rms_norm(x, residual[..., 1:], weight, EPS)
    with pytest.raises(TypeError, match="rms_norm: out_dtype must be float32, bfloat16 or float16"):
        ops.rms_norm(x, weight, EPS, torch.int64)
    for eps in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="rms_norm: eps must not be negative, got"):
            ops.rms_norm(x, weight, eps)
