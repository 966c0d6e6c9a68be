"""swiglu and swiglu_backward in Python."""

import pytest

from support import DTYPES, Random, check_compile, check_gradients, opcheck, ops, torch


def make_packed(dtype):
    """[2, 3, 10], columns of a wider tensor."""
    return Random(dtype)(2, 3, 12)[..., 1:11]


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck(dtype):
    packed, grad = make_packed(dtype), Random(dtype, seed=1)(2, 3, 5)
    opcheck(ops.swiglu, (packed,))
    for with_output in (False, True):
        torch.library.opcheck(ops.swiglu_backward.default, (grad, packed, with_output))


def test_opcheck_backward_with_gradients():
    """Traces the composite definition, which second derivatives take."""
    opcheck(ops.swiglu_backward, (Random(seed=1)(2, 3, 5), make_packed(torch.float32), True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dtype, dynamic):
    check_compile(ops.swiglu, (make_packed(dtype),), dynamic)


def test_gradients():
    packed = make_packed(torch.float64)
    check_gradients(ops.swiglu, (packed,), twice=True)

    def backward(grad, packed):
        return ops.swiglu_backward(grad, packed, True)

    check_gradients(backward, (Random(torch.float64, seed=1)(2, 3, 5), packed))


def test_values():
    packed = make_packed(torch.float32)
    gate, up = packed.chunk(2, -1)
    torch.testing.assert_close(ops.swiglu(packed), torch.nn.functional.silu(gate) * up)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(ops.swiglu(packed), ops.swiglu(packed.bfloat16()))


def test_errors_name_the_argument():
    with pytest.raises(RuntimeError, match=r"swiglu: packed must be \[..., 2f\], got \[2, 7\]"):
        ops.swiglu(torch.ones(2, 7))
    with pytest.raises(TypeError, match="swiglu: packed must be float32, bfloat16 or float16 .*, got Int on cpu"):
        ops.swiglu(torch.ones(2, 8, dtype=torch.int32))
