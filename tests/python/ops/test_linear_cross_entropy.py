"""linear_cross_entropy and linear_cross_entropy_with_gradients in Python."""

import pytest

from support import DTYPES, Random, check_compile, check_gradients, leaves, opcheck, ops, torch

N, D, V = 7, 4, 11
IGNORED = -1


def make_inputs(dtype, seed=0):
    """hidden, a slice of wider rows, weight and targets, of which two are ignored."""
    random = Random(dtype, seed)
    return random(N, D + 2)[:, 1 : D + 1], random(V, D), torch.tensor([0, V - 1, IGNORED, 3, 3, IGNORED, 7])


def loss_of(hidden, weight, targets):
    return ops.linear_cross_entropy(hidden, weight, targets, IGNORED, 0.25)


@pytest.mark.parametrize("dtype", DTYPES)
def test_opcheck(dtype):
    inputs = make_inputs(dtype)
    opcheck(ops.linear_cross_entropy, inputs, {"ignore_index": IGNORED, "scale": 0.5})
    for mask in ([True, False], [False, True]):
        torch.library.opcheck(ops.linear_cross_entropy_with_gradients.default, (*inputs, IGNORED, 0.5, mask))
    opcheck(ops.linear_cross_entropy_with_gradients, (*inputs, IGNORED, 0.5, [True, True], torch.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dtype, dynamic):
    check_compile(loss_of, make_inputs(dtype), dynamic)


def test_compile_of_a_plain_loss():
    """A gradient of exactly 1, which eager need not multiply by."""
    results = []
    for function in (torch.compile(loss_of, fullgraph=True, backend="aot_eager"), loss_of):
        hidden, weight, targets = leaves(make_inputs(torch.float32))
        function(hidden, weight, targets).backward()
        results.append((hidden.grad, weight.grad))
    for a, b in zip(*results):
        assert torch.equal(a, b)


def test_gradients():
    check_gradients(loss_of, make_inputs(torch.float64))
    hidden, weight, targets = make_inputs(torch.float64)
    check_gradients(lambda hidden: loss_of(hidden, weight, targets), (hidden,))
    check_gradients(lambda weight: loss_of(hidden, weight, targets), (weight,))


@pytest.mark.parametrize("ignored", [IGNORED, 3])
def test_values(ignored):
    hidden, weight, targets = make_inputs(torch.float32)
    targets = targets.where(targets != IGNORED, ignored)
    expected = torch.nn.functional.cross_entropy(hidden @ weight.t(), targets, ignore_index=ignored, reduction="sum")
    torch.testing.assert_close(ops.linear_cross_entropy(hidden, weight, targets, ignored), expected)


def test_autocast():
    hidden, weight, targets = make_inputs(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = loss_of(hidden, weight, targets)
    assert loss.dtype == torch.float32
    assert torch.equal(loss, loss_of(hidden.bfloat16(), weight.bfloat16(), targets))


def test_no_words_and_no_tokens():
    hidden, weight, targets = make_inputs(torch.float32)
    nothing = targets.new_full((N,), IGNORED)
    for arguments in ((hidden, weight, nothing), (hidden, weight[:0], nothing), (hidden[:0], weight, nothing[:0])):
        loss, *gradients = ops.linear_cross_entropy_with_gradients(*arguments, IGNORED, 1.0, [True, True])
        assert loss == 0
        for x, gradient in zip(arguments, gradients):
            assert torch.equal(gradient, torch.zeros_like(x))


def test_errors_name_the_argument():
    hidden, weight, targets = make_inputs(torch.float32)
    with pytest.raises(IndexError, match="targets must be 0 .. 10 or the ignore_index -100, got -1 at index 2"):
        ops.linear_cross_entropy(hidden, weight, targets)
    with pytest.raises(TypeError, match="weight must be Float like hidden, got Double"):
        ops.linear_cross_entropy(hidden, weight.double(), targets, IGNORED)
    with pytest.raises(RuntimeError, match=r"hidden must be \[N, d\], got \[1, 7, 4\]"):
        ops.linear_cross_entropy(hidden[None], weight, targets[None], IGNORED)
