"""The manifest of a checkpoint, and the files beside it, as they are read.

Anybody may have written them. `read_manifest` hands out what it has checked: types, names, sizes
and the structure; `checked` compares the files with that. What is wrong is a `DamagedError`.
"""

import errno
import hashlib
import json
import os
import re
import secrets
import stat
from typing import Any, Callable, Container, Dict, List, Optional, Set, Tuple

from ._checkpoint_drain import MANIFEST, OWNER, birth_ns, boot
from ._checkpoint_format import DCP_METADATA, rebuilt
from ._library import few, library
from ._memory import KINDS
from ._safetensors import _TYPES

# The length before a header, and the header's most bytes (safetensors, "Format").
_MOST_HEADER = 8 + 100_000_000
_MOST = 2**63 - 1
_CHUNK = 1 << 20
# A tensor in the header of its file: type, shape, offset and bytes.
_Row = Tuple[str, Tuple[int, ...], int, int]
_PLAIN = (str, int, float, bool, type(None))
_SAID = {int: "a whole number", str: "text", dict: "an object", list: "a list"}
# Said by file systems of bytes that they can't give back right (the last by XFS, ext4 and btrfs).
_MEDIA = (errno.EIO, errno.ENODATA, errno.EILSEQ, errno.EBADMSG, errno.EUCLEAN)
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO)


class DamagedError(ValueError):
    """A checkpoint whose bytes are not those that were saved."""

    def __init__(
        self,
        directory: str,
        damaged: Dict[str, str],
        words: str = "latest(DIRECTORY, verify=True) finds the newest that is whole",
    ) -> None:
        self.directory, self.damaged = directory, damaged
        """By the name of a tensor, or of a file where no tensor is meant: the reason."""
        shown = few((f"{name}: {why}" for name, why in damaged.items()), "; ")
        self.found = f"{directory} is damaged: {shown}"
        """Without what to do about it."""
        super().__init__(f"{self.found}. {words}")


class Unfit(OSError):
    """A file that is there, and can be none of a checkpoint."""


def unread(error: OSError) -> str:
    """Why a file counts as damaged; raises what says nothing about the file: no permission, no
    descriptors, no memory."""
    if isinstance(error, Unfit) or error.errno in (*_GONE, *_MEDIA):
        return error.strerror or str(error)
    raise error


class Users:
    """Users whose files in a directory are taken: this process's own, and more."""

    def __init__(self, directory: str, *more: int) -> None:
        self._known: Set[Optional[int]] = {os.geteuid(), *more}
        self._directory, self._asked = directory, False

    def __contains__(self, user: object) -> bool:
        if user not in self._known and not self._asked:
            self._asked = True
            self._known.add(self._given())
        return user in self._known

    def _given(self) -> Optional[int]:
        """A server may give files to another number than the process has (root squash): a file
        that is made says which. None where none may be made."""
        path = os.path.join(self._directory, f".gpuio-owner-{secrets.token_hex(8)}")
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            return os.fstat(fd).st_uid
        finally:
            os.close(fd)
            os.unlink(path)


