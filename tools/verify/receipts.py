"""Receipts: docs/journal-format.md, *Receipts*. Their MAC needs the world's secrets and is not checked here."""

import hashlib

import cbor
from records import Error, is_cost, is_hash, is_uint
from report import brief

STATUSES = ("ok", "error", "timeout", "denied", "rejected", "cancelled")
OUTCOMES = ("permanent_failure", "retryable_failure", "compensatable_failure", "input_required", "accepted")


def _is_text(x):
    return isinstance(x, str)


def _is_int(x):
    return type(x) is int and -1 << 63 <= x < 1 << 63


def _is_change(x):
    """What is not known of a changed resource is left out, but for its name."""
    if not isinstance(x, dict) or not _is_text(x.get("resource")):
        return False
    known = {"resource": _is_text, "version": _is_name, "etag": _is_name, "external_ref": _is_name,
             "content_hash": _is_known_hash}
    return all(name in known and known[name](value) for name, value in x.items())


def _is_name(x):
    return isinstance(x, str) and x != ""


def _is_known_hash(x):
    return is_hash(x) and any(x)


_NEEDED = {
    "version": is_uint, "world": _is_text, "key": is_hash, "kind": _is_text, "params_hash": is_hash, "cap": _is_text,
    "attempt": is_uint, "nonce": lambda x: isinstance(x, bytes) and len(x) == 16,
    "status": lambda x: x in STATUSES, "payload": lambda x: True, "cost": is_cost,
    "started_at": _is_int, "finished_at": _is_int, "key_id": _is_text,
}
_OPTIONAL = {
    "outcome": lambda x: x in OUTCOMES, "exact": lambda x: x is True, "unsent": lambda x: x is True, "external_ref": _is_name,
    "state_change": _is_change, "hash": _is_known_hash, "mac": _is_known_hash,
}


def check(receipt):
    """Refuse what is no receipt. Hash and mac are left out where they are zeros."""
    for name, fits in _NEEDED.items():
        if name not in receipt or not fits(receipt[name]):
            raise Error("its receipt: %s is missing, or is not one" % name)
    for name, value in receipt.items():
        if name not in _NEEDED and not (name in _OPTIONAL and _OPTIONAL[name](value)):
            raise Error("its receipt: %s is not one" % brief(name))
    if receipt["version"] != 1:
        raise Error("its receipt has version %d, which is unknown" % receipt["version"])
    if receipt["status"] == "ok" and receipt.get("outcome", OUTCOMES[0]) != OUTCOMES[0]:
        raise Error("its receipt: the outcome is not one of its status")


def hash_of(receipt):
    """What its hash has to be."""
    rest = {k: v for k, v in receipt.items() if k not in ("hash", "mac")}
    return hashlib.sha256(cbor.encode(rest)).digest()


def outcome(receipt):
    """What came of the attempt."""
    if receipt["status"] == "ok":
        return "side_effect_committed"
    return receipt.get("outcome", "permanent_failure")
