#!/usr/bin/env python3
"""Runs the code of docs/frameworks.md on this machine's GPU, and checks what it made.

  python3 frameworks.py DIRECTORY [REGEX]
  SOFTWARE=…/libgpuio_softgpu.so python3 frameworks.py DIRECTORY [REGEX]

Each block of Python that names its file becomes that file in DIRECTORY, with a check behind it; what
runs it is the section's block of shell, or Python. REGEX chooses sections. Each has a line: ok,
FAILED with the last words, or not run, with the module that is missing. Needs PyTorch with CUDA,
gpuio's module, and the program `gpuio` for sections that start by `gpuio exec`.

On the software GPU, which CUDA's runtime can't use, DataLoader and Transformers get tensors in host memory,
KvikIO those of a stand-in for CuPy (clients/soft_cupy), and sections that need a GPU are not run.
LMCache has no code on the page: here its own class for cuFile writes and reads a file, and its
configuration has to know the page's variables.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "../../docs/frameworks.md")
SOFTWARE = os.environ.get("SOFTWARE") and os.path.abspath(os.environ["SOFTWARE"])
# By file: modules that it needs, and what has to be true behind it.
CHECKS = {
    "feed.py": (["torch"], """
import numpy
with open("samples.bin", "rb") as file:
    wanted = numpy.frombuffer(file.read(), numpy.uint8)
assert total == int(wanted.sum(dtype=numpy.int64)), total
seen = torch.cat([batch[:, 0].cpu() for batch in ahead(loader)]).sort().values
assert torch.equal(seen, torch.from_numpy(wanted[::1 << 20].copy()).sort().values)
"""),
    "serve.py": (["torch", "transformers", "accelerate"], """
import sys
import gpuio
assert "gpuio._install" in sys.modules and gpuio._install._originals, "gpuio is not installed"
gpuio.uninstall()
right = AutoModelForCausalLM.from_pretrained("model", device_map="cuda", dtype=torch.bfloat16)
for (name, one), (_, other) in zip(model.state_dict().items(), right.state_dict().items()):
    assert one.device.type == "cuda" and one.dtype == other.dtype and torch.equal(one, other), name
print(len(right.state_dict()), "tensors equal")
"""),
    "gds.py": (["torch"], """
with open("/proc/self/maps") as maps:
    print({line.split()[-1] for line in maps if "libcufile.so" in line})
"""),
    "kvik.py": (["kvikio", "cupy"], """
with open("samples.bin", "rb") as file:
    assert array.get().tobytes() == file.read(array.nbytes)
"""),
}
# Sections without code of their own: what is run for them.
ALONE = {
    "LMCache": ("lmcache_gds.py", ["lmcache", "cufile"], """
import ctypes
import sys
import numpy
from lmcache.v1.config import LMCacheEngineConfig
from lmcache.v1.gpu_connector._gds_backends import create_backend
for name in NAMES:
    assert hasattr(LMCacheEngineConfig.from_defaults(), name.lower()), name
sys.path.append(HERE)
from gpu_memory import Driver, Memory
driver, backend, piece = Driver(), create_backend("cufile"), 1 << 20
slab, stream = backend.open_slab(".", 4 * piece, True), ctypes.c_void_p()
driver.call("cuStreamCreate", ctypes.byref(stream), 1)
backend.register_stream(stream.value)
source, sink = Memory(driver, 4 * piece), Memory(driver, 4 * piece)
source.put(numpy.random.default_rng(3).integers(0, 256, 4 * piece, numpy.uint8))
for move, memory in ((slab.write_async, source), (slab.read_async, sink)):
    all = [move(memory.address, piece, at, at, stream.value) for at in range(0, 4 * piece, piece)]
    driver.call("cuStreamSynchronize", stream)
    assert [one.result.value for one in all] == [piece] * 4
assert (sink.bytes() == source.bytes()).all()
backend.deregister_stream(stream.value), slab.close()
print(type(backend).__module__)
"""),
}
# The software GPU can run these.
ON_SOFTWARE = ("feed.py", "serve.py", "kvik.py", "lmcache_gds.py")


def sections():
    """Titles, with the files and the commands of each."""
    with open(PAGE, encoding="utf-8") as file:
        parts = re.split(r"^## (.*)$", file.read(), flags=re.M)[1:]
    for title, text in zip(parts[::2], parts[1::2]):
        files = re.findall(r"^```python\n# (\S+\.py)\n(.*?)^```", text, re.M | re.S)
        shell = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
        if title in ALONE:
            name, _, code = ALONE[title]
            names = repr(re.findall(r"\bLMCACHE_(\w+)=", text))
            files = [(name, code.replace("HERE", repr(HERE)).replace("NAMES", names))]
            shell = [f"gpuio exec -- python {name}"]
        yield title, files, shell


def prepare():
    import numpy

    generator = numpy.random.default_rng(5)
    with open("samples.bin", "wb") as file:
        for _ in range(100):
            file.write(generator.bytes(1 << 20))
    if importlib.util.find_spec("transformers"):
        import torch
        from transformers import AutoModelForCausalLM, LlamaConfig

        shape = LlamaConfig(hidden_size=256, intermediate_size=512, num_hidden_layers=4,
                            num_attention_heads=4, num_key_value_heads=2, vocab_size=4096)
        AutoModelForCausalLM.from_config(shape, dtype=torch.float32).save_pretrained(
            "model", max_shard_size="8MB")


def as_software():
    """Lets programs find the software GPU as the CUDA driver, and the stand-in as CuPy."""
    os.makedirs("cuda", exist_ok=True)
    if not os.path.lexists("cuda/libcuda.so.1"):
        os.symlink(SOFTWARE, "cuda/libcuda.so.1")
    stand_in = os.path.join(HERE, "clients/soft_cupy")
    sys.path.append(stand_in)
    for name, first in (("LD_LIBRARY_PATH", os.path.abspath("cuda")), ("PYTHONPATH", stand_in)):
        os.environ[name] = ":".join(filter(None, (first, os.environ.get(name))))
    os.environ["GPUIO_CUFILE_DRIVER"] = SOFTWARE


def lacks(modules):
    for name in modules:
        try:
            if importlib.util.find_spec(name) is None:
                return name
        except ModuleNotFoundError:
            return name
    return None


def main():
    directory, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "."
    os.makedirs(directory, exist_ok=True)
    os.chdir(directory)
    if SOFTWARE:
        as_software()
    prepare()
    failed = 0
    for title, files, shell in sections():
        if not files or not re.search(wanted, title):
            continue
        (name, code), = files
        modules, check = CHECKS.get(name) or (ALONE[title][1], "")
        command = shell[0].strip() if shell else f"python {name}"
        missing = lacks(modules) or (
            "gpuio exec" if "gpuio exec" in command and not shutil.which("gpuio") else None)
        if SOFTWARE:
            missing = missing or (None if name in ON_SOFTWARE else "GPU")
            code, check = (text.replace('"cuda"', '"cpu"') for text in (code, check))
        if missing:
            print(f"not run  {title}: no {missing} here")
            continue
        with open(name, "w", encoding="utf-8") as file:
            file.write(code + check)
        begin = time.monotonic()
        command = re.sub(r"\bpython\b", sys.executable, command)
        ended = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
        words = [line for line in (ended.stdout + ended.stderr).splitlines() if line.strip()]
        is_fine = ended.returncode == 0
        failed += not is_fine
        print(f"{'ok      ' if is_fine else 'FAILED  '} {title}, {time.monotonic() - begin:.1f} s: "
              f"{' / '.join(words[-(2 if is_fine else 6):])[:400]}", flush=True)
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
