"""Computes the vectors of vectors_test.go a second time, with nothing but the
standard library and the texts of the package comments:

    python3 receipt/testdata/vectors.py
"""
import hashlib
import hmac
import struct


def head(major, n):
    major <<= 5
    if n < 24:
        return bytes([major | n])
    for info, fmt in ((24, ">B"), (25, ">H"), (26, ">I"), (27, ">Q")):
        if n < 1 << (8 * struct.calcsize(fmt)):
            return bytes([major | info]) + struct.pack(fmt, n)


def cbor(v):
    if v is None:
        return b"\xf6"
    if v is True or v is False:
        return b"\xf5" if v else b"\xf4"
    if isinstance(v, int):
        return head(0, v) if v >= 0 else head(1, -1 - v)
    if isinstance(v, bytes):
        return head(2, len(v)) + v
    if isinstance(v, str):
        return head(3, len(v.encode())) + v.encode()
    if isinstance(v, list):
        return head(4, len(v)) + b"".join(cbor(x) for x in v)
    pairs = sorted((cbor(k), cbor(x)) for k, x in v.items())
    return head(5, len(pairs)) + b"".join(k + x for k, x in pairs)


def sha(b):
    return hashlib.sha256(b).digest()


def hkdf(secret, salt, info, length=32):  # RFC 5869
    prk = hmac.new(salt, secret, hashlib.sha256).digest()
    return hmac.new(prk, info + b"\x01", hashlib.sha256).digest()[:length]


world = "town"
kind = "tool.refund"
params = cbor({"amount": 500, "order": "A-7", "note": "späte Lieferung", "lines": [1, -2, None, True]})
history = sha(b"" + cbor(["ticket.opened", "c42", {"n": 1}]))
step = "agent/c42@3.1~" + history[:8].hex()
key = sha(world.encode() + b"\0" + step.encode() + b"\0" + kind.encode() + b"\0" + params)
nonce = sha(sha(b"root") + key + struct.pack(">Q", 2))[:16]
secret = bytes(range(32))
signing = hkdf(secret, world.encode(), b"worldkernel/receipt-key/v1/7")
key_id = "7-" + sha(signing)[:8].hex()
receipt = {
    "version": 1, "world": world, "key": key, "kind": kind, "params_hash": sha(params), "cap": "tools",
    "attempt": 2, "nonce": nonce, "status": "ok", "payload": {"id": "r1", "done": True}, "cost": {"calls": 1, "micros": 250000},
    "started_at": -1, "finished_at": 1767225600000000000, "key_id": key_id,
}
digest = sha(cbor(receipt))
mac = hmac.new(signing, b"worldkernel/receipt/v1" + digest, hashlib.sha256).digest()
signed = cbor({**receipt, "hash": digest, "mac": mac})

print("params  ", params.hex())
print("history ", history.hex())
print("step    ", step)
print("key     ", key.hex())
print("external", "worldkernel:" + world + ":" + key.hex())
print("nonce   ", nonce.hex())
print("key id  ", key_id)
print("hash    ", digest.hex())
print("mac     ", mac.hex())
print("receipt ", signed.hex())
