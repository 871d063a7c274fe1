"""Ed25519 verification (RFC 8032, section 5.1.7) as Go's crypto/ed25519 does it.

Where the RFC leaves room, programs differ; this one decides like the one that signs: the equation without the
cofactor, compared by the encoding of R, so R has one form only; S below L; a public key in any encoding of a
point, also one whose y is not below p.
"""

import functools
import hashlib

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)

# A point is (X, Y, Z, T) with x = X/Z, y = Y/Z, x*y = T/Z.
NEUTRAL = (0, 1, 1, 0)


@functools.lru_cache(maxsize=512)
def verify(public, message, signature):
    """Whether a signature is that of a public key over a message."""
    if len(public) != 32 or len(signature) != 64:
        return False
    a = _decompress(public)
    s = int.from_bytes(signature[32:], "little")
    if a is None or s >= L:
        return False
    k = hashlib.sha512(signature[:32] + public + message).digest()
    k = int.from_bytes(k, "little") % L
    return _compress(_double_scalar(s, k, _negate(a))) == signature[:32]


def sign(seed, message):
    """The signature of the key with a seed: for tests, as it is not constant in time."""
    digest = hashlib.sha512(seed).digest()
    a = int.from_bytes(digest[:32], "little") & (1 << 254) - 8 | 1 << 254
    r = int.from_bytes(hashlib.sha512(digest[32:] + message).digest(), "little") % L
    head = _compress(_double_scalar(r, 0, NEUTRAL))
    k = int.from_bytes(hashlib.sha512(head + public_key(seed) + message).digest(), "little") % L
    return head + ((r + k * a) % L).to_bytes(32, "little")


def public_key(seed):
    """The public key of a seed."""
    a = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little") & (1 << 254) - 8 | 1 << 254
    return _compress(_double_scalar(a % L, 0, NEUTRAL))


def _decompress(raw):
    """The point of an encoding, or None."""
    y = int.from_bytes(raw, "little")
    sign, y = y >> 255, (y & (1 << 255) - 1) % P
    u, v = (y * y - 1) % P, (D * y * y + 1) % P
    x = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    if v * x * x % P == -u % P:
        x = x * SQRT_M1 % P
    if v * x * x % P != u:
        return None
    if x & 1 != sign:
        x = -x % P
    return x, y, 1, x * y % P


def _compress(point):
    x, y, z, _ = point
    inverse = pow(z, P - 2, P)
    x, y = x * inverse % P, y * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _negate(point):
    x, y, z, t = point
    return -x % P, y, z, -t % P


def _add(p, q):
    """The complete addition of RFC 8032, section 5.1.4."""
    x1, y1, z1, t1 = p
    x2, y2, z2, t2 = q
    a = (y1 - x1) * (y2 - x2) % P
    b = (y1 + x1) * (y2 + x2) % P
    c = 2 * D * t1 * t2 % P
    d = 2 * z1 * z2 % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _double(p):
    x, y, z, _ = p
    a, b = x * x % P, y * y % P
    h = a + b
    e = h - (x + y) * (x + y) % P
    g = a - b
    f = 2 * z * z % P + g
    return e * f % P, g * h % P, f * g % P, e * h % P


def _multiples(p):
    """0 to 15 times a point."""
    out = [NEUTRAL, p]
    for _ in range(14):
        out.append(_add(out[-1], p))
    return out


@functools.lru_cache(maxsize=1)
def _base():
    """0 to 15 times the base point, whose y is 4/5 and whose x is even."""
    return _multiples(_decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little")))


def _double_scalar(s, k, p):
    """s times the base point and k times p, four bits of both at a time."""
    base, table, out = _base(), _multiples(p), NEUTRAL
    for shift in range(252, -1, -4):
        if out is not NEUTRAL:
            out = _double(_double(_double(_double(out))))
        i, j = s >> shift & 15, k >> shift & 15
        if i:
            out = _add(out, base[i])
        if j:
            out = _add(out, table[j])
    return out
