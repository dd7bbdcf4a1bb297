"""``gpuio.install``: what goes through gpuio, and what stays the original's.

Doubles of PyTorch, safetensors and Transformers have the parts that are used: those are too large
for the other tests. `Real` runs with the libraries themselves, where they are.
"""

import contextlib
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from unittest import mock

import numpy

import gpuio
from gpuio._library import Library
from test_gpuio import written

GENERATOR = numpy.random.default_rng(7)
NAMES = ("float32", "int64", "uint8", "float16", "int16")


class Tensor:
    """PyTorch's, as far as it is used: bytes of the host, or of the software GPU."""

    def __init__(self, shape, dtype, device, buffer=None):
        self.shape, self.dtype, self.device = tuple(shape), dtype, device
        self.buffer, nbytes = buffer, self.numel() * numpy.dtype(dtype).itemsize
        self.memory = gpuio.Memory(0, nbytes) if buffer is None else None

    def numel(self):
        return int(numpy.prod(self.shape))

    def data_ptr(self):
        return self.memory.address

    def reshape(self, shape):
        return Tensor(shape, self.dtype, self.device, self.buffer)

    def to(self, dtype):
        return Tensor(self.shape, dtype, self.device, self.numpy().astype(dtype))

    def numpy(self):
        buffer = self.memory.copy_out() if self.buffer is None else self.buffer
        return numpy.frombuffer(buffer, self.dtype).reshape(self.shape)


