"""hyper_connection_read and hyper_connection_write, with their backwards, in Python."""

import pytest

from support import DTYPES, Random, check_compile, check_gradients, leaves, opcheck, ops, torch

B, T, STREAMS, D = 2, 3, 3, 6
FORMS = ["static", "rms_norm", "layer_norm"]


def make_read(form, dtype, seed=0):
    """The arguments of hyper_connection_read."""
    random = Random(dtype, seed)
    streams = random(B, T, STREAMS, D + 2)[..., 1 : D + 1]
    fixed = random(STREAMS, STREAMS + 1), random(STREAMS)
    if form == "static":
        return streams, *fixed, None, None, None, None, None, None, 1e-5, True
    bias = random(D) if form == "layer_norm" else None
    dynamic = random(D), bias, random(D, STREAMS + 1) / 3, random(D) / 3, random(1), random(1)
    return streams, *fixed, *dynamic, 1e-3, form == "layer_norm"


def make_write(dtype):
    """mixed, beta, out."""
    random = Random(dtype, seed=5)
    return random(B, T, STREAMS, D), random(B, T, STREAMS), random(B, T, D)


def read(*arguments):
    return ops.hyper_connection_read(*arguments)[:3]  # `kept` has no gradient


def write_in_place(mixed, beta, out):
    mixed = mixed * 1  # a leaf may not be overwritten
    ops.hyper_connection_write_(mixed, beta, out)
    return mixed


def chain(*arguments):
    """Two modules, tanh, around both operators."""
    streams, *parameters = arguments
    for write in (ops.hyper_connection_write, write_in_place):
        module_input, mixed, beta = read(streams, *parameters)
        streams = write(mixed, beta, module_input.tanh())
    return streams


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_opcheck_read(form, dtype):
    arguments = make_read(form, dtype)
    opcheck(ops.hyper_connection_read, arguments)
    *outputs, kept = ops.hyper_connection_read(*arguments)
    # Not differentiable itself, and says so: no gradients of gradients to compare.
    torch.library.opcheck(ops.hyper_connection_read_backward.default,
                          (*(torch.ones_like(x) for x in outputs), *arguments, kept))


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck_write(dtype):
    mixed, beta, out = make_write(dtype)
    opcheck(ops.hyper_connection_write, (mixed, beta, out))
    for beta_requires_grad in (False, True):
        torch.library.opcheck(ops.hyper_connection_write_.default,
                              (mixed.clone(), beta.detach().requires_grad_(beta_requires_grad), out))
    torch.library.opcheck(ops.hyper_connection_write_backward.default, (mixed, beta.float(), out))


@pytest.mark.parametrize("form, dtype, dynamic", [("static", torch.float32, False), ("rms_norm", torch.bfloat16, False),
                                                  ("layer_norm", torch.float32, False),
                                                  ("layer_norm", torch.float32, True)])
def test_compile(form, dtype, dynamic):
    check_compile(chain, make_read(form, dtype), dynamic)


@pytest.mark.parametrize("form", FORMS)
def test_gradients(form):
    check_gradients(read, make_read(form, torch.float64))
    check_gradients(chain, make_read(form, torch.float64))


@pytest.mark.parametrize("write", [ops.hyper_connection_write, write_in_place])
def test_gradients_of_write(write):
    check_gradients(write, make_write(torch.float64))


def test_gradients_of_what_requires_them():
    mixed, beta, out = make_write(torch.float32)
    beta.requires_grad_()
    ops.hyper_connection_write_(mixed, beta, out)
    assert mixed.requires_grad
    mixed.sum().backward()
    torch.testing.assert_close(beta.grad, out.sum(-1, keepdim=True).expand_as(beta))
    # Of the outputs of a read only beta is used.
    streams, *parameters = make_read("rms_norm", torch.float64)
    check_gradients(lambda x: read(x, *parameters)[2], (streams,))


def test_second_derivatives_are_refused():
    inputs = leaves(make_read("rms_norm", torch.float32))
    with pytest.raises(NotImplementedError, match="hyper_connection_read_backward: has no derivative of its own"):
        torch.autograd.grad(read(*inputs)[0].square().sum(), inputs[0], create_graph=True)


def test_errors_name_the_argument():
    streams, *parameters = make_read("rms_norm", torch.float32)
    with pytest.raises(RuntimeError, match="dynamic_alpha_proj is needed with norm_weight, got none"):
        ops.hyper_connection_read(streams, *parameters[:4], None, *parameters[5:])
    with pytest.raises(RuntimeError, match=r"streams must have at least 1 column \[B, T, n, d\], got \[2, 3, 3, 0\]"):
        ops.hyper_connection_read(streams[..., :0], *parameters)
    with pytest.raises(ValueError, match="hyper_connection_read: norm_eps must not be negative, got -1"):
        ops.hyper_connection_read(streams, *parameters[:-2], -1.0, True)
    mixed, beta, out = make_write(torch.float32)
    with pytest.raises(RuntimeError, match="out must not share memory with mixed, which is overwritten"):
        ops.hyper_connection_write_(mixed, beta, mixed[:, :, 0])
