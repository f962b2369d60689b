"""Categories as codes: a keyed hash of a value's canonical text, so that no table of values grows.

FNV-1a over the bytes from a start that depends on the key, then the finaliser of
MurmurHash3; the upper 24 bits are the code, which a float32 holds exactly.
"""

CODE_BITS = 24

FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3
MIX_1, MIX_2 = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53
_64 = (1 << 64) - 1


def mixed(h: int) -> int:
    """Every bit of the result depends on every bit of `h`."""
    h = (h ^ (h >> 33)) * MIX_1 & _64
    h = (h ^ (h >> 33)) * MIX_2 & _64
    return h ^ (h >> 33)


def start_of_key(key: int) -> int:
    """Where the hash begins under a key."""
    return FNV_START ^ mixed(key & _64)


def code_of(text: bytes, start: int) -> int:
    """The code of a canonical text, 0 to 2**24 - 1; `start` is that of the key."""
    h = start
    for byte in text:
        h = (h ^ byte) * FNV_PRIME & _64
    return mixed(h) >> (64 - CODE_BITS)


def canonical_text(value: object) -> bytes | None:
    """What is hashed for a value: text itself, an integer in decimal, true or false; None for what is no category."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return b"%d" % value if isinstance(value, int) else None
