"""Rings for file I/O that a program's own CUDA kernels start."""

import os
from types import TracebackType
from typing import Optional, Type

from ._library import PATH, check, library, whole
from ._memory import Device, Source, device_number


def device_header() -> str:
    """The text of ``gpuio_device.cuh``: put it before the kernels that CuPy or nvrtc compiles."""
    return library().device_header()


class Rings:
    """Rings of a GPU. Kernels get `address` and use the functions of `device_header`.

    A context manager: `close` waits for I/O in flight, and no kernel may use the rings any more. Rings
    that are not closed stay until the process ends. docs/gpu-started-io.md has the page.
    """

    def __init__(
        self,
        device: Device = 0,
        *,
        rings: int = 1,
        poll_threads: int = 0,
        buffers: int = 64,
        max_buffers: int = 0,
        buffer_length: int = 65536,
        max_files: int = 64,
    ) -> None:
        """Opens them; 0 is the default of an option. `GpuioError` says what this machine lacks."""
        number = device_number(device)
        if number < 0:
            raise ValueError("rings are for kernels of a GPU, not for the host")
        self._handle: Optional[int] = library().rings_open(
            number, rings, poll_threads, buffers, max_buffers, max_files, buffer_length
        )
        self.buffer_length = whole(buffer_length, "buffer_length") or 65536

    def _open(self) -> int:
        if self._handle is None:
            raise ValueError("the rings are closed")
        return self._handle

    @property
    def address(self) -> int:
        """Where the first ring is, for a parameter ``const gpuio_ring *``; the others follow."""
        return library().rings_address(self._open())

    def __len__(self) -> int:
        """How many rings there are."""
        return library().rings_count(self._open())

    def add(self, file: Source, *, direct: bool = False, write: bool = False) -> int:
        """Adds a file, by name or descriptor, and returns its number for kernels.

        A name is opened to be read, or with ``write`` to be read and written; ``direct`` opens it with
        ``O_DIRECT``, which wants offsets and lengths at multiples of the storage's block.
        """
        check((*PATH, int), file=file)
        if isinstance(file, int):
            return library().rings_add_file(self._open(), file)
        flags = os.O_RDWR if write else os.O_RDONLY
        fd = os.open(file, flags | os.O_CLOEXEC | (os.O_DIRECT if direct else 0))
        try:
            return library().rings_add_file(self._open(), fd)
        finally:
            os.close(fd)

    def remove(self, number: int) -> None:
        """Takes a file out; its number is free then."""
        library().rings_remove_file(self._open(), number)

    def grow(self, buffers: int) -> None:
        """Raises the number of buffers of each ring, for kernels that are launched afterwards."""
        library().rings_grow(self._open(), buffers)

    def wake(self) -> None:
        """Wakes the threads that serve the rings: saves up to 1 ms after a pause of 50 ms."""
        library().rings_wake(self._open())

    @property
    def in_flight(self) -> int:
        """I/O that kernels have started and that has not ended."""
        return library().rings_in_flight(self._open())

    def close(self) -> None:
        """Waits for I/O in flight, half a minute at most, and gives all back."""
        handle, self._handle = self._handle, None
        if handle is not None:
            library().rings_close(handle)

    def __enter__(self) -> "Rings":
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        value: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()
