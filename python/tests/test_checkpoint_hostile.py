"""Checkpoints that others wrote, spoilt or moved: none is believed, removed or waited for."""

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import unittest
import warnings
from unittest import mock

import numpy
from test_checkpoint import HAS_TORCH, HANG_S, Case

from gpuio import _checkpoint_drain, _checkpoint_manifest, _checkpoint_stage, checkpoint
from gpuio._checkpoint_format import Flat, described, laid_out

# Users that are not this one; only root may give files to them.
EVE, SQUASHED = 12345, 12346
AS_ROOT = unittest.skipUnless(os.geteuid() == 0, "SKIPPED: only root may give files away")
NAME, MODEL = "gpuio-checkpoint.json", "model.safetensors"


def full(value, count=3):
    return numpy.full(count, float(value))


def give(path, user):
    """To another user, with all that is in it."""
    for name in [path, *path.iterdir()]:
        os.lchown(name, user, user)


def plain(value):
    """A state with lists in the place of arrays."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(plain, value))
    return value.tolist() if isinstance(value, numpy.ndarray) else value


class Hostile(Case):
    def setUp(self):
        super().setUp()
        # No read of a pipe may wait.
        signal.signal(signal.SIGALRM, self.hangs)
        signal.alarm(HANG_S)
        self.addCleanup(signal.alarm, 0)

    @staticmethod
    def hangs(*_):
        raise AssertionError("it hangs")

    def save(self, name, **state):
        checkpoint.save(state or {"x": full(1)}, self.dir / name).wait()
        return self.dir / name

    def edit(self, name, change):
        path = self.dir / name / NAME
        manifest = json.loads(path.read_text())
        del manifest["sha256"]
        change(manifest)
        path.write_bytes(_checkpoint_drain.manifest_bytes(manifest))

    @contextlib.contextmanager
    def passed_over(self, *words):
        """As many warnings, each with its words."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        said = sorted(str(one.message) for one in caught
                      if one.category is checkpoint.PassedOverWarning)
        self.assertEqual(len(said), len(words), said)
        for one, expected in zip(said, words):
            self.assertRegex(one, expected)


class Into(Hostile):
    def filled(self, name, into, **named):
        return checkpoint.load(self.dir / name, into=into, **named)

    def test_each_tensor_comes_from_its_own_place_whatever_the_order(self):
        for nth, (saved, into) in enumerate([
            ({"x.y": full(1), "x": {"y": full(2)}}, {"x": {"y": full(0)}, "x.y": full(0)}),
            ({1: full(1), "1": full(2)}, {"1": full(0), 1: full(0)}),
            ({"p": [full(1), {"q": full(2)}]}, {"p": (full(0), {"q": full(0)})}),
            ({"p": (full(1), (full(2), 5))}, {"p": (full(0), (full(0), 0))}),
        ]):
            checkpoint.save(saved, self.dir / str(nth)).wait()
            self.assertEqual(plain(self.filled(str(nth), into)), plain(saved))

    def test_a_tie_of_one_side_alone_is_refused_and_nothing_is_written(self):
        one, other = full(1), full(2)
        self.save("tied", a=one, b=other, c=one)
        self.save("free", a=one, b=other)
        a, b, c = full(0), full(0), full(0)
        for name, into, words in [
            ("tied", {"a": a, "b": b, "c": b}, "'a' is one in .*tied, .* state two: 'a' and 'b'"),
            ("tied", {"a": a, "b": b, "c": c}, "'a' is one in .*tied, .* state two: 'a' and 'c'"),
            ("free", {"a": a, "b": a}, "'a' is one in the state, and in .*free two: 'a' and 'b'"),
        ]:
            with self.assertRaisesRegex(ValueError, words):
                self.filled(name, into)
        self.assertFalse(a.any() or b.any() or c.any())
        self.same(full(1), self.filled("tied", {"a": a, "b": b, "c": a})["c"])
        # One that lacks in its place takes the tensor that it is tied to.
        into = {"a": a, "b": b}
        self.assertIs(self.filled("tied", into)["c"], a)
        # And one more name of a tensor is no tensor that the checkpoint lacks.
        into = {"a": a, "b": b, "z": b}
        self.assertIs(self.filled("free", into)["z"], b)
        self.same(full(2), b)

    def test_tensors_that_share_memory_have_the_same_bytes_or_are_refused(self):
        memory = numpy.arange(6.0)
        parts = {"all": memory, "part": memory[:4], "square": memory[:4].reshape(2, 2)}
        checkpoint.save(parts, self.dir / "views").wait()
        memory[:] = 0
        self.filled("views", parts)
        self.same(numpy.arange(6.0), memory)
        self.save("apart", a=full(1, 4), b=full(2, 4))
        with self.assertRaisesRegex(ValueError, "share memory.*different bytes.*: a, b$"):
            self.filled("apart", {"a": memory[:4], "b": memory[2:]}, verify=False)

    @unittest.skipUnless(HAS_TORCH, "SKIPPED: no PyTorch here")
    def test_tensors_of_pytorch_stay_the_same_objects_in_tuples(self):
        import torch

        checkpoint.save({"p": (torch.ones(3), 4)}, self.dir / "one").wait()
        one = torch.nn.Parameter(torch.zeros(3))
        self.assertIs(self.filled("one", {"p": (one, 0)})["p"][0], one)
        self.assertEqual(one.sum().item(), 3)


