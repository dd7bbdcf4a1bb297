#!/usr/bin/env python3
"""A training loop that saves a checkpoint every so many seconds: what its steps feel.

  python3 train_loop.py HOW DIRECTORY [--seconds 600] [--every 30] [--gib 8] [--saves 1] [--device cuda]

HOW saves: gpuio (gpuio.checkpoint), torch (torch.save), dcp, async (save and async_save of
torch.distributed.checkpoint), pinned (async_save with staged pages that it reuses), gds (torch.cuda.gds).
A step is products of matrices, then 1 is added to each number of the state, as an optimizer changes all
of it: a restored checkpoint tells which step it is of, and each number is compared. Steps alone come
first. A step counts as one "during" if a save was on its way to the disk; the call of a save, the stall,
is between steps. SIGTERM ends the loop early, with all figures of it. Restores come last: one from the
disk, the others warm. DIRECTORY is used up: checkpoints of this loop before the last are removed.
"""
import argparse
import json
import os
import shutil
import signal
import statistics
import threading
import time

import torch

TENSOR = 64 << 20
MAX_RESTORES = 4


class Background:
    """A save's rest, by a thread: `done` when it is on the disk."""

    def __init__(self, rest):
        self.error = None
        self.thread = threading.Thread(target=self.run, args=(rest,))
        self.thread.start()

    def run(self, rest):
        try:
            rest()
        except Exception as error:
            self.error = error

    @property
    def done(self):
        return not self.thread.is_alive()

    def wait(self):
        self.thread.join()
        if self.error:
            raise self.error


def flush(*paths):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


class Gpuio:
    def __init__(self, state, saves):
        from gpuio import checkpoint

        self.gpuio = checkpoint
        self.gpuio.prepare(state, saves=saves)

    def save(self, state, directory):
        return self.gpuio.save(state, directory)

    def load(self, directory, state):
        self.gpuio.load(directory, into=state)

    def verify(self, directory):
        assert self.gpuio.latest(os.path.dirname(directory)) == directory
        return self.gpuio.verify(directory)

    def drain_cpu(self):
        """Seconds of processor time of the process that writes."""
        with open(f"/proc/{self.gpuio._saver.drain.process.pid}/stat") as file:
            words = file.read().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


class Torch:
    def __init__(self, state, saves):
        pass

    def save(self, state, directory):
        os.mkdir(directory)
        path = os.path.join(directory, "state.pt")
        torch.save(state, path)
        return Background(lambda: flush(path, directory))

    def load(self, directory, state):
        path = os.path.join(directory, "state.pt")
        loaded = torch.load(path, map_location=next(iter(state.values())).device, weights_only=True)
        for name, tensor in state.items():
            tensor.copy_(loaded[name])


class Dcp:
    def __init__(self, state, saves):
        import torch.distributed.checkpoint as dcp

        self.dcp = dcp

    def writer(self, directory):
        return self.dcp.FileSystemWriter(directory, thread_count=8)

    def save(self, state, directory):
        self.dcp.save(state, storage_writer=self.writer(directory), no_dist=True)
        return Background(lambda: None)

    def load(self, directory, state):
        self.dcp.load(state, storage_reader=self.dcp.FileSystemReader(directory), no_dist=True)


class Async(Dcp):
    how = {}

    def save(self, state, directory):
        answer = self.dcp.async_save(state, storage_writer=self.writer(directory), no_dist=True, **self.how)
        return Background(getattr(answer, "upload_completion", answer).result)


class Pinned(Async):
    def __init__(self, state, saves):
        super().__init__(state, saves)
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

        options = StagingOptions(
            use_pinned_memory=True, use_shared_memory=True, use_async_staging=False, use_non_blocking_copy=True)
        self.how = {"async_stager": DefaultStager(options)}


class Gds:
    def __init__(self, state, saves):
        pass

    def file(self, directory, flags):
        return torch.cuda.gds.GdsFile(os.path.join(directory, "state.bin"), flags)

    def save(self, state, directory):
        os.mkdir(directory)
        file, at = self.file(directory, os.O_CREAT | os.O_RDWR), 0
        for tensor in state.values():
            file.save_storage(tensor.untyped_storage(), at)
            at += tensor.nbytes
        return Background(lambda: flush(os.path.join(directory, "state.bin"), directory))

    def load(self, directory, state):
        file, at = self.file(directory, os.O_RDWR), 0
        for tensor in state.values():
            file.load_storage(tensor.untyped_storage(), at)
            at += tensor.nbytes


