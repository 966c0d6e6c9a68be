"""sum_of_squares and adamw_ in Python: opcheck, torch.optim.AdamW, torch.compile, errors."""

import pytest

from support import ops, torch

SIZES = [(3, 5), (), (7,), (0, 2), (40,)]
SETTINGS = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}


def randn_lists(count, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [[torch.randn(size, generator=generator).to(dtype) for size in SIZES] for _ in range(count)]


def make_arguments(dtype=torch.float32, state_dtype=None):
    """parameters, gradients, exp_avgs, exp_avg_sqs, gradient_factor; and the keyword arguments."""
    parameters, gradients, exp_avgs, exp_avg_sqs = randn_lists(4, dtype)
    exp_avgs = [x.to(state_dtype or dtype) for x in exp_avgs]
    exp_avg_sqs = [x.square().to(state_dtype or dtype) for x in exp_avg_sqs]
    steps = list(range(1, len(SIZES) + 1))
    return (parameters, gradients, exp_avgs, exp_avg_sqs, torch.tensor(0.5)), {**SETTINGS, "steps": steps}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_opcheck_sum_of_squares(dtype):
    torch.library.opcheck(ops.sum_of_squares.default, (randn_lists(1, dtype)[0],))


def test_opcheck_sum_of_squares_of_mixed_dtypes_and_strides():
    tensors = [torch.randn(4, 6).t()[::2], torch.randn(3).double(), torch.randn(5).bfloat16(), torch.ones(1).expand(3)]
    torch.library.opcheck(ops.sum_of_squares.default, (tensors,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_opcheck_adamw(dtype):
    arguments, keywords = make_arguments(dtype)
    torch.library.opcheck(ops.adamw_.default, arguments, keywords)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_opcheck_adamw_with_float32_state(dtype):
    arguments, keywords = make_arguments(dtype, torch.float32)
    torch.library.opcheck(ops.adamw_.default, arguments, keywords)


def test_sum_of_squares():
    tensors = randn_lists(1)[0] + [torch.full((3,), 3e38), torch.randn(5).bfloat16()]
    expected = sum(x.double().square().sum() for x in tensors)
    got = ops.sum_of_squares(tensors)
    assert got.dtype == torch.float64 and got.shape == ()
    torch.testing.assert_close(got, expected, rtol=1e-14, atol=0)
    assert ops.sum_of_squares([]).item() == 0


def test_adamw_is_torch_optim_adamw_for_five_steps():
    parameters = [x.double() for x in randn_lists(1)[0]]
    theirs = [x.clone().requires_grad_() for x in parameters]
    optimizer = torch.optim.AdamW(theirs, lr=1e-2, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    exp_avgs, exp_avg_sqs = [torch.zeros_like(x) for x in parameters], [torch.zeros_like(x) for x in parameters]
    for step in range(1, 6):
        gradients = [x.double() for x in randn_lists(1, seed=step)[0]]
        kept = [x.clone() for x in gradients]
        factor = torch.tensor(0.25 * step, dtype=torch.float64)
        for p, g in zip(theirs, gradients):
            p.grad = g * factor
        optimizer.step()
        steps = [step] * len(parameters)
        assert ops.adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, factor, **SETTINGS, steps=steps) is None
        for a, b in zip(gradients, kept):
            assert torch.equal(a, b)
    for p, q, m, v in zip(parameters, theirs, exp_avgs, exp_avg_sqs):
        torch.testing.assert_close(p, q.detach(), rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(m, optimizer.state[q]["exp_avg"], rtol=1e-12, atol=1e-14)
        torch.testing.assert_close(v, optimizer.state[q]["exp_avg_sq"], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_full_graph(dynamic):
    def clip_and_update(parameters, gradients, exp_avgs, exp_avg_sqs):
        norm = ops.sum_of_squares(gradients).sqrt()
        factor = torch.clamp(1.0 / (norm + 1e-6), max=1.0)
        steps = [3] * len(parameters)
        ops.adamw_(parameters, gradients, exp_avgs, exp_avg_sqs, factor, **SETTINGS, steps=steps)
        return norm

    compiled = torch.compile(clip_and_update, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    got, expected = make_arguments()[0][:4], make_arguments()[0][:4]
    assert torch.equal(compiled(*got), clip_and_update(*expected))
    for a, b in zip(got, expected):
        for x, y in zip(a, b):
            assert torch.equal(x, y)


def test_under_autograd():
    arguments, keywords = make_arguments()
    parameter = arguments[0][0].requires_grad_()
    with pytest.raises(RuntimeError, match=r"adamw_: has no derivative, but parameters\[0\] requires grad"):
        ops.adamw_(*arguments, **keywords)
    with pytest.raises(RuntimeError, match=r"sum_of_squares: has no derivative, but tensors\[0\] requires grad"):
        ops.sum_of_squares(arguments[0])
    version = parameter._version
    with torch.no_grad():
        ops.adamw_(*arguments, **keywords)
    assert parameter._version == version + 1


def test_errors_name_the_list_and_the_index():
    arguments, keywords = make_arguments()
    arguments[1][2] = torch.ones(8)
    with pytest.raises(RuntimeError, match=r"adamw_: gradients\[2\] must be \[7\] like parameters\[2\], got \[8\]"):
        ops.adamw_(*arguments, **keywords)
    arguments[1][2] = arguments[0][2]
    with pytest.raises(RuntimeError, match=r"adamw_: gradients\[2\] shares memory with parameters\[2\]"):
        ops.adamw_(*arguments, **keywords)
    with pytest.raises(ValueError, match=r"adamw_: beta2 must be in \[0, 1\), got 1"):
        ops.adamw_(*arguments, **{**keywords, "beta2": 1.0})
    with pytest.raises(TypeError, match=r"sum_of_squares: tensors\[1\] must be float32, bfloat16, float16 or float64"):
        ops.sum_of_squares([torch.ones(2), torch.ones(2, dtype=torch.long)])
