"""vLLM's load format ``gpuio``.

Doubles follow the parts of vLLM 0.24 that are used. `Real` has vLLM's own loader, where it is.
"""

import contextlib
import importlib.metadata
import importlib.util
import io
import re
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy

import gpuio
from gpuio import _vllm
from test_gpuio import written
from test_install import NAMES

GENERATOR = numpy.random.default_rng(9)


class Array(numpy.ndarray):
    """PyTorch's tensor, as far as it is used, in memory of the host."""

    def data_ptr(self):
        return self.ctypes.data

    def clone(self):
        return self.copy()


def doubles(waited):
    torch = types.ModuleType("torch")
    for name in (*NAMES, "bool"):
        setattr(torch, name, numpy.dtype(name))
    torch.empty = lambda size, dtype, device: numpy.empty(size, dtype).view(Array)
    torch.device = lambda kind, number: f"{kind}:{number}"
    torch.cuda = types.SimpleNamespace(current_device=lambda: 0, current_stream=lambda device:
                                       types.SimpleNamespace(synchronize=lambda: waited.append(device)))
    package = "vllm.model_executor.model_loader"
    loaders, default, experts = (types.ModuleType(name) for name in (
        package, package + ".default_loader", package + ".ep_weight_filter"))
    loaders.default_loader, loaders.known = default, {}

    def register_model_loader(name):
        return lambda loader: loaders.known.setdefault(name, loader)

    loaders.register_model_loader = register_model_loader
    experts.should_skip_weight = lambda name, own: (
        name.endswith(".weight") and int((re.search(r"experts\.(\d+)", name) or [0, min(own)])[1])
        not in own)
    exec("""
class DefaultModelLoader:
    def __init__(self, load_config):
        self.load_config, self.local_expert_ids = load_config, None

    def _get_weights_iterator(self, source):
        if self.load_config.load_format != "safetensors":
            raise ValueError(f"Unknown load_format: {self.load_config.load_format}")
        weights = safetensors_weights_iterator(
            source.files, True, self.load_config.safetensors_load_strategy,
            local_expert_ids=self.local_expert_ids, safetensors_prefetch_num_threads=8)
        return ((source.prefix + name, tensor) for name, tensor in weights)

safetensors_weights_iterator = None
""", default.__dict__)
    parents = {name: types.ModuleType(name) for name in ("vllm", "vllm.model_executor")}
    return {"torch": torch, **parents, package: loaders, default.__name__: default,
            experts.__name__: experts}