HOW = {"gpuio": Gpuio, "torch": Torch, "dcp": Dcp, "async": Async, "pinned": Pinned, "gds": Gds}


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def figures(times):
    """Milliseconds of steps."""
    if len(times) < 2:
        return {"steps": len(times)}
    hundredths = statistics.quantiles(times, n=100, method="inclusive")
    shown = {"mean": statistics.fmean(times), "median": hundredths[49], "p99": hundredths[98], "max": max(times)}
    return {"steps": len(times), **{name: round(1e3 * value, 3) for name, value in shown.items()}}


class Loop:
    def __init__(self, given):
        self.given, self.cuda = given, given.device.startswith("cuda")
        edge, self.products = (8192, 10) if self.cuda else (128, 2)
        number = torch.bfloat16 if self.cuda else torch.float32
        self.a, self.b = (torch.randn(edge, edge, device=given.device, dtype=number) for _ in range(2))
        self.c = torch.empty_like(self.a)
        size = min(TENSOR, int(given.gib * 2**30))
        self.state = {f"layer.{n}": self.initial(n, size // 4) for n in range(int(given.gib * 2**30) // size)}
        self.nbytes = sum(tensor.nbytes for tensor in self.state.values())
        self.count, self.term = 0, False
        self.alone, self.outside, self.during, self.saves = [], [], [], []
        signal.signal(signal.SIGTERM, self.ends)

    def ends(self, *_):
        self.term = True

    def initial(self, number, length):
        return torch.arange(length, device=self.given.device, dtype=torch.int32).mul_(2 * number + 1)

    def wait_for_gpu(self):
        if self.cuda:
            torch.cuda.synchronize()

    def step(self):
        began = time.perf_counter()
        for _ in range(self.products):
            torch.matmul(self.a, self.b, out=self.c)
        torch._foreach_add_(list(self.state.values()), 1)
        self.wait_for_gpu()
        self.count += 1
        return time.perf_counter() - began

    def steps_alone(self, seconds):
        for _ in range(20):
            self.step()
        until = time.monotonic() + seconds
        while time.monotonic() < until and not self.term:
            self.alone.append(self.step())
        say(f"steps alone, ms: {figures(self.alone)}")

    def begin_save(self, saver):
        name = os.path.join(self.given.directory, f"step-{self.count}")
        cpu, began = time.process_time(), time.perf_counter()
        handle = saver.save(self.state, name)
        stall = time.perf_counter() - began
        one = {"directory": name, "step": self.count, "stall_s": stall, "cpu_s": time.process_time() - cpu,
               "began": began, "handle": handle, "times": []}
        self.saves.append(one)
        say(f"save {len(self.saves)}, step {self.count}: stall {1e3 * stall:.1f} ms, "
            f"{self.nbytes / stall / 2**30:.1f} GiB/s, processor {one['cpu_s']:.3f} s")

    def ended(self, one):
        """A save is on the disk."""
        handle = one.pop("handle")
        handle.wait()
        one["on_disk_s"] = time.perf_counter() - one["began"]
        # gpuio's own figure begins with the first byte written.
        one["drain_s"] = getattr(handle, "drained", None) or one["on_disk_s"] - one["stall_s"]
        if hasattr(handle, "direct"):
            one["direct"] = handle.direct
        say(f"on the disk after {one['on_disk_s']:.2f} s, drain {one['drain_s']:.2f} s, "
            f"{self.nbytes / max(one['drain_s'], 1e-9) / 2**30:.2f} GiB/s; steps meanwhile, ms: {figures(one.pop('times'))}")
        whole = [save for save in self.saves if "handle" not in save and not save.get("removed")]
        for old in whole[:-1]:
            old["removed"] = True
            threading.Thread(target=shutil.rmtree, args=(old["directory"],)).start()

    def run(self, saver):
        began = time.monotonic()
        due = began
        while time.monotonic() - began < self.given.seconds and not self.term:
            if time.monotonic() >= due:
                due += self.given.every
                self.begin_save(saver)
            took = self.step()
            under_way = [one for one in self.saves if "handle" in one]
            (self.during if under_way else self.outside).append(took)
            for one in under_way:
                one["times"].append(took)
                if one["handle"].done:
                    self.ended(one)
        self.seconds = time.monotonic() - began
        for one in [one for one in self.saves if "handle" in one]:
            self.ended(one)

    def restore(self, saver):
        last = self.saves[-1]
        if hasattr(saver, "verify"):
            began = time.perf_counter()
            found = saver.verify(last["directory"])
            say(f"{found}, {time.perf_counter() - began:.2f} s from the disk")
        seconds = []
        into = {name: torch.zeros_like(tensor) for name, tensor in self.state.items()}
        for _ in range(MAX_RESTORES):
            for tensor in into.values():
                tensor.zero_()
            self.wait_for_gpu()
            cpu, began = time.process_time(), time.perf_counter()
            saver.load(last["directory"], into)
            self.wait_for_gpu()
            seconds.append(time.perf_counter() - began)
            say(f"restore: {1e3 * seconds[-1]:.1f} ms, {self.nbytes / seconds[-1] / 2**30:.1f} GiB/s, "
                f"processor {time.process_time() - cpu:.2f} s")
        for number, tensor in enumerate(into.values()):
            wanted = self.initial(number, tensor.numel()).add_(last["step"])
            assert torch.equal(tensor, wanted), f"tensor {number} is not that of step {last['step']}"
        say(f"each number is that of step {last['step']}")
        return seconds

    def summary(self, saver, restores):
        stalls = [one["stall_s"] for one in self.saves]
        rest = stalls[1:] or stalls
        rates = [self.nbytes / max(one["drain_s"], 1e-9) / 2**30 for one in self.saves]
        outside = self.outside if len(self.outside) > 1 else self.alone
        shown = {
            "how": self.given.how, "bytes": self.nbytes, "seconds": round(self.seconds, 1), "saves": len(stalls),
            "steps_alone_ms": figures(self.alone), "steps_outside_ms": figures(self.outside),
            "steps_during_ms": figures(self.during),
            "stall_first_ms": round(1e3 * stalls[0], 1), "stall_median_ms": round(1e3 * statistics.median(rest), 1),
            "stall_max_ms": round(1e3 * max(rest), 1),
            "stall_share": round(sum(stalls) / self.seconds, 4),
            "save_cpu_median_s": round(statistics.median(one["cpu_s"] for one in self.saves), 4),
            "drain_median_gib_s": round(statistics.median(rates), 2), "drain_min_gib_s": round(min(rates), 2),
            "restore_first_ms": round(1e3 * restores[0], 1), "restore_best_ms": round(1e3 * min(restores), 1),
            "restore_best_gib_s": round(self.nbytes / min(restores) / 2**30, 1),
            "each": [[one["step"], *(round(one[key], 4) for key in ("stall_s", "cpu_s", "drain_s", "on_disk_s"))]
                     for one in self.saves],
        }
        if len(self.during) > 1:
            for name, mean in (("mean", statistics.fmean), ("median", statistics.median)):
                shown[f"during_to_outside_{name}"] = round(mean(self.during) / mean(outside), 4)
                shown[f"during_to_alone_{name}"] = round(mean(self.during) / mean(self.alone), 4)
        if hasattr(saver, "drain_cpu"):
            shown["drain_cpu_s"] = round(saver.drain_cpu(), 2)
            shown["direct"] = all(one["direct"] for one in self.saves)
        print(json.dumps(shown), flush=True)


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("how", choices=HOW)
    words.add_argument("directory", type=os.path.abspath)
    words.add_argument("--seconds", type=float, default=600)
    words.add_argument("--every", type=float, default=30)
    words.add_argument("--gib", type=float, default=8)
    words.add_argument("--saves", type=int, default=1, help="saves that may be under way at once (gpuio's pages)")
    words.add_argument("--device", default="cuda")
    words.add_argument("--alone", type=float, default=10, help="seconds of steps without saves, before")
    given = words.parse_args()
    os.makedirs(given.directory, exist_ok=True)
    where = torch.cuda.get_device_name() if given.device.startswith("cuda") else "no GPU: times say nothing"
    say(f"{given.how}: torch {torch.__version__}, {where}, {os.cpu_count()} processors; {vars(given)}")
    loop = Loop(given)
    began = time.perf_counter()
    saver = HOW[given.how](loop.state, given.saves)
    say(f"{loop.nbytes / 2**30:.3f} GiB in {len(loop.state)} tensors; prepared in {time.perf_counter() - began:.2f} s")
    loop.steps_alone(given.alone)
    loop.run(saver)
    if not loop.saves:
        raise SystemExit("no save was begun: more --seconds, or no signal before")
    loop.summary(saver, loop.restore(saver))


if __name__ == "__main__":
    main()
