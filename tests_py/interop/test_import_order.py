"""Which library is imported first, and which runtime starts first, does not matter; one process each."""

import importlib.util

import pytest
from support import alone, requires

TORCH = """
    import torch
    torch.ones(1000, 1000) @ torch.ones(1000, 1000)
"""
JAX = """
    import jax, jax.numpy as jnp
    jnp.ones((100, 100)) @ jnp.ones((100, 100))
"""
OURS = """
    import dlferry as g
    assert g.asarray([1, 2]).astype("float32").tolist() == [1, 2]
"""
USE = {
    "torch": "import torch; x = g.from_dlpack(torch.arange(6.0)); assert torch.from_dlpack(x.astype('float64')).sum() == 15; assert g.convert(x, 'torch').sum() == 15",
    "jax": "import jax.numpy as jnp; y = g.from_dlpack(jnp.arange(6.0)); assert y.astype('int8').tolist() == [0, 1, 2, 3, 4, 5]; assert g.convert(y, 'jax').sum() == 15",
}
PARTS = {"torch": TORCH, "jax": JAX, "dlferry": OURS}


@pytest.mark.parametrize("order", ["torch dlferry jax", "jax dlferry torch", "dlferry torch", "dlferry jax", "torch jax dlferry"])
def test_any_order_works(order):
    order = order.split()
    for name in order:
        if name != "dlferry" and importlib.util.find_spec(name) is None:
            pytest.skip(f"needs {name}, not installed for this Python")
    code = "".join(PARTS[n] for n in order) + "".join(f"\n    {USE[n]}" for n in order if n in USE) + "\n    import gc; del g; gc.collect()\n"
    alone("    import warnings; warnings.simplefilter('ignore')" + code, quiet=False, timeout=180)


@requires("torch")
@pytest.mark.parametrize(("method", "after"), [("fork", ""), ("fork", "reload"), ("spawn", ""), ("forkserver", "")])
def test_a_data_loader_of_any_start_method_ends(method, after, tmp_path):
    # case M01, https://github.com/golang/go/issues/15538
    script = tmp_path / "main.py"
    script.write_text(f"""
import warnings; warnings.simplefilter("ignore")
import torch, dlferry as g

class D(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        t = g.full((3,), float(i))
        try:
            t = t.astype("int32").astype("float32")
        except RuntimeError as e:
            assert "spawn" in str(e) and "reload" in str(e)
            assert {method!r} == "fork" and not {after!r}
        else:
            assert {method!r} != "fork" or {after!r}
        return t.torch() + 0

if __name__ == "__main__":
    assert g.asarray([1]).astype("int8").tolist() == [1]
    loader = torch.utils.data.DataLoader(D(), batch_size=2, num_workers=2, multiprocessing_context={method!r}, timeout=100)
    assert sorted(x[0].item() for batch in loader for x in batch) == list(range(8))
    assert g.asarray([1]).astype("int8").tolist() == [1]
""")
    alone(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", quiet=False, timeout=180, env={"DLFERRY_AFTER_FORK": after})