class Loads(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        self.said, self.waited = io.StringIO(), []
        modules = doubles(self.waited)
        for entered in (mock.patch.dict(sys.modules, modules),
                        contextlib.redirect_stderr(self.said)):
            entered.__enter__()
            self.addCleanup(entered.__exit__, None, None, None)
        _vllm.register()
        self.loader = modules["vllm.model_executor.model_loader"].known["gpuio"]

    def loaded(self, files, part=1 << 20, own=None, strategy=None):
        config = types.SimpleNamespace(load_format="gpuio", safetensors_load_strategy=strategy)
        loader = self.loader(config)
        loader.local_expert_ids = own
        self.assertEqual(config.load_format, "gpuio", "the program's own configuration stays")
        source = types.SimpleNamespace(files=[str(file) for file in files], prefix="x.")
        with mock.patch.object(_vllm, "_PART", part):
            return list(loader._get_weights_iterator(source))

    def files(self):
        """Two files, whose tensors begin at odd places, and what is in them."""
        every, paths = {}, []
        for nth in range(2):
            some = {f"{nth}.{kind}": GENERATOR.integers(0, 99, (3 + nth, 5)).astype(kind)
                    for kind in ("uint8", "int64", "float16", "bool", "float32")}
            some[f"{nth}.empty"] = numpy.zeros((0, 2), "int64")
            some[f"{nth}.scalar"] = numpy.float32(nth).reshape(())
            for expert in range(3):
                some[f"{nth}.experts.{expert}.weight"] = GENERATOR.random((2, 2), "float32")
            paths.append(written(self.dir / f"model-{nth}.safetensors", some))
            every.update(some)
        return paths, every

    def test_all_tensors_are_those_of_the_files(self):
        paths, every = self.files()
        for part in (1, 40, 1 << 20):
            made = self.loaded(paths, part)
            self.assertEqual(sorted(name for name, _ in made), sorted(f"x.{name}" for name in every))
            for name, tensor in made:
                right = every[name[2:]]
                self.assertEqual((tensor.dtype, tensor.shape), (right.dtype, right.shape), name)
                self.assertEqual(tensor.tobytes(), right.tobytes(), name)
        self.assertIn("2 files for cuda:0 are read by", self.said.getvalue())
        self.assertEqual(set(self.waited), {"cuda:0"})

    def test_a_tensor_keeps_no_other(self):
        path = written(self.dir / "a.safetensors", {
            name: numpy.zeros(100, "uint8") for name in "abc"})
        for _, tensor in self.loaded([path]):
            owner = tensor
            while isinstance(owner.base, numpy.ndarray):
                owner = owner.base
            self.assertEqual(owner.nbytes, 100)

    def test_experts_of_other_ranks_are_not_read(self):
        paths, every = self.files()
        read, nbytes = gpuio._library.Library.read, []
        def counts(library, fd, offset, address, length):
            nbytes.append(length)
            return read(library, fd, offset, address, length)
        with mock.patch.object(gpuio._library.Library, "read", counts):
            made = dict(self.loaded(paths, own={1}))
        self.assertEqual(sorted(made), sorted(
            f"x.{name}" for name in every if "experts" not in name or "experts.1" in name))
        self.assertEqual(sum(nbytes), sum(tensor.nbytes for tensor in made.values()))

    def test_what_it_cannot_load_is_an_error(self):
        path = written(self.dir / "a.safetensors", {"c": numpy.zeros(2, "complex64")})
        with self.assertRaisesRegex(ValueError, "no type of tensor 'c'"):
            self.loaded([path])
        with self.assertRaisesRegex(ValueError, "torchao"):
            self.loaded([path], strategy="torchao")
        whole = written(self.dir / "b.safetensors", {"a": numpy.zeros(9, "uint8")})
        with mock.patch.object(gpuio._library.Library, "read",
                               lambda *a: gpuio.Moved(4, 4, 0, 0)):
            with self.assertRaisesRegex(ValueError, "became shorter"):
                self.loaded([whole])

    def test_a_vllm_without_the_interface_goes_on(self):
        sys.modules["vllm.model_executor.model_loader"].register_model_loader = None
        del sys.modules["vllm.model_executor.model_loader"].register_model_loader
        _vllm.register()
        self.assertIn("this vLLM has no --load-format gpuio", self.said.getvalue())


class Wheel(unittest.TestCase):
    def test_the_entry_point_is_ours(self):
        try:
            wheel = importlib.metadata.distribution("gpuio")
        except importlib.metadata.PackageNotFoundError:
            raise unittest.SkipTest("the module is not installed as a wheel")
        (point,) = (one for one in wheel.entry_points if one.group == "vllm.general_plugins")
        self.assertEqual((point.name, point.load()), ("gpuio", _vllm.register))


@unittest.skipUnless(importlib.util.find_spec("vllm") and importlib.util.find_spec("torch"),
                     "no vLLM here")
class Real(unittest.TestCase):
    def test_its_own_loader_yields_the_same(self):
        import torch
        from safetensors.torch import save_file
        from vllm.config.load import LoadConfig
        from vllm.model_executor.model_loader import DefaultModelLoader, get_model_loader

        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        for nth in range(2):
            save_file({f"{nth}.{kind}": torch.randn(17, 33).to(getattr(torch, kind))
                       for kind in ("bfloat16", "float32", "float8_e4m3fn")}
                      | {f"{nth}.experts.{n}.weight": torch.randn(8, 8) for n in range(3)},
                      f"{scratch.name}/model-{nth}.safetensors")
        _vllm.register()
        if not torch.cuda.is_available():
            for place, name, double in ((_vllm, "_device", lambda torch: torch.device("cpu")),
                                        (torch.cuda, "current_stream", mock.Mock())):
                entered = mock.patch.object(place, name, double)
                entered.start()
                self.addCleanup(entered.stop)
        source = DefaultModelLoader.Source(scratch.name, None, prefix="x.")
        for own in (None, {1}):
            made = []
            for name in ("gpuio", "safetensors"):
                loader = get_model_loader(LoadConfig(load_format=name, use_tqdm_on_load=False))
                loader.local_expert_ids = own
                made.append(dict(loader._get_weights_iterator(source)))
            self.assertEqual(made[0].keys(), made[1].keys())
            self.assertEqual(len(made[1]), 12 if own is None else 8)
            for name, tensor in made[1].items():
                same = made[0][name].cpu()
                self.assertEqual(same.dtype, tensor.dtype)
                self.assertTrue(torch.equal(same.view(torch.uint8), tensor.view(torch.uint8)), name)


if __name__ == "__main__":
    unittest.main()
