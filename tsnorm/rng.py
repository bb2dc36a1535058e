"""Counter-based random numbers: a value is a pure function of its seed and its place, never of a call order."""

from __future__ import annotations

import hashlib
from operator import index

import numpy as np
import numpy.typing as npt

UInt64Array = npt.NDArray[np.uint64]


def philox(*key: int) -> np.random.Generator:
    """Generator for one place, such as (seed, epoch, step).

    Parameters
    ----------
    key
        Integers; each distinct tuple gives an independent stream, the same on every machine. The tuple is
        hashed, as numpy's ``SeedSequence`` takes (1,), (1, 0) and (1, 0, 0) for the same.

    Examples
    --------
    >>> int(philox(1, 2).integers(1000)) == int(philox(1, 2).integers(1000))
    True
    """
    digest = hashlib.blake2b(",".join(str(index(part)) for part in key).encode(), digest_size=16).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "little")))


def text_key(text: str) -> int:
    """64-bit key of a text, the same in every process (``hash()`` is not)."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def uniform_at(seed: int, *counters: UInt64Array | int) -> npt.NDArray[np.float64]:
    """Uniform numbers in [0, 1) as a function of a seed and broadcast counters, vectorised.

    Parameters
    ----------
    seed
        Any integer; taken modulo 2**64.
    counters
        Integers or uint64 arrays that broadcast together: what the number belongs to.

    Returns
    -------
    numpy.ndarray
        float64, of the broadcast shape.

    Notes
    -----
    Each counter goes through the splitmix64 finaliser (Steele, Lea and Flood, OOPSLA 2014).
    """
    state = np.asarray(index(seed) % 2**64, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for counter in counters:
            values = np.asarray(counter % 2**64 if isinstance(counter, int) else counter, dtype=np.uint64)
            state = _mix(state + np.uint64(0x9E3779B97F4A7C15) + _mix(values))
    return np.asarray((state >> np.uint64(11)).astype(np.float64) * 2.0**-53)


def _mix(z: UInt64Array) -> UInt64Array:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))
