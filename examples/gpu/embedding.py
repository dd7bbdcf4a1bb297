"""Rows of a table in a file, looked up by a kernel inside a training step of PyTorch.

    PYTHONPATH=python python3 examples/gpu/embedding.py TABLE [--rows N] [--steps N] [--batch N] [--rings N]

The table is made unless it is there: rows of 1024 float32 (4 KiB), which may be more than the memory
of the GPU holds. Each step draws row numbers on the GPU; the kernel `gather` reads those rows, and no
number and no byte goes through Python. Needs PyTorch, CuPy and libgpuio (GPUIO_LIBGPUIO names it).
Rows are compared with the file's after the run. Exit codes: 0, 1 wrong rows, 3 not here.
"""

import argparse
import os
import sys
import time

WIDTH = 1024
ROW = WIDTH * 4

KERNEL = """
extern "C" __global__ void gather(const gpuio_ring *rings, unsigned int ring_count, unsigned int file,
                                  const long long *rows, unsigned int count, float4 *out,
                                  unsigned int *failed) {
    // A block of 8 warps has a ring. A warp takes 8 rows at a time, with a buffer for each: while it copies
    // them, the reads of the other warps are in flight.
    const unsigned int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned int warps = gridDim.x * blockDim.x / 32;
    const unsigned int lane = threadIdx.x & 31;
    const gpuio_ring ring = rings[blockIdx.x % ring_count];
    const unsigned int first = threadIdx.x / 32 * 8;
    for (unsigned int begin = warp * 8; begin < count; begin += warps * 8) {
        const bool mine = lane < 8 && begin + lane < count;
        const unsigned long long at = mine ? (unsigned long long)rows[begin + lane] * 4096 : 0;
        gpuio_start_warp(ring, mine, GPUIO_READ, file, at, first + lane, 0, 4096);
        const int moved = gpuio_wait_warp(ring, mine, first + lane);
        if (mine && moved != 4096) atomicAdd(failed, 1);
        gpuio_sync_warp();
        const unsigned int many = count - begin < 8 ? count - begin : 8;
        for (unsigned int row = 0; row < many; row++) {
            const float4 *bytes = (const float4 *)gpuio_buffer(ring, first + row);
            float4 *to = out + (size_t)(begin + row) * 256;
            // All loads before the first store: a load of the host's memory takes a microsecond.
            float4 parts[8];
            #pragma unroll
            for (unsigned int part = 0; part < 8; part++) parts[part] = bytes[part * 32 + lane];
            #pragma unroll
            for (unsigned int part = 0; part < 8; part++) to[part * 32 + lane] = parts[part];
        }
        gpuio_sync_warp();
    }
}
"""


def make(name: str, rows: int) -> None:
    """Writes the table under another name and renames it when it is whole."""
    import numpy

    part = name + ".part"
    random = numpy.random.default_rng(1)
    with open(part, "xb") as file:
        for begin in range(0, rows, 16384):
            count = min(16384, rows - begin)
            file.write(random.standard_normal((count, WIDTH), dtype=numpy.float32).tobytes())
        file.flush()
        os.fsync(file.fileno())
    os.link(part, name)
    os.unlink(part)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("table")
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--batch", type=int, default=16384, help="rows of a step")
    parser.add_argument("--rings", type=int, default=8)
    arguments = parser.parse_args()
    try:
        import cupy
        import torch
    except ImportError as error:
        print(f"{error}: this example needs PyTorch and CuPy", file=sys.stderr)
        return 3
    if not torch.cuda.is_available():
        print("PyTorch has no GPU here", file=sys.stderr)
        return 3
    import gpuio

    if not os.path.exists(arguments.table):
        make(arguments.table, arguments.rows)
    rows = os.path.getsize(arguments.table) // ROW
    count, rings_count = arguments.batch, arguments.rings
    source = gpuio.device_header() + KERNEL
    gather = cupy.RawModule(code=source, options=("-std=c++17",)).get_function("gather")
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    found = torch.empty((count, WIDTH), device="cuda")
    failed = torch.zeros(1, dtype=torch.int32, device="cuda")
    import_stream = getattr(cupy.cuda.Stream, "from_external", None)

    with gpuio.Rings(rings=rings_count, buffers=64, buffer_length=ROW) as rings:
        file = rings.add(arguments.table)

        def lookup(numbers: "torch.Tensor") -> None:
            """Enqueues the kernel in PyTorch's stream."""
            of_torch = torch.cuda.current_stream()
            if import_stream is not None:
                stream = import_stream(of_torch)
            else:
                stream = cupy.cuda.ExternalStream(of_torch.cuda_stream)
            parameters = (
                cupy.uint64(rings.address), cupy.uint32(rings_count), cupy.uint32(file),
                cupy.uint64(numbers.data_ptr()), cupy.uint32(count),
                cupy.uint64(found.data_ptr()), cupy.uint64(failed.data_ptr()),
            )
            with stream:
                gather((rings_count,), (256,), parameters)

        def step(look: bool) -> None:
            numbers = torch.randint(rows, (count,), device="cuda")
            if look:
                lookup(numbers)
            loss = model(found).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        def seconds(look: bool) -> float:
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(arguments.steps):
                step(look)
            torch.cuda.synchronize()
            return (time.perf_counter() - began) / arguments.steps

        seconds(True)
        rings.wake()
        with_reads, without = seconds(True), seconds(False)
        numbers = torch.randint(rows, (count,), device="cuda")
        lookup(numbers)
        torch.cuda.synchronize()

    import numpy

    table = numpy.memmap(arguments.table, dtype=numpy.float32, mode="r", shape=(rows, WIDTH))
    right = bool((table[numbers.cpu().numpy()] == found.cpu().numpy()).all())
    print(f"{count} rows of 4 KiB a step, {rings_count} rings with 64 reads in flight each, table of "
          f"{rows * ROW / 2**30:.1f} GiB")
    print(f"a step: {with_reads * 1e3:.2f} ms with the look-up, {without * 1e3:.2f} ms without; "
          f"{count / with_reads / 1e6:.2f} M rows/s; "
          f"{'rows are right' if right and failed.item() == 0 else 'WRONG ROWS'}")
    return 0 if right and failed.item() == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
