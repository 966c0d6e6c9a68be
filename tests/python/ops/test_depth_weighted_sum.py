"""depth_weighted_sum and inverse_rms, with their backwards, in Python."""

import pytest

from support import DTYPES, Random, check_compile, check_gradients, leaves, opcheck, ops, torch

B, T, D, S, C = 2, 3, 6, 3, 2
EPS = 1e-3
ALL = [True] * 6


def make_plain(dtype, seed=0):
    """Static weights, nothing else; the sources are slices of wider rows."""
    random = Random(dtype, seed)
    return [random(B, T, D + 2)[..., 1 : D + 1] for _ in range(S)], random(C, S), None, [], [], [], EPS


def make_whole(dtype, seed=0):
    """Weights per token, a base, norms of the sources and of the sums."""
    random = Random(dtype, seed)
    sources, *_ = make_plain(dtype, seed + 1)
    vectors = [random(D) for _ in range(S + C)]
    inverse_rms = [ops.inverse_rms(x, EPS) for x in sources]
    return sources, random(B, T, C, S), random(B, T, D), vectors[:S], inverse_rms, vectors[S:], EPS


FORMS = [make_plain, make_whole]


def make_grads(dtype):
    random = Random(dtype, seed=9)
    return [random(B, T, D) for _ in range(C)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
def test_opcheck(form, dtype):
    opcheck(ops.depth_weighted_sum, form(dtype))
    arguments = (make_grads(dtype), *form(dtype))
    for mask in (ALL, [False, True] * 3):
        # Not differentiable itself, and says so: no gradients of gradients to compare.
        torch.library.opcheck(ops.depth_weighted_sum_backward.default, (*arguments, mask))


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck_inverse_rms(dtype):
    x = make_plain(dtype)[0][0]
    inverse = ops.inverse_rms(x, EPS)
    opcheck(ops.inverse_rms, (x, EPS))
    torch.library.opcheck(ops.inverse_rms_backward.default, (torch.ones_like(inverse), x, inverse))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(form, dynamic):
    check_compile(ops.depth_weighted_sum, form(torch.float32), dynamic)


@pytest.mark.parametrize("dtype", DTYPES)
def test_compile_with_norms_of_the_sources(dtype):
    """The sources' gradients come through the sum and through their norms."""

    def function(sources, weights, base, source_norms, inverse_rms, output_norms, eps):
        inverse_rms = [ops.inverse_rms(x, eps) for x in sources]
        return ops.depth_weighted_sum(sources, weights, base, source_norms, inverse_rms, output_norms, eps)

    arguments = list(make_whole(dtype))
    arguments[4] = []
    check_compile(function, arguments, dynamic=False)


@pytest.mark.parametrize("form", FORMS)
def test_gradients(form):
    check_gradients(ops.depth_weighted_sum, form(torch.float64))
    check_gradients(ops.inverse_rms, (make_plain(torch.float64)[0][0], EPS))


def test_one_source_twice():
    sources, weights, *rest = make_plain(torch.float64)

    def function(x, weights):
        return ops.depth_weighted_sum([x] * S, weights, x, *rest[1:])

    check_gradients(function, (sources[0], weights))


def test_accumulating_backward():
    """depth_weighted_sum_backward_ adds to the buffers and raises their versions, in inference mode too."""
    grads, arguments = make_grads(torch.float32), make_whole(torch.float32)
    expected = ops.depth_weighted_sum_backward(grads, *arguments, ALL)
    buffers = [torch.zeros(B, T, D) for _ in range(S)]
    for inference in (False, True):
        versions = [x._version for x in buffers]
        with torch.inference_mode(inference):
            got = ops.depth_weighted_sum_backward_(buffers, grads, *arguments, ALL)
        assert [x._version for x in buffers] == [version + 1 for version in versions]
        assert got[0] == [] and torch.equal(got[1], expected[1])
    for buffer, gradient in zip(buffers, expected[0]):
        torch.testing.assert_close(buffer, 2 * gradient)


def test_accumulating_backward_is_for_eager_alone():
    """A compiler cannot functionalise a list that is returned beside one that is written to."""
    op = ops.depth_weighted_sum_backward_.default
    assert torch.Tag.pt2_compliant_tag not in op.tags
    buffers = [torch.zeros(B, T, D) for _ in range(S)]
    torch.library.opcheck(op, (buffers, make_grads(torch.float32), *make_whole(torch.float32), ALL),
                          test_utils=("test_schema", "test_autograd_registration", "test_faketensor"))


def test_second_derivatives_are_refused():
    inputs = leaves(make_plain(torch.float32))
    out = ops.depth_weighted_sum(*inputs)
    with pytest.raises(NotImplementedError, match="depth_weighted_sum_backward: has no derivative of its own"):
        torch.autograd.grad(out, inputs[0], make_grads(torch.float32), create_graph=True)


def test_errors_name_the_argument():
    sources, weights, *rest = make_plain(torch.float32)
    with pytest.raises(TypeError, match=r"depth_weighted_sum: sources\[1\] must be Float, got BFloat16"):
        ops.depth_weighted_sum([sources[0], sources[1].bfloat16(), sources[2]], weights, *rest)
    with pytest.raises(RuntimeError, match="depth_weighted_sum: sources must hold at least 1 tensor, got 0"):
        ops.depth_weighted_sum([], weights, *rest)
    with pytest.raises(ValueError, match="depth_weighted_sum: output_norm_eps must not be negative, got -1"):
        ops.depth_weighted_sum(sources, weights, *rest[:-1], -1.0)
    with pytest.raises(ValueError, match="inverse_rms: eps must not be negative, got nan"):
        ops.inverse_rms(sources[0], float("nan"))