class Files(Hostile):
    def test_what_a_manifest_claims_is_checked_before_it_is_used(self):
        self.save("one", x=full(1, 300), y=full(2, 7))

        def x(**fields):
            return lambda it: it["ranks"][0]["tensors"]["x"].update(fields)

        def file(**fields):
            return lambda it: it["ranks"][0]["files"][MODEL].update(fields)

        def rank(**fields):
            return lambda it: it["ranks"][0].update(fields)

        right = (self.dir / "one" / NAME).read_bytes()
        for change, words in [
            (x(bytes=1 << 62), "x: its 4611686018427387904 bytes are not those of its shape"),
            (x(bytes=1 << 62, shape=[1 << 59]), f"x: its .* bytes at 4096 are not in {MODEL}"),
            (x(bytes=8, shape=[1 << 62] * 9999), "x: its 8 bytes are not those"),
            (x(bytes=-5), "x: its bytes is -5"),
            (x(bytes="5"), "x: its bytes is not a whole number"),
            (x(bytes=True), "x: its bytes is not a whole number"),
            (x(offset=8), "x: its 2400 bytes at 8 are not in"),
            (x(file="nope"), "x: its file is none of the checkpoint's"),
            (x(dtype="object"), "x: its dtype is object"),
            (x(shape=[-1, -300]), "x: its shape is none"),
            (x(digest="g" * 16), "x: its digest is no digest"),
            (x(offset=4096 + 8), "its header has other tensors"),
            (file(header_bytes=1 << 36, bytes=1 << 36), "its header has 68719476736 bytes"),
            (file(header_bytes=-1), "its header_bytes is -1"),
            (file(bytes=9000), "it has 6552 bytes, and had 9000"),
            (rank(structure={"dict": [["a", {"tensor": "zz"}]]}), "has other tensors.*: x, y, zz"),
            (rank(structure={"dict": [["x", 1, 2]]}), "structure is none of a state"),
            (rank(structure={"dict": [[1, 2], [True, 3]]}), "a key twice"),
            (rank(structure={"set": []}), "structure is none of a state"),
            (rank(tensors={}), "has other tensors than its files: x, y"),
            (rank(files=[]), "its files is not an object"),
            (lambda it: it["ranks"][0].pop("structure"), "it has no structure"),
            (lambda it: it.pop("created"), "its created is not a time"),
            (lambda it: it.update(created=float("nan")), "its created is not a time"),
            (lambda it: it.update(created=10**400), "its created is not a time"),
            (lambda it: it.update(number="1"), "its number is not a whole number"),
            (lambda it: it.update(ranks=5), "its ranks is not a list"),
            (lambda it: it.update(ranks=[]), "it has no ranks"),
            (lambda it: it.update(ranks=it["ranks"] * 2), f"{MODEL}: it is there twice"),
            (lambda it: it.update(version="1"), "its version is not a whole number"),
            (lambda it: it.pop("extras"), "its extras is not an object"),
            (lambda it: it["extras"].update({"/etc/passwd": "0" * 64}), "no file of the"),
            (lambda it: it["extras"].update({"a\0b": "0" * 64}), "no file of the"),
            (lambda it: it["extras"].update({"\ud800": "0" * 64}), "no file of the"),
            (lambda it: it["extras"].update({"a": "00"}), "a: its a is no digest"),
        ]:
            (self.dir / "one" / NAME).write_bytes(right)
            self.edit("one", change)
            self.refused("one", words)
        # The module json would not write these.
        for text, words in [
            (b'"x":' + b"[" * 100_000 + b"]" * 100_000, "nests deeper"),
            (b'"number":' + b"7" * 5000, "it is no JSON that this Python reads"),
            (b'"x":\0', "it is no text"),
            (b'"x":', "it is no JSON that this Python reads"),
        ]:
            body = text + b"}\n"
            first = b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'",\n'
            (self.dir / "one" / NAME).write_bytes(first + body)
            self.refused("one", words)

        # Only some releases of Python read deeper JSON than their functions can call themselves.
        (self.dir / "one" / NAME).write_bytes(right)
        with mock.patch.object(_checkpoint_manifest, "rebuilt", side_effect=RecursionError):
            self.refused("one", "nests deeper")

    def refused(self, name, words):
        """By each call, and `latest` goes on to the next one."""
        into = {"x": full(0, 300), "y": full(0, 7)}
        for look in (checkpoint.verify, checkpoint.load,
                     lambda path: checkpoint.load(path, into=into)):
            with self.assertRaisesRegex(checkpoint.DamagedError, words):
                look(self.dir / name)
        self.assertFalse(into["x"].any())
        with self.passed_over(words):
            self.assertIsNone(checkpoint.latest(self.dir))

    def test_pipes_and_links_of_a_files_name_are_damage_and_not_waited_for(self):
        self.save("good")
        for nth, name in enumerate((NAME, MODEL, "extra")):
            bad = self.save(f"step-{nth}")
            self.edit(bad.name, lambda it: it.update(extras={"extra": "0" * 64}))
            with contextlib.suppress(FileNotFoundError):
                (bad / name).unlink()
            os.mkfifo(bad / name)
            with self.assertRaisesRegex(checkpoint.DamagedError, f"{name}: it is no regular file"):
                checkpoint.verify(bad)
            with self.passed_over(f"step-{nth} is damaged.*{name}: it is no regular file"):
                self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "good"))
            (bad / name).unlink()
            os.symlink(name, bad / name)
            with self.assertRaisesRegex(OSError, "symbolic link") if name == NAME else (
                self.assertRaisesRegex(checkpoint.DamagedError, "symbolic link")
            ):
                checkpoint.verify(bad)
            with self.passed_over(f"step-{nth} is damaged"):
                self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "good"))
            for file in bad.iterdir():
                file.unlink()

    def test_a_header_that_can_not_be_loaded_does_not_verify(self):
        one = self.save("one")
        tensor = {"w\udcff": full(1)}
        (file,) = laid_out(Flat(tensor).leaves.values(), 1 << 30, "model")
        about = json.loads((one / NAME).read_text())["ranks"][0]["tensors"]["x"]
        files, tensors = described(file, {"w\udcff": int(about["digest"], 16)})
        (one / MODEL).write_bytes(file.header + full(1).tobytes())
        self.edit("one", lambda it: it["ranks"][0].update(
            files={MODEL: files}, tensors=tensors, structure={"tensor": "w\udcff"}))
        for look in (checkpoint.verify, checkpoint.load):
            with self.assertRaisesRegex(checkpoint.DamagedError, "its header was written wrong"):
                look(one)

    def test_a_file_of_any_size_is_read_a_few_parts_at_a_time(self):
        pool, begun = _checkpoint_drain.started_pool(2, "test"), []

        def work():
            for nth in range(10**6):
                begun.append(nth)
                yield nth, lambda: 1

        with contextlib.closing(_checkpoint_stage.in_turn(pool, work())) as futures:
            self.assertEqual([next(futures)[0] for _ in range(3)], [0, 1, 2])
        self.assertLess(len(begun), 100)
        few = ((nth, lambda nth=nth: nth * nth) for nth in range(99))
        done = [(nth, future.result()) for nth, future in _checkpoint_stage.in_turn(pool, few)]
        self.assertEqual(done, [(nth, nth * nth) for nth in range(99)])
        pool.shutdown()