def doubles():
    """Modules by name, and the list of what the original has read, and of synchronized devices."""
    read, waited = [], []
    torch = types.ModuleType("torch")
    for name in NAMES:
        setattr(torch, name, name)
    torch.empty = lambda shape, dtype, device="cpu": Tensor(
        shape, dtype, device, b"" if device == "cpu" else None)
    torch.frombuffer = lambda buffer, dtype: Tensor(
        [len(buffer) // numpy.dtype(dtype).itemsize], dtype, "cpu", buffer)
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(
        synchronize=lambda: waited.append(device)))

    class Part:
        def __init__(self, name, array):
            self.name, self.array = name, array

        def get_shape(self):
            return list(self.array.shape)

        def __getitem__(self, index):
            read.append((self.name, index))
            return self.array[index]

    class safe_open:
        def __init__(self, filename, framework, device="cpu", *, backend="mmap"):
            self.loaded = gpuio.safetensors(filename, "cpu")

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.loaded = None

        def keys(self):
            return sorted(self.loaded)

        def offset_keys(self):
            return list(self.loaded)

        def metadata(self):
            return self.loaded.metadata

        def get_slice(self, name):
            return Part(name, self.loaded[name].numpy())

        def get_tensor(self, name):
            return self.get_slice(name)[...]

    root, of_torch = types.ModuleType("safetensors"), types.ModuleType("safetensors.torch")
    root.safe_open = root.torch_safe_open = safe_open
    # As in safetensors 0.8.
    exec("def load_file(filename, device='cpu', *, backend='mmap'):\n"
         "    with safe_open(filename, framework='pt', device=device, backend=backend) as f:\n"
         "        return f.get_tensors() if hasattr(f, 'get_tensors') else "
         "{k: f.get_tensor(k) for k in f.offset_keys()}\n", of_torch.__dict__)
    of_torch.safe_open, root.torch = safe_open, of_torch
    # As in Transformers 5.24.
    loading = types.ModuleType("transformers.core_model_loading")
    exec("def _materialize_copy(tensor, device=None, dtype=None):\n"
         "    tensor = tensor[...]\n"
         "    return tensor if dtype is None else tensor.astype(dtype)\n", loading.__dict__)
    models = types.ModuleType("transformers.modeling_utils")
    models.safe_open, models.loading = safe_open, loading
    exec("def load(path, device, dtype):\n"
         "    file = safe_open(path, framework='pt', device='cpu', backend='mmap')\n"
         "    parts = {k: file.get_slice(k) for k in file.keys()}\n"
         "    made = {k: loading._materialize_copy(parts[k], device, dtype) for k in parts}\n"
         "    file.__exit__(None, None, None)\n"
         "    return made\n", models.__dict__)
    modules = (torch, root, of_torch, loading, models)
    return {module.__name__: module for module in modules}, read, waited


class Doubled(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        modules, self.read, self.waited = doubles()
        self.root, self.models = modules["safetensors"], modules["transformers.modeling_utils"]
        for patched in (mock.patch.dict(sys.modules, modules),
                        mock.patch.dict(os.environ, {"GPUIO_INSTALL": ""})):
            patched.start()
            self.addCleanup(patched.stop)
        self.addCleanup(gpuio.uninstall)
        self.right = {
            "w": GENERATOR.standard_normal((9, 7, 5), dtype=numpy.float32),
            "ids": GENERATOR.integers(-(2**60), 2**60, (1000,)),
            "odd": GENERATOR.integers(0, 255, (5,)).astype(numpy.uint8),
            "one": numpy.float32(2.5).reshape(()),
            "none": numpy.zeros((0, 4), dtype=numpy.int16),
        }
        self.path = written(self.dir / "a.safetensors", self.right, {"format": "pt"})

    def said(self, call, *arguments, **named):
        words = io.StringIO()
        with contextlib.redirect_stderr(words):
            self.result = call(*arguments, **named)
        return words.getvalue()

    def assert_equal(self, made, right=None):
        for name, array in (right or self.right).items():
            made_array = made[name] if isinstance(made[name], numpy.ndarray) else made[name].numpy()
            self.assertEqual(made_array.dtype, array.dtype, name)
            numpy.testing.assert_array_equal(made_array, array, err_msg=name)

    def test_files_for_a_gpu_are_loaded_by_gpuio(self):
        load_file = self.root.torch.load_file
        self.assertRegex(self.said(gpuio.install, "cuda"), r"^gpuio: .* CUDA devices are read by .*\n$")
        for device, name in ((0, "cuda:0"), ("cuda", "cuda"), ("cuda:0", "cuda:0")):
            words = self.said(load_file, self.path, device=device)
            self.assertEqual((words, list(self.result)), ("", list(self.right)))
            self.assert_equal(self.result)
            self.assertEqual({tensor.device for tensor in self.result.values()}, {name})
        self.assertEqual((self.read, self.waited), ([], ["cuda:0", "cuda", "cuda:0"]))

    def test_rows_are_read_by_gpuio_and_other_indices_by_the_original(self):
        self.said(gpuio.install, "cuda")
        with self.root.safe_open(self.path, framework="pt", device="cuda:0") as file:
            self.assertEqual((file.keys(), file.metadata()), (sorted(self.right), {"format": "pt"}))
            part, right = file.get_slice("w"), self.right["w"]
            self.assertEqual(part.get_shape(), [9, 7, 5])
            self.assert_equal({"one": file.get_tensor("one")}, {"one": self.right["one"]})
            for index in (..., slice(None), slice(2, 5), slice(None, 4), slice(8, None, 1)):
                self.assert_equal({"w": part[index]}, {"w": right[index]})
            self.assertEqual(self.read, [])
            for index in ((slice(None), slice(1, 3)), slice(-3, None), slice(0, 9, 2), 4,
                          slice(3, 3), slice(2, 100), (Ellipsis, 1)):
                self.assert_equal({"w": part[index]}, {"w": right[index]})
                self.assertEqual(self.read.pop(), ("w", index))
            with self.assertRaises(KeyError):
                file.get_tensor("gone")

    def test_other_devices_and_frameworks_are_the_originals(self):
        original = self.root.safe_open
        self.said(gpuio.install, "cuda")
        for framework, device in (("pt", "cpu"), ("np", "cuda"), ("pt", "meta"), ("pt", "mps:0"),
                                  ("pt", None), ("pt", True)):
            opened = self.root.safe_open(self.path, framework, device, backend="pread")
            self.assertIs(type(opened), original, (framework, device))
        with self.assertRaises(FileNotFoundError):
            self.root.safe_open(self.dir / "gone", "pt", "cuda")

    def test_uninstall_puts_everything_back(self):
        original, copy = self.root.safe_open, self.models.loading._materialize_copy
        for _ in range(2):
            self.said(gpuio.install, "cuda")
            self.said(gpuio.install, "cuda")
            kept = self.root.safe_open
            self.assertIs(self.models.safe_open, kept)
            self.assertIsNot(kept, original)
            self.models.load(self.path, "cuda:0", None)
            gpuio.uninstall()
            for module in (self.root, self.root.torch, self.models):
                self.assertIs(module.safe_open, original)
            self.assertIs(self.models.loading._materialize_copy, copy)
            self.assertIs(type(kept(self.path, "pt", "cuda")), original)

    def test_a_variable_turns_it_off(self):
        original = self.root.safe_open
        os.environ["GPUIO_INSTALL"] = "off"
        self.assertIn("off, by GPUIO_INSTALL=off", self.said(gpuio.install))
        self.assertIs(self.root.safe_open, original)
        os.environ["GPUIO_INSTALL"] = "no"
        with self.assertRaisesRegex(ValueError, "GPUIO_INSTALL=no: on or off"):
            gpuio.install()
        with self.assertRaises(ValueError):
            gpuio.install("cpu")

    def test_one_line_says_that_there_is_no_driver_and_what_to_set(self):
        with mock.patch("gpuio._install._has_driver", return_value=False), \
                mock.patch.dict(os.environ, {"GPUIO_CUFILE_DRIVER": "system"}):
            words = self.said(gpuio.install)
        self.assertRegex(words, r"^gpuio: no CUDA driver .*, so safetensors reads by itself\. .*"
                                r'GPUIO_CUFILE_DRIVER=software .*device_map="cpu"\)\n$')

    def test_what_was_read_is_counted_from_install_to_uninstall(self):
        self.assertIsNone(gpuio.installed())
        for _ in range(2):
            self.said(gpuio.install, "cuda")
            self.assertEqual(gpuio.installed(), (0, 0, 0))
            self.said(self.root.torch.load_file, self.path, device="cuda")
            nbytes = sum(array.nbytes for array in self.right.values())
            self.assertEqual(gpuio.installed(), (len(self.right), nbytes, 0))
            gpuio.uninstall()
            self.assertIsNone(gpuio.installed())

    def test_where_gpuio_fails_the_original_reads_and_a_line_says_so(self):
        self.said(gpuio.install, "cuda")
        failed = gpuio.GpuioError(5, "no such luck")
        with mock.patch("gpuio._install._File._fill", side_effect=failed):
            words = self.said(self.root.torch.load_file, self.path, device="cuda")
        self.assert_equal(self.result)
        # All but the one without bytes.
        self.assertEqual(len(self.read), len(self.right) - 1)
        self.assertRegex(words, r"^gpuio: .*a.safetensors is read by safetensors itself: .*luck\n$")
        with mock.patch("gpuio._install._File.__init__", side_effect=OSError(5, "closed")):
            other = written(self.dir / "b.safetensors", self.right)
            self.assertIn("closed", self.said(self.root.safe_open, other, "pt", "cuda"))
        self.assertEqual(gpuio.installed().failed, 2)

    def test_transformers_copies_to_devices_by_gpuio(self):
        self.said(gpuio.install, "cuda")
        right = {name: self.right[name] for name in ("w", "one")}
        path = written(self.dir / "m.safetensors", right)
        for device in (0, "cuda:0"):
            made = self.models.load(path, device, None)
            self.assert_equal(made, right)
            self.assertEqual({tensor.device for tensor in made.values()}, {"cuda:0"})
        made = self.models.load(path, "cuda:0", "float16")
        self.assert_equal(made, {name: right[name].astype("float16") for name in right})
        self.assertEqual(self.read, [])
        for device in ("cpu", None, "disk"):
            self.assert_equal(self.models.load(path, device, None), right)
        self.assertEqual(len(self.read), 6)

    def test_the_software_gpu_gives_tensors_of_the_host(self):
        if not gpuio.gpus().software:
            self.skipTest("SKIPPED: a GPU is in use")
        self.assertIn("on the software GPU", self.said(gpuio.install))
        # It is the same as by its name, and as by `python -m gpuio`: nothing is said again.
        self.assertEqual(self.said(gpuio.install, "software"), "")
        for device in ("cpu", "cuda"):
            made = self.root.torch.load_file(self.path, device=device)
            self.assert_equal(made)
            self.assertEqual({tensor.device for tensor in made.values()}, {"cpu"})
        self.assert_equal(self.models.load(self.path, "cpu", None))
        self.assertEqual((self.read, self.waited), ([], []))


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = Path(scratch.name)
        (self.dir / "safetensors.py").write_text("class safe_open: pass\n")
        (self.dir / "below").mkdir()
        self.script = self.dir / "below" / "script.py"
        self.script.write_text("import sys, safetensors\nprint(__name__, sys.argv[1:], "
                               "sys.path[0], safetensors.safe_open.__name__)\nsys.exit(7)\n")

    def ran(self, *words, **environment):
        package = str(Path(gpuio.__file__).parents[1])
        paths = os.pathsep.join([package, str(self.dir)])
        return subprocess.run(
            [sys.executable, "-m", "gpuio", *words], cwd=self.dir, timeout=60, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, "GPUIO_INSTALL": "", **environment})

    def test_a_script_and_a_module_run_as_by_python(self):
        below = os.path.realpath(self.script.parent)
        done = self.ran("below/script.py", "-x", "1")
        self.assertEqual(done.stdout, f"__main__ ['-x', '1'] {below} SafeOpen\n", done.stderr)
        self.assertEqual(done.returncode, 7)
        lines = done.stderr.splitlines()
        where = "PyTorch, on the software GPU" if gpuio.gpus().software else "CUDA devices"
        self.assertRegex(lines[0], f"^gpuio: safetensors' tensors for {where}.* are read by")
        self.assertEqual(lines[1:], ["gpuio: no tensor read by gpuio"])
        done = self.ran("below/script.py", GPUIO_CUFILE_DRIVER="sofware")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "^error: GPUIO_CUFILE_DRIVER=sofware: .*'sofware' names no "
                                      "CUDA driver; use system, software.*\\n$")
        done = self.ran("below/none.py")
        self.assertEqual(done.stderr, "error: below/none.py: there is no such script\n")
        self.assertEqual(done.returncode, 2)
        done = self.ran("-m", "below.script", "--", "y", GPUIO_INSTALL="off")
        here = os.path.realpath(self.dir)
        self.assertEqual(done.stdout, f"__main__ ['--', 'y'] {here} safe_open\n", done.stderr)
        self.assertEqual(done.returncode, 7)
        self.assertIn("GPUIO_INSTALL=off", done.stderr)

    def test_usage(self):
        for words, code in (((), 2), (("-m",), 2), (("-c", "x"), 2), (("--help",), 0)):
            done = self.ran(*words)
            self.assertEqual(done.returncode, code, words)
            self.assertIn("python -m gpuio SCRIPT", done.stderr if code else done.stdout)
        done = self.ran("-m", "below.none")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr, "error: below.none: there is no such module\n")
        (self.dir / "safetensors.py").write_text("raise ImportError('none here')\n")
        done = self.ran("below/script.py")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("gpuio.install needs safetensors: none here", done.stderr)


