"""A training feed by DLIO, the engine of MLPerf Storage, with the parameters of a `gpuio workload`.

    python3 feed_dlio.py make|run RECORD DIRECTORY

RECORD is the JSON record of a run of `gpuio workload` (one sample a file): number and size of the files, batch,
readers, epochs and the time of a step are taken from it. `make` writes DLIO's own files (npz) of these sizes below
DIRECTORY; `run` trains on them. DLIO's worker processes read a file each through the page cache, which the caller
empties, and leave a sample of `record_length_bytes_resize` bytes in host memory; no byte goes to a GPU, and computing
is a sleep. Prints one line of JSON: DLIO's own utilisation and samples per second (means of its epochs), bytes, and
processor time of the run, its worker processes included, without start and imports.

Needs dlio_benchmark with what it needs for PyTorch, and mpi4py with an MPI library.
"""
import glob
import json
import os
import resource
import statistics
import sys

import dlio_benchmark
import psutil
from dlio_benchmark.main import DLIOBenchmark
from dlio_benchmark.utils.utility import DLIOMPI
from hydra import compose, initialize_config_dir


def cpu():
    """Seconds of all threads, and of worker processes, which DLIO keeps until it ends."""
    found = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    ended = sum(one.ru_utime + one.ru_stime for one in found)
    live = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return ended + sum(one.user + one.system for one in live)


def main():
    what, record, directory = sys.argv[1:4]
    # Modules that DLIO loads later ask for the communicator.
    DLIOMPI.get_instance().initialize()
    job = json.load(open(record))["plan"]["jobs"][0]
    feed = job["feed"]
    if feed["samples_per_file"] != 1:
        sys.exit("feed_dlio.py reads workloads with one sample a file")
    sizes = [target["length_bytes"] for target in job["targets"]]
    output = os.path.join(directory, "output")
    settings = {
        "framework": "pytorch",
        "workflow.generate_data": what == "make",
        "workflow.train": what == "run",
        "workflow.checkpoint": False,
        "dataset.data_folder": os.path.join(directory, "data"),
        "dataset.num_files_train": len(sizes),
        "dataset.record_length_bytes": int(statistics.mean(sizes)),
        "dataset.record_length_bytes_stdev": int(statistics.pstdev(sizes)),
        "reader.batch_size": feed["batch_samples"],
        "reader.read_threads": feed["readers"],
        "reader.prefetch_size": feed["prefetch"],
        "train.epochs": feed["epochs"],
        "train.computation_time": feed["compute_ns"] / 1e9,
        "output.folder": output,
    }
    configurations = os.path.join(os.path.dirname(dlio_benchmark.__file__), "configs")
    with initialize_config_dir(configurations, version_base=None):
        overrides = [f"++workload.{key}={value}" for key, value in settings.items()]
        configuration = compose("config", ["workload=unet3d_h100", *overrides])
    benchmark = DLIOBenchmark(configuration["workload"])
    benchmark.initialize()
    before = cpu()
    if what == "run":
        benchmark.run()
    used = cpu() - before
    benchmark.finalize()
    if what == "make":
        return
    summary = json.load(open(os.path.join(output, "summary.json")))["metric"]
    files = glob.glob(os.path.join(directory, "data", "train", "*.npz"))
    mean = statistics.mean(os.path.getsize(path) for path in files)
    rate = statistics.mean(summary["train_throughput_samples_per_second"])
    samples = len(files) * feed["epochs"]
    print(json.dumps({"loader": "dlio", "compute": "sleep", "samples_per_s": rate,
                      "utilisation_percent": summary["train_au_mean_percentage"],
                      "bytes_per_s": rate * mean, "samples": samples, "bytes": samples * mean,
                      "cpu_s": used}))


if __name__ == "__main__":
    main()