class Latest(Hostile):
    def test_a_clock_that_was_set_back_does_not_make_an_older_one_the_newest(self):
        for nth, created in ((1, 9e9), (2, 5e9)):
            self.save(f"step-{nth}")
            self.edit(f"step-{nth}", lambda it: it.update(number=nth, created=created))
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "step-2"))
        # Manifests of before have no number: they are older, and the time orders them.
        for nth in (3, 4):
            self.save(f"step-{nth}")
            self.edit(f"step-{nth}", lambda it: it.update(created=8e9 + nth) or it.pop("number", 0))
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "step-2"))
        for nth in (1, 2):
            self.edit(f"step-{nth}", lambda it: it.pop("number"))
            self.edit(f"step-{nth}", lambda it: it.update(created=nth))
        self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "step-4"))

    def test_one_of_a_later_format_is_an_error_and_no_older_one_is_taken(self):
        self.save("one")
        self.save("two")
        self.edit("two", lambda it: it.update(version=2))
        with self.assertRaisesRegex(ValueError, "two has version 2 .* this gpuio knows version 1"):
            checkpoint.latest(self.dir)

    @AS_ROOT
    def test_checkpoints_of_other_users_are_named_and_not_taken(self):
        self.save("mine")
        evil = self.save("evil", x=full(666))
        self.edit("evil", lambda it: it.update(created=9e9, number=1 << 40))
        give(evil, EVE)
        # Not even a look at it that could fail or wait.
        (self.dir / "none").mkdir()
        give(self.dir / "none", EVE)
        with self.passed_over("passed over: evil in .*, of other users.*any_user=True"):
            self.assertEqual(checkpoint.latest(self.dir, verify=True), str(self.dir / "mine"))
        with self.passed_over():
            self.assertEqual(checkpoint.latest(self.dir, any_user=True), str(evil))
        # A path that is named is trusted.
        self.same({"x": full(666)}, checkpoint.load(evil, as_="numpy"))
        # A directory of mine with a file of another, and another's link to one of mine.
        for name in (NAME, MODEL):
            os.chown(evil, 0, 0)
            os.chown(evil / NAME, 0, 0)
            os.chown(evil / name, EVE, EVE)
            with self.passed_over(f"evil is damaged: {name}: it belongs to user {EVE}"):
                self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "mine"))
        # Links inside: another's to one of mine, mine to one of another's.
        os.rename(evil / MODEL, self.dir / "file")
        os.symlink("../file", evil / MODEL)
        for link, file in ((EVE, 0), (0, EVE)):
            os.lchown(evil / MODEL, link, link)
            os.chown(self.dir / "file", file, file)
            with self.passed_over(f"evil is damaged: {MODEL}: it belongs to user {EVE}"):
                self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "mine"))
        os.chown(self.dir / "file", 0, 0)
        with self.passed_over():
            self.assertEqual(checkpoint.latest(self.dir), str(evil))
        os.rename(evil, self.dir / "away")
        give(self.dir / "away", EVE)
        os.symlink("mine", self.dir / "zlink")
        os.lchown(self.dir / "zlink", EVE, EVE)
        with self.passed_over("passed over: away, zlink in"):
            self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "mine"))
        os.lchown(self.dir / "zlink", 0, 0)
        with self.passed_over("passed over: away in"):
            self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "zlink"))

    @AS_ROOT
    def test_files_that_a_server_gives_to_another_number_are_ones_own(self):
        give(self.save("one"), SQUASHED)
        real = os.open

        def squashed(path, flags, *more, **named):
            fd = real(path, flags, *more, **named)
            if flags & os.O_CREAT:
                os.fchown(fd, SQUASHED, SQUASHED)
            return fd

        with mock.patch.object(_checkpoint_manifest.os, "open", squashed), self.passed_over():
            self.assertEqual(checkpoint.latest(self.dir), str(self.dir / "one"))
        self.assertEqual(os.listdir(self.dir), ["one"])


