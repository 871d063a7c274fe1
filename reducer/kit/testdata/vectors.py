"""Makes vectors.json: draws of package reducer/kit and of @random/v1, by a second implementation.

It is written from the specifications: of the generator C2SP's chacha8rand and the comment of
reducer.Rand, of streams SplitMix64, of floats the comment of the package. Python computes each
operation on floats by itself, with one rounding. Quantiles and logarithms are held besides
against those of Python's library, which are computed otherwise.

    python3 vectors.py > vectors.json
"""

import hashlib
import json
import math
import statistics
import struct

WORD32, WORD64 = (1 << 32) - 1, (1 << 64) - 1


def quarter(b, *at):
    a, c, d, e = (b[i] for i in at)

    def half(a, c, d, e, n, m):
        a = (a + c) & WORD32
        e ^= a
        e = (e << n | e >> 32 - n) & WORD32
        d = (d + e) & WORD32
        c ^= d
        c = (c << m | c >> 32 - m) & WORD32
        return a, c, d, e

    a, c, d, e = half(*half(a, c, d, e, 16, 12), 8, 7)
    for i, v in zip(at, (a, c, d, e)):
        b[i] = v


def block(key, counter):
    """Eight rounds of ChaCha; only the key is added at the end."""
    b = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *key, counter, 0, 0, 0]
    for _ in range(4):
        for i in range(4):
            quarter(b, i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(b, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    for i in range(8):
        b[4 + i] = (b[4 + i] + key[i]) & WORD32
    return b


def chacha8(seed):
    """The numbers of 64 bits of a seed of 32 bytes."""
    key = struct.unpack("<8I", seed)
    while True:
        words = []
        for group in range(4):  # four blocks side by side
            four = [block(key, 4 * group + i) for i in range(4)]
            words += [four[i][row] for row in range(16) for i in range(4)]
        out = struct.unpack("<128Q", struct.pack("<256I", *words))
        yield from out[:124]
        key = words[-8:]


def step(world, cell, n):
    data = b"worldkernel/rand/v1" + struct.pack(">QQ", world, n) + cell.encode()
    return chacha8(hashlib.sha256(data).digest())


def splitmix(seed):
    state = seed & WORD64
    while True:
        state = (state + 0x9E3779B97F4A7C15) & WORD64
        z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & WORD64
        z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD64
        yield z ^ z >> 31


class Source:
    def __init__(self, words):
        self.words = words

    def below(self, n):
        mask = (1 << (n - 1).bit_length()) - 1
        while True:
            v = next(self.words) & mask
            if v < n:
                return v

    def unit(self):
        return (2 * self.below(1 << 52) + 1) / (1 << 53)

    def geometric(self, p):
        return math.floor(-ln(1.0 - self.unit()) / -ln(1.0 - p))

    def mixed(self, items, n):
        items = list(items)
        for i in range(n):
            j = i + self.below(len(items) - i)
            items[i], items[j] = items[j], items[i]
        return items

    def weighted(self, weights, at):
        for i, w in enumerate(weights):
            if at < w:
                return i
            at -= w


def polynomial(x, factors):
    out = 0.0
    for c in factors:
        out = out * x + c
    return out


def ln(x):
    n = 0
    while x < 0.7071067811865476:
        x, n = x * 2, n + 1
    t = (x - 1) / (x + 1)
    out = 2 * t * polynomial(t * t, [1 / k for k in range(23, 0, -2)]) - n * 0.6931471805599453
    assert abs(out - math.log(x * 2.0**-n)) <= 4e-16 * max(abs(out), 2.0**-53), x
    return out


# AS 241, a table of factors a line: above and below, in the middle, in the tail and far out.
FACTORS = [[float(c) for c in line.split()] for line in """
2.5090809287301226727e3 3.3430575583588128105e4 6.7265770927008700853e4 4.5921953931549871457e4 1.3731693765509461125e4 1.9715909503065514427e3 1.3314166789178437745e2 3.3871328727963666080
5.2264952788528545610e3 2.8729085735721942674e4 3.9307895800092710610e4 2.1213794301586595867e4 5.3941960214247511077e3 6.8718700749205790830e2 4.2313330701600911252e1 1
7.74545014278341407640e-4 2.27238449892691845833e-2 2.41780725177450611770e-1 1.27045825245236838258 3.64784832476320460504 5.76949722146069140550 4.63033784615654529590 1.42343711074968357734
1.05075007164441684324e-9 5.47593808499534494600e-4 1.51986665636164571966e-2 1.48103976427480074590e-1 6.89767334985100004550e-1 1.67638483018380384940 2.05319162663775882187 1
2.01033439929228813265e-7 2.71155556874348757815e-5 1.24266094738807843860e-3 2.65321895265761230930e-2 2.96560571828504891230e-1 1.78482653991729133580 5.46378491116411436990 6.65790464350110377720
2.04426310338993978564e-15 1.42151175831644588870e-7 1.84631831751005468180e-5 7.86869131145613259100e-4 1.48753612908506148525e-2 1.36929880922735805310e-1 5.99832206555887937690e-1 1
""".strip().splitlines()]


def quantile(u):
    def ratio(x, at):
        return polynomial(x, FACTORS[at]) / polynomial(x, FACTORS[at + 1])

    q = u - 0.5
    if abs(q) <= 0.425:
        out = q * ratio(0.180625 - q * q, 0)
    else:
        r = math.sqrt(-ln(min(u, 1 - u)))
        out = math.copysign(ratio(r - 1.6, 2) if r <= 5 else ratio(r - 5, 4), q)
    assert abs(out - statistics.NormalDist().inv_cdf(u)) <= 1e-14 * max(abs(out), 1), u
    return out


def small_world(s, n, k, p):
    edges = [[i, (i + d) % n] for d in range(1, k // 2 + 1) for i in range(n)]
    linked = {frozenset(e) for e in edges}
    for e in edges:
        i, j = e
        if s.unit() >= p:
            continue
        if sum(i in f for f in linked) == n - 1:
            continue
        while True:
            new = s.below(n)
            if new != i and frozenset((i, new)) not in linked:
                break
        linked.remove(frozenset((i, j)))
        linked.add(frozenset((i, new)))
        e[1] = new
    return sorted(sorted(f) for f in linked)


def random_graph(s, n, p):
    pairs = [[i, j] for j in range(n) for i in range(j)]
    out, at = [], s.geometric(p)
    while at < len(pairs):
        out.append(pairs[at])
        at += 1 + s.geometric(p)
    return sorted(out)


def scale_free(s, n, m):
    edges = [[i, j] for j in range(m + 1) for i in range(j)]
    ends = [i for e in edges for i in e]
    for new in range(m + 1, n):
        chosen = []
        while len(chosen) < m:
            other = ends[s.below(len(ends))]
            if other not in chosen:
                chosen.append(other)
        for other in chosen:
            edges.append([other, new])
            ends += [other, new]
    return sorted(edges)


WEIGHTS, SHARES = [1, 0, 5, 94], [0.5, 0.0, 0.125, 2.75]


def draws(s):
    """In the order in which the tests draw."""
    return {
        "units": [s.unit() for _ in range(8)],
        "uniforms": [-3.0 + (7.5 - -3.0) * s.unit() for _ in range(8)],
        "integers": [-7 + s.below(21) for _ in range(8)],
        "chances": [s.unit() < 0.3 for _ in range(16)],
        "normals": [10.0 + 2.5 * quantile(s.unit()) for _ in range(500)],
        "exponentials": [4.0 * -ln(1.0 - s.unit()) for _ in range(500)],
        "geometrics": [s.geometric(0.05) for _ in range(16)],
        "choices": ["abcde"[s.below(5)] for _ in range(8)],
        "weighted": [s.weighted(WEIGHTS, s.below(100)) for _ in range(16)],
        "weighted_floats": [s.weighted(SHARES, s.unit() * 3.375) for _ in range(16)],
        "shuffle": s.mixed(range(20), 19),
        "sample": s.mixed(range(20), 5)[:5],
        "small_world": small_world(s, 20, 4, 0.3),
        "random_graph": random_graph(s, 15, 0.3),
        "scale_free": scale_free(s, 20, 2),
    }


PLACES = [0, 1, 2**20, 2**40, 2**49, 2**50, 2**51 - 1, 2**51, 3 * 2**50, 2**52 - 2**12, 2**52 - 1]

assert Source(step(42, "agent/ann", 3)).below(1000) == 279  # as reducer's vectors


def shown(x, indent=""):
    """A line a list."""
    if not isinstance(x, dict):
        return json.dumps(x)
    lines = [f"{indent} {json.dumps(k)}: {shown(v, indent + ' ')}" for k, v in x.items()]
    return "{\n" + ",\n".join(lines) + "\n" + indent + "}"


print(shown({
    "ctx": draws(Source(step(42, "agent/ann", 3))),
    "stream": draws(Source(splitmix(-7))),
    "places": PLACES,
    "quantiles": [quantile((2 * k + 1) / 2**53) for k in PLACES],
    "exponentials": [-ln(1.0 - (2 * k + 1) / 2**53) for k in PLACES],
}))
