"""A state that takes the values of a stored one: which of its tensors is which of the stored."""

from itertools import zip_longest
from typing import Any, Dict, Iterable, Iterator, List, Set, Tuple

from ._checkpoint_format import Flat, Leaf, is_tensor, rebuilt
from ._library import few


def placed(directory: str, structure: Any, flat: Flat) -> Dict[str, Leaf]:
    """The state's tensors by the stored names, as both stand in the same place of their structures.
    Names alone don't say it: they depend on the order of a dictionary, and on ties."""
    pairs: List[Tuple[str, str]] = []
    lacking: Set[str] = set()
    surplus: Set[str] = set()

    def walk(stored: Any, have: Any) -> None:
        (kind, inside), (its, own) = _parts(stored), _parts(have)
        if kind == its == "tensor":
            pairs.append((inside, own))
        elif kind == its == "dict":
            rest = dict(own)
            for key, one in inside:
                walk(one, rest.pop(key, None))
            for one in rest.values():
                walk(None, one)
        elif kind in _LISTS and its in _LISTS:
            for both in zip_longest(inside, own):
                walk(*both)
        else:
            lacking.update(_tensors(stored))
            surplus.update(_tensors(have))

    walk(structure, flat.structure)
    to, back = dict(pairs), {own: stored for stored, own in pairs}
    # A tensor that is tied to one in its place has its bytes there.
    sides = ("not in the state", lacking - set(to)), ("not in the checkpoint", surplus - set(back))
    words = "; ".join(f"{side}: {few(sorted(names))}" for side, names in sides if names)
    if words:
        raise ValueError(f"the state has other tensors than {directory}: {words}")
    for stored, own in pairs:
        if to[stored] != own:
            raise ValueError(f"tensor {stored!r} is one in {directory}, and in the state two: "
                             f"{own!r} and {to[stored]!r}. Tie them, or load without into")
        if back[own] != stored:
            raise ValueError(f"tensor {own!r} is one in the state, and in {directory} two: "
                             f"{stored!r} and {back[own]!r}. Untie them, or load without into")
    return {stored: flat.leaves[own]._replace(name=stored) for stored, own in to.items()}


_LISTS = ("list", "tuple")


def _parts(structure: Any) -> Tuple[str, Any]:
    (part,) = structure.items() if isinstance(structure, dict) else [("plain", structure)]
    return part


def _tensors(structure: Any) -> Iterator[str]:
    kind, inside = _parts(structure)
    if kind == "tensor":
        yield inside
    elif kind != "plain":
        for one in inside:
            yield from _tensors(one[1] if kind == "dict" else one)


def sharing(leaves: Iterable[Leaf]) -> Set[str]:
    """Names of tensors that have bytes of memory in common with another one."""
    shared: Set[str] = set()
    before: Dict[int, Leaf] = {}
    for one in sorted((one for one in leaves if one.nbytes), key=lambda one: one.address):
        last = before.get(one.device)
        if last is not None and one.address < last.address + last.nbytes:
            shared.update((last.name, one.name))
        if last is None or last.address + last.nbytes < one.address + one.nbytes:
            before[one.device] = one
    return shared


def refilled(have: Any, structure: Any, tensors: Dict[str, Any]) -> Any:
    """A state that takes the values of a structure; its tensors are there already, in their places.

    Dictionaries and lists stay the same objects. What else holds values is made anew.
    """
    kind, inside = _parts(structure)
    if kind == "dict" and isinstance(have, dict):
        for key, one in inside:
            have[key] = refilled(have.get(key), one, tensors)
        return have
    if kind == "tensor" and is_tensor(have):
        return have
    if kind in _LISTS and isinstance(have, (list, tuple)):
        both = zip_longest(have[: len(inside)], inside)
        made = [refilled(was, one, tensors) for was, one in both]
        if kind == "list" and isinstance(have, list):
            have[:] = made
            return have
        return tuple(made) if kind == "tuple" else made
    return rebuilt(structure, tensors)