class Clean(Hostile):
    DRAFT = ".step-9.gpuio-draft-0"

    def draft(self, name=DRAFT, **fields):
        """A draft as a save leaves it that is killed."""
        path = self.dir / name
        path.mkdir()
        (path / MODEL).write_bytes(b"half")
        fd = os.open(path, os.O_RDONLY)
        own = {"id": "0" * 32, "inode": path.stat().st_ino,
               "birth_ns": _checkpoint_manifest.birth_ns(fd), **fields}
        os.close(fd)
        (path / ".gpuio-draft.json").write_text(json.dumps(own))
        return path

    def cleaned(self, path, *words):
        with self.passed_over(*words):
            self.assertEqual(checkpoint.clean(self.dir), [] if words else [str(path)])
        self.assertEqual(path.exists(), bool(words))

    def test_only_what_a_save_made_there_is_removed(self):
        self.cleaned(self.draft())
        self.cleaned(self.draft(birth_ns=None))
        empty = self.dir / self.DRAFT
        empty.mkdir()
        self.cleaned(empty)
        for fields in ({"inode": 1}, {"birth_ns": 1}, {"id": "x"}, {"inode": True}):
            path = self.draft(**fields)
            self.cleaned(path, "no .gpuio-draft.json in it says")
            self.away(path)
        # Something of one's own that has got such a name.
        path = self.draft()
        (path / ".gpuio-draft.json").unlink()
        self.cleaned(path, "no .gpuio-draft.json in it says")
        (path / ".gpuio-draft.json").write_text("[" * 4000)
        self.cleaned(path, "no .gpuio-draft.json in it says")
        (path / ".gpuio-draft.json").unlink()
        os.mkfifo(path / ".gpuio-draft.json")
        self.cleaned(path, "no .gpuio-draft.json in it says")
        self.away(path)
        path = self.draft()
        (path / "sub").mkdir()
        self.cleaned(path, "can't be removed: .*sub")
        (path / "sub").rmdir()
        self.cleaned(path)

    @staticmethod
    def away(path):
        for file in path.iterdir():
            file.unlink()
        path.rmdir()

    def test_a_whole_checkpoint_that_got_a_drafts_name_stays(self):
        whole, path = self.save("step-1"), self.dir / self.DRAFT
        os.rename(whole, path)
        with contextlib.suppress(FileNotFoundError):
            (path / ".gpuio-draft.json").unlink()
        self.cleaned(path, "it is a whole checkpoint. Rename it")
        # Or one that was killed before it got its name.
        own = self.draft(".other.gpuio-draft-1", inode=path.stat().st_ino, birth_ns=None)
        os.rename(own / ".gpuio-draft.json", path / ".gpuio-draft.json")
        self.away(own)
        self.cleaned(path, "it is a whole checkpoint. Rename it")
        self.assertEqual(checkpoint.verify(path).tensors, 1)
        self.edit(path.name, lambda it: it.update(version=2))
        self.cleaned(path, "has version 2 of the format")
        (path / NAME).write_bytes(b'{"sha256":"')
        self.cleaned(path)

    def test_a_draft_that_another_host_may_write_stays_until_a_flag_says_so(self):
        boot, shared = _checkpoint_drain.boot(), mock.patch.object(
            _checkpoint_manifest, "_filesystem", lambda _: "nfs4")
        for fields in ({}, {"boot": None}, {"boot": "of another host"}):
            path = self.draft(**fields)
            with shared:
                self.cleaned(path, "a process of another host may be writing it.*any_host=True")
                self.assertEqual((path / MODEL).read_bytes(), b"half")
                self.assertEqual(checkpoint.clean(self.dir, any_host=True), [str(path)])
            # No two hosts have a local file system.
            self.cleaned(self.draft(**fields))
        with shared:
            self.cleaned(self.draft(boot=boot))
        path = self.draft()
        (path / ".gpuio-draft.json").unlink()
        with self.passed_over("no .gpuio-draft.json in it says"):
            self.assertEqual(checkpoint.clean(self.dir, any_host=True), [])
        fd = os.open(path, os.O_RDONLY)
        self.addCleanup(os.close, fd)
        self.assertIsNotNone(_checkpoint_manifest._filesystem(fd))

    def test_a_draft_names_the_boot_of_the_host_that_alone_writes_it(self):
        for alone, boot in ((True, _checkpoint_drain.boot()), (False, None)):
            path = self.dir / f".{alone}.gpuio-draft-0"
            os.close(_checkpoint_drain.new_draft(str(path), alone))
            self.assertEqual(json.loads((path / ".gpuio-draft.json").read_text())["boot"], boot)
        os.close(_checkpoint_drain.make_draft(str(self.dir / ".ranks.gpuio-draft-0"), 1))
        about = (self.dir / ".ranks.gpuio-draft-0/.gpuio-draft.json").read_text()
        self.assertIsNone(json.loads(about)["boot"], "ranks of other hosts may write it")

    def test_a_draft_that_a_drain_holds_stays(self):
        path = self.draft()
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_SH)
        with self.passed_over():
            self.assertEqual(checkpoint.clean(self.dir), [])
        os.close(fd)
        self.cleaned(path)

    @AS_ROOT
    def test_a_draft_of_another_user_stays(self):
        path = self.draft()
        os.chown(path, EVE, EVE)
        self.cleaned(path, "it is another user's draft")
        os.chown(path, 0, 0)
        os.chown(path / ".gpuio-draft.json", EVE, EVE)
        self.cleaned(path, "no .gpuio-draft.json in it says")

    def test_what_gets_the_name_meanwhile_is_not_removed(self):
        whole, path = self.save("step-1"), self.draft()
        real = os.unlink

        def swapped(name, **named):
            if name == MODEL and path.exists():
                os.rename(path, self.dir / "away")
                os.rename(whole, path)
            real(name, **named)

        with mock.patch.object(checkpoint.os, "unlink", swapped):
            self.cleaned(path, "can't be removed: .*not empty")
        self.assertEqual(checkpoint.verify(path).tensors, 1)


if __name__ == "__main__":
    unittest.main()
