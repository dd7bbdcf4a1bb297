"""Rings for kernels: what Python has of them. Their I/O is tested in C++ (crates/clib/tests/rings)."""

import errno
import tempfile
import unittest
from pathlib import Path

import gpuio


def rings(**options):
    try:
        return gpuio.Rings(**options)
    except gpuio.GpuioError as error:
        if error.errno == errno.EOPNOTSUPP:
            raise unittest.SkipTest(str(error)) from None
        raise


class Rings(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.file = Path(scratch.name) / "data"
        self.file.write_bytes(bytes(9000))

    def test_files_have_the_lowest_free_number(self):
        with rings(rings=3, poll_threads=1, max_files=2) as opened:
            self.assertEqual(len(opened), 3)
            self.assertNotEqual(opened.address, 0)
            self.assertEqual(opened.add(self.file), 0)
            with self.file.open("r+b") as file:
                self.assertEqual(opened.add(file.fileno()), 1)
            with self.assertRaisesRegex(gpuio.GpuioError, "opened for no more") as caught:
                opened.add(self.file)
            self.assertEqual(caught.exception.errno, errno.EINVAL)
            opened.remove(0)
            with self.assertRaisesRegex(gpuio.GpuioError, "no file 0"):
                opened.remove(0)
            self.assertEqual(opened.add(self.file, write=True), 0)
            opened.wake()
            self.assertEqual(opened.in_flight, 0)
        with self.assertRaisesRegex(ValueError, "closed"):
            opened.address
        opened.close()

    def test_buffers_grow_as_far_as_was_said(self):
        with rings(buffers=4, max_buffers=100, buffer_length=4096) as opened:
            opened.grow(100)
            opened.grow(5)
            with self.assertRaisesRegex(gpuio.GpuioError, "opened for 100 at most"):
                opened.grow(101)

    def test_what_is_no_option_is_refused(self):
        rings().close()
        with self.assertRaisesRegex(gpuio.GpuioError, "multiples of 4096"):
            gpuio.Rings(buffer_length=5000)
        for wrong in ({"rings": -1}, {"buffers": 2**32}, {"device": "cpu"}):
            with self.assertRaises(ValueError, msg=str(wrong)):
                gpuio.Rings(**wrong)
        with self.assertRaises(TypeError):
            gpuio.Rings(rings=1.5)
        with self.assertRaises(NotADirectoryError), rings() as opened:
            opened.add(self.file / "none")

    def test_the_header_is_source_text(self):
        self.assertIn("struct gpuio_ring {", gpuio.device_header())


if __name__ == "__main__":
    unittest.main()
