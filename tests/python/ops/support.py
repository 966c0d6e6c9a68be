"""What the tests of satformer's operators share. SATFORMER_OPS_LIBRARY names libsatformer_ops.so."""

import os

import pytest

torch = pytest.importorskip("torch")
from torch.utils import _pytree as pytree  # noqa: E402

LIBRARY = os.environ.get("SATFORMER_OPS_LIBRARY")
if not LIBRARY:
    pytest.skip("SATFORMER_OPS_LIBRARY is not set: the path of libsatformer_ops.so", allow_module_level=True)
torch.ops.load_library(LIBRARY)

ops = torch.ops.satformer
DTYPES = [torch.float32, torch.bfloat16]


class Random:
    """Standard normal tensors, the same ones for the same seed."""

    def __init__(self, dtype=torch.float32, seed=0):
        self.dtype = dtype
        self.generator = torch.Generator().manual_seed(seed)

    def __call__(self, *shape, dtype=None):
        return torch.randn(shape, generator=self.generator).to(dtype or self.dtype)


def is_floating(x):
    return torch.is_tensor(x) and x.is_floating_point()


def leaves(arguments, requires_grad=True):
    """The arguments, nested as they are, with a leaf in place of each floating-point tensor."""
    return pytree.tree_map(lambda x: x.detach().requires_grad_(requires_grad) if is_floating(x) else x, arguments)


def differentiable(arguments):
    return [x for x in pytree.tree_leaves(arguments) if torch.is_tensor(x) and x.requires_grad]


def opcheck(op, arguments, keywords=None, **options):
    """torch.library.opcheck with and without gradients."""
    for requires_grad in (False, True):
        torch.library.opcheck(op.default, leaves(arguments, requires_grad), leaves(keywords or {}, requires_grad),
                              **options)


def results_of(function, arguments):
    """The outputs of `function`, flat, and for fixed gradients of them the gradients of the arguments."""
    inputs = leaves(arguments)
    outputs = [x for x in pytree.tree_leaves(function(*inputs)) if torch.is_tensor(x)]
    sources = [x for x in outputs if x.requires_grad]
    random = Random(seed=1)
    grads = torch.autograd.grad(sources, differentiable(inputs), [random(*x.shape, dtype=x.dtype) for x in sources])
    return [x.detach() for x in outputs] + list(grads)


def check_compile(function, arguments, dynamic):
    """torch.compile without a graph break gives the bits of eager, values and gradients."""
    torch._dynamo.reset()
    # aot_eager traces forward and backward as the inductor does but needs no C++ compiler.
    compiled = torch.compile(function, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    got, expected = results_of(compiled, arguments), results_of(function, arguments)
    assert len(got) == len(expected)
    for a, b in zip(got, expected):
        torch.testing.assert_close(a, b, rtol=0, atol=0)


def check_gradients(function, arguments, twice=False):
    """Numeric gradients of a function of float64 arguments, on request also of its gradients."""
    inputs = leaves(arguments)
    flat, structure = pytree.tree_flatten(inputs)
    places = [i for i, x in enumerate(flat) if torch.is_tensor(x) and x.requires_grad]

    def of_tensors(*tensors):
        values = list(flat)
        for place, tensor in zip(places, tensors):
            values[place] = tensor
        return function(*pytree.tree_unflatten(values, structure))

    tensors = tuple(flat[place] for place in places)
    assert torch.autograd.gradcheck(of_tensors, tensors)
    if twice:
        assert torch.autograd.gradgradcheck(of_tensors, tensors)