def open_regular(path: str, users: Optional[Container[int]] = None) -> int:
    """A descriptor for reading of a regular file, of one of these users. No pipe is waited for."""
    if users is not None:
        _refuse_other(os.lstat(path), users, path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise Unfit(errno.ENXIO, "it is no regular file", path)
        if users is not None:
            _refuse_other(found, users, path)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _refuse_other(found: os.stat_result, users: Container[int], path: str) -> None:
    if found.st_uid not in users:
        raise Unfit(errno.EPERM, f"it belongs to user {found.st_uid}", path)


class _Wrong(Exception):
    """A fault of a manifest, and the file or tensor that it is about."""

    def __init__(self, why: str, where: str = MANIFEST) -> None:
        super().__init__(why)
        self.where = where


def read_manifest(directory: str, users: Optional[Container[int]] = None) -> Dict[str, Any]:
    """The manifest, whose own digest is right, and which can be a checkpoint's."""
    try:
        first, body = _text(os.path.join(directory, MANIFEST), users)
        expected = b'{"sha256":"' + hashlib.sha256(body).hexdigest().encode() + b'",\n'
        if first != expected:
            raise _Wrong("its digest is not that of its contents")
        try:
            manifest: Dict[str, Any] = json.loads(first + body)
            version = _field(manifest, "version", int)
            if version != 1:
                raise _Version(f"{directory} has version {version} of the format: this gpuio "
                               "knows version 1")
            _check(manifest)
        except _Version:
            raise
        except RecursionError:
            raise _Wrong("it nests deeper than this Python can follow") from None
        except ValueError as error:
            raise _Wrong(f"it is no JSON that this Python reads: {error}") from None
    except FileNotFoundError:
        if not os.path.isdir(directory):
            raise FileNotFoundError(2, "there is no such directory", directory) from None
        raise FileNotFoundError(
            2, f"it has no {MANIFEST}, so it is no complete checkpoint of gpuio", directory
        ) from None
    except _Wrong as wrong:
        raise DamagedError(directory, {wrong.where: str(wrong)}) from None
    except Unfit as error:
        raise DamagedError(directory, {MANIFEST: unread(error)}) from None
    return manifest


class _Version(ValueError):
    """A manifest of a later gpuio."""


def _text(path: str, users: Optional[Container[int]]) -> Tuple[bytes, bytes]:
    """The first line, and the rest."""
    with open(open_regular(path, users), "rb") as file:
        first, rest = file.readline(128), []
        while True:
            chunk = file.read(_CHUNK)
            # JSON has no zeros, of which the holes of a file may give any number.
            if b"\0" in chunk:
                raise _Wrong("it is no text")
            if not chunk:
                return first, b"".join(rest)
            rest.append(chunk)


def _field(of: Any, name: str, kind: type, where: str = MANIFEST) -> Any:
    # No subclass: true is no number.
    if type(of) is not dict or type(of.get(name)) is not kind:
        raise _Wrong(f"its {name} is not {_SAID[kind]}", where)
    return of[name]


def _size(of: Any, name: str, where: str) -> int:
    size: int = _field(of, name, int, where)
    if not 0 <= size <= _MOST:
        raise _Wrong(f"its {name} is {size}", where)
    return size


def _hex(of: Any, name: str, digits: int, where: str) -> None:
    if not re.fullmatch(f"[0-9a-f]{{{digits}}}", _field(of, name, str, where)):
        raise _Wrong(f"its {name} is no digest", where)


def _check(manifest: Dict[str, Any]) -> None:
    created = manifest.get("created")
    if type(created) not in (int, float) or not 0 <= created <= _MOST:
        raise _Wrong("its created is not a time")
    # Manifests of before have none.
    manifest.setdefault("number", 0)
    _size(manifest, "number", MANIFEST)
    known = {MANIFEST}
    extras = _field(manifest, "extras", dict)
    for name in extras:
        _file_name(name, known)
        _hex(extras, name, 64, name)
    ranks = _field(manifest, "ranks", list)
    if not ranks:
        raise _Wrong("it has no ranks")
    for rank in ranks:
        _check_rank(rank, known, DCP_METADATA in extras)


def _file_name(name: str, known: Set[str]) -> None:
    try:
        right = len(os.fsencode(name)) <= 255 and "\0" not in name
    except UnicodeEncodeError:
        right = False
    if not right or name != os.path.basename(name) or name in ("", ".", ".."):
        raise _Wrong("it is no file of the checkpoint's directory", name)
    if name in known:
        raise _Wrong("it is there twice", name)
    known.add(name)


def _check_rank(rank: Any, known: Set[str], is_dcp: bool) -> None:
    files = _field(rank, "files", dict)
    for name, about in files.items():
        _file_name(name, known)
        nbytes, header = _size(about, "bytes", name), _size(about, "header_bytes", name)
        _hex(about, "header_sha256", 64, name)
        if not 8 < header <= min(nbytes, _MOST_HEADER):
            raise _Wrong(f"its header has {header} bytes, and it {nbytes}", name)
    tensors = _field(rank, "tensors", dict)
    for name, about in tensors.items():
        _check_tensor(name, about, files)
    if "structure" not in rank:
        raise _Wrong("it has no structure")
    names = _named(rank["structure"])
    # Those of DCP have none: its own metadata names the tensors.
    if not is_dcp and names != set(tensors):
        raise _Wrong("its structure has other tensors than its files: "
                     + few(sorted(names ^ set(tensors))))
    # As `load` does, so that one that is right here can be loaded.
    rebuilt(rank["structure"], dict.fromkeys(names))


def _check_tensor(name: str, about: Any, files: Dict[str, Any]) -> None:
    file = files.get(_field(about, "file", str, name))
    if file is None:
        raise _Wrong("its file is none of the checkpoint's", name)
    if _field(about, "dtype", str, name) not in _TYPES.values():
        raise _Wrong(f"its dtype is {about['dtype']}", name)
    bits = KINDS[about["dtype"]].bits
    shape = _field(about, "shape", list, name)
    for size in shape:
        if type(size) is not int or not 0 <= size <= _MOST:
            raise _Wrong("its shape is none", name)
    for size in [0] if 0 in shape else shape:
        bits *= size
        # No number grows without end, for a shape of many sizes.
        if bits > 8 * _MOST:
            break
    nbytes, offset = _size(about, "bytes", name), _size(about, "offset", name)
    if bits != 8 * nbytes:
        raise _Wrong(f"its {nbytes} bytes are not those of its shape", name)
    if offset < file["header_bytes"] or offset + nbytes > file["bytes"]:
        raise _Wrong(f"its {nbytes} bytes at {offset} are not in {about['file']}", name)
    _hex(about, "digest", 16, name)


def _named(structure: Any) -> Set[str]:
    """The tensors of a structure."""
    names: Set[str] = set()
    left: List[Any] = [structure]
    while left:
        one = left.pop()
        if type(one) in _PLAIN:
            continue
        kind, inside = next(iter(one.items())) if type(one) is dict and len(one) == 1 else ("", 0)
        if kind == "tensor" and type(inside) is str:
            names.add(inside)
        elif kind in ("list", "tuple") and type(inside) is list:
            left.extend(inside)
        elif kind == "dict" and type(inside) is list and all(map(_is_item, inside)):
            if len({key for key, _ in inside}) != len(inside):
                raise _Wrong("its structure has a key twice")
            left.extend(value for _, value in inside)
        else:
            raise _Wrong("its structure is none of a state")
    return names


def _is_item(item: Any) -> bool:
    return type(item) is list and len(item) == 2 and type(item[0]) in _PLAIN


def checked(
    directory: str, manifest: Dict[str, Any], users: Optional[Container[int]] = None
) -> Dict[str, str]:
    """The damage of files' sizes and headers, and of the small files beside them."""
    damaged: Dict[str, str] = {}

    def look(name: str, damage: Callable[[int], Optional[str]]) -> None:
        try:
            fd = open_regular(os.path.join(directory, name), users)
            try:
                why = damage(fd)
            finally:
                os.close(fd)
        except OSError as error:
            why = unread(error)
        if why is not None:
            damaged[name] = why

    for rank in manifest["ranks"]:
        tensors: Dict[str, Dict[str, _Row]] = {name: {} for name in rank["files"]}
        for name, about in rank["tensors"].items():
            tensors[about["file"]][name] = (
                about["dtype"], tuple(about["shape"]), about["offset"], about["bytes"]
            )
        for name, about in rank["files"].items():
            look(name, lambda fd: _file_damage(fd, about, tensors[name]))
    for name, sum_ in manifest["extras"].items():
        look(name, lambda fd: None if _sha256(fd) == sum_ else "its digest is another one")
    return damaged


def _file_damage(fd: int, about: Dict[str, Any], tensors: Dict[str, _Row]) -> Optional[str]:
    found = os.fstat(fd).st_size
    if found != about["bytes"]:
        return f"it has {found} bytes, and had {about['bytes']}"
    if _sha256(fd, about["header_bytes"]) != about["header_sha256"]:
        return "the digest of its header is another one"
    try:
        header = library().safetensors(fd)
    except ValueError as error:
        return f"its header was written wrong: {error}"
    dtypes = [_TYPES[dtype] for dtype in header.dtypes()]
    rows = zip(dtypes, header.shapes(), header.offsets, header.lengths)
    if dict(zip(header.names(), rows)) != tensors:
        return f"its header has other tensors than {MANIFEST}"
    return None


def _sha256(fd: int, most: int = _MOST) -> str:
    """The digest of so many first bytes of a file."""
    digest, at = hashlib.sha256(), 0
    while at < most:
        chunk = os.pread(fd, min(_CHUNK, most - at), at)
        if not chunk:
            break
        digest.update(chunk)
        at += len(chunk)
    return digest.hexdigest()


def own_draft(draft: int, users: Container[int]) -> Optional[Dict[str, Any]]:
    """The owner file of a draft; None unless it says that a save of one of these users made this
    very directory."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        fd = os.open(OWNER, flags, dir_fd=draft)
        try:
            if os.fstat(fd).st_uid not in users:
                return None
            owner: Dict[str, Any] = json.loads(os.read(fd, 4096))
        finally:
            os.close(fd)
        _hex(owner, "id", 32, OWNER)
        born = owner["birth_ns"]
        is_ours = _field(owner, "inode", int, OWNER) == os.fstat(draft).st_ino and (
            born is None or type(born) is int and born == birth_ns(draft)
        )
        return owner if is_ours else None
    except (OSError, ValueError, KeyError, RecursionError, _Wrong):
        return None


# No two hosts have one of these mounted at once: the locks here are all that there are.
_OF_ONE_HOST = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "overlay"))


def is_of_this_host(draft: int, owner: Dict[str, Any]) -> bool:
    """Whether no process of another host can be writing a draft: a lock may not be seen on another
    host (flock(2), "NFS details"; options of mounts)."""
    here = boot()
    if here is not None and owner.get("boot") == here:
        return True
    return _filesystem(draft) in _OF_ONE_HOST


def _filesystem(fd: int) -> Optional[str]:
    """The type of the file system that a file is on (proc(5)); None where it can't be read."""
    try:
        with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as about:
            number = next(line.split()[1] for line in about if line.startswith("mnt_id:"))
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as mounts:
            line = next(line for line in mounts if line.split(" ", 1)[0] == number)
        return line.partition(" - ")[2].split(" ", 1)[0]
    except (OSError, StopIteration, IndexError):
        return None