REAL = ("torch", "safetensors", "transformers", "accelerate")
LACKING = [name for name in REAL if importlib.util.find_spec(name) is None]


@unittest.skipIf(LACKING, f"SKIPPED: no {', '.join(LACKING)} here")
class Real(unittest.TestCase):
    """Through the software GPU, with tensors of the host; on a GPU, with its own."""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.dir = scratch.name
        self.addCleanup(gpuio.uninstall)
        self.place = "software" if gpuio.gpus().software else "cuda"
        self.device = "cpu" if self.place == "software" else "cuda:0"

    def counted(self):
        count, read = [], Library.read
        patched = mock.patch.object(Library, "read", lambda *given: count.append(1) or read(*given))
        patched.start()
        self.addCleanup(patched.stop)
        return count

    def test_every_type_is_loaded_as_by_safetensors(self):
        import torch
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file

        kinds = ("bfloat16", "float16", "float32", "float64", "int8", "int32", "int64", "uint8",
                 "bool", "float8_e4m3fn", "float8_e5m2", "complex64")
        tensors = {kind: torch.randint(0, 2, (17, 3)).to(getattr(torch, kind)) for kind in kinds}
        tensors["scalar"], tensors["empty"] = torch.tensor(1.5), torch.empty(0, 3)
        path = f"{self.dir}/a.safetensors"
        save_file(tensors, path, metadata={"format": "pt"})
        right = load_file(path, device=self.device)
        count = self.counted()
        gpuio.install(self.place)
        made = load_file(path, device=self.device)
        self.assertEqual(list(made), list(right))
        self.assertGreaterEqual(len(count), len(kinds))
        for name, tensor in right.items():
            self.assertEqual((made[name].dtype, made[name].shape), (tensor.dtype, tensor.shape))
            self.assertEqual(str(made[name].device), str(tensor.device))
            as_bytes = [one.reshape(-1).view(torch.uint8) for one in (made[name], tensor)]
            self.assertTrue(torch.equal(*as_bytes), name)
            self.assertEqual(made[name].untyped_storage().nbytes(), made[name].nbytes)
        import safetensors

        with safetensors.safe_open(path, framework="pt", device=self.device) as file, \
                safe_open(path, framework="pt", device=self.device) as other:
            self.assertEqual(file.metadata(), other.metadata())
            for index in (..., slice(1, 4), (slice(None), slice(0, 2)), slice(-2, None)):
                self.assertTrue(torch.equal(file.get_slice("float32")[index],
                                            other.get_slice("float32")[index]), index)

    def test_models_are_loaded_as_by_transformers(self):
        import torch
        from accelerate import init_empty_weights, load_checkpoint_and_dispatch
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(vocab_size=300, hidden_size=64, intermediate_size=96,
                             num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2)
        LlamaForCausalLM(config).save_pretrained(self.dir, max_shard_size="100KB")
        self.assertGreater(len(list(Path(self.dir).glob("model-*.safetensors"))), 2)
        for dtype in (torch.float32, torch.bfloat16):
            for device_map in (self.device, {"": self.device}, None):
                given = {"dtype": dtype, "device_map": device_map}
                right = LlamaForCausalLM.from_pretrained(self.dir, **given).state_dict()
                count = self.counted()
                gpuio.install(self.place)
                made = LlamaForCausalLM.from_pretrained(self.dir, **given).state_dict()
                gpuio.uninstall()
                on_cpu = device_map is None and self.place == "cuda"
                self.assertEqual(len(count) >= len(right) - 1, not on_cpu, given)
                self.assertEqual(list(made), list(right))
                for name in right:
                    self.assertTrue(torch.equal(made[name], right[name]), (name, given))
                    self.assertEqual(made[name].dtype, dtype)
        gpuio.install(self.place)
        count = self.counted()
        with init_empty_weights():
            model = LlamaForCausalLM(config)
        made = load_checkpoint_and_dispatch(model, self.dir, device_map={"": self.device})
        self.assertGreater(len(count), 20)
        for name, tensor in made.state_dict().items():
            self.assertTrue(torch.equal(tensor.bfloat16(), right[name].to(tensor.device)), name)


if __name__ == "__main__":
    unittest.main()
