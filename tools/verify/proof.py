"""Proofs of one thing: docs/journal-format.md, *Proofs*."""

import hashlib
import json

import cbor
import checkpoint
import merkle
import receipts
from limits import WORK_OF_SIGNATURE, Beyond, Limits
from records import Error as RecordError
from records import Record, is_uint
from report import brief

SCHEMA = "worldkernel/proof/v1"
MAX_PARTS = 65536  # values in its JSON: honest ones have some hundreds
MAX_DIGITS = 20
MAX_SIGNERS = 256

_ALWAYS = {"schema", "world", "checkpoint", "signers"}
_OF_RECORD = {"record", "bytes", "inclusion"}
_OF_HEADS = {"older", "consistency"}


class NotProof(ValueError):
    """A file is no proof, whatever it would be worth."""


class Wrong(ValueError):
    """Why a proof shows nothing; part is where."""

    def __init__(self, part, message):
        super().__init__(message)
        self.part = part


def max_bytes(limits):
    """The greatest size of a proof: it has one item, in base64."""
    return 2 * limits.item


def verify(data, believed=(), limits=None):
    """What a proof shows to somebody who believes the owners of some keys. Where it is not ok it shows nothing."""
    limits = limits or Limits()
    limits.read(len(data))
    try:
        found = _check(_decode(data, limits), frozenset(believed), limits)
    except Beyond as e:
        raise NotProof(str(e)) from None
    except Wrong as e:
        return {"schema": "worldctl/proof/v1", "ok": False, "trusted": False, "signers": [],
                "faults": [{"place": e.part, "message": str(e)}]}
    return {"schema": "worldctl/proof/v1", "ok": True, **found}


def _decode(data, limits):
    """The object, with the keys of one of the three sorts."""
    if len(data) > max_bytes(limits):
        raise NotProof("more than %d bytes: --max-item allows more" % max_bytes(limits))
    if sum(data.count(x) for x in (b"[", b"{", b",", b":")) > MAX_PARTS:
        raise NotProof("more than %d values, and no proof has as many" % MAX_PARTS)
    try:
        proof = json.loads(data.decode("utf-8"), object_pairs_hook=_object, parse_float=_no_float,
                           parse_constant=_no_float, parse_int=_int)
    except (ValueError, RecursionError) as e:
        raise NotProof("no JSON of a proof: %s" % brief(str(e))) from None
    if not isinstance(proof, dict) or proof.get("schema") != SCHEMA:
        raise NotProof("its schema is not %s" % SCHEMA)
    keys = set(proof) - _ALWAYS
    whole = keys == _OF_HEADS or keys - {"payload", "cell"} == _OF_RECORD
    if not whole or not _ALWAYS <= set(proof):
        raise NotProof("a part of it is missing, or one too much")
    texts = all(isinstance(proof[k], str) for k in ("world", "checkpoint", "older", "bytes", "payload") if k in proof)
    lists = all(_is_list_of_text(proof[k]) for k in ("signers", "inclusion", "consistency") if k in proof)
    if not texts or not lists or not 1 <= len(proof["signers"]) <= MAX_SIGNERS or "record" in proof and not _is_id(proof["record"]):
        raise NotProof("a part of it has another form")
    return proof


def _object(pairs):
    out = {_text(key): _text(value) for key, value in pairs}
    if len(out) != len(pairs):
        raise ValueError("a key comes twice")
    return out


def _text(value):
    """A value whose text has U+FFFD for surrogates without the other half, which have no bytes."""
    if isinstance(value, list):
        return [_text(x) if isinstance(x, str) else x for x in value]
    if not isinstance(value, str):
        return value
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _int(text):
    """An integer, whose digits are counted before they are read."""
    if len(text) > MAX_DIGITS:
        raise ValueError("a number has more than %d digits" % MAX_DIGITS)
    return int(text)


def _no_float(text):
    raise ValueError("%s is no value of a proof" % brief(text))


def _is_list_of_text(x):
    return isinstance(x, list) and all(isinstance(y, str) for y in x)


def _is_id(x):
    return is_uint(x) and 1 <= x <= checkpoint.MAX_SIZE


def _bytes(proof, part):
    try:
        return checkpoint.unbase64(proof[part])
    except checkpoint.Error as e:
        raise NotProof("%s: %s" % (part, e)) from None


def _hashes(proof, part):
    out = []
    for text in proof[part]:
        try:
            out.append(checkpoint.unbase64(text))
        except checkpoint.Error as e:
            raise NotProof("%s: %s" % (part, e)) from None
        if len(out[-1]) != 32:
            raise NotProof("%s: a hash has not 32 bytes" % part)
    return out


def _check(proof, believed, limits):
    heads = {part: _head(proof, part) for part in ("checkpoint", "older") if part in proof}
    signed, trusted = _signers(proof, heads, believed, limits)
    shown = {"trusted": trusted, "signers": signed, "faults": [], "kind": "consistency", "world_id": proof["world"]}
    for part, head in heads.items():
        shown[part] = {"world": head.world, "size": head.size, "root": head.root.hex()}
    if "older" in heads:
        _check_consistency(heads, _hashes(proof, "consistency"))
    else:
        shown.update(_record(proof, heads["checkpoint"], limits))
    return shown


def _head(proof, part):
    try:
        head = checkpoint.Checkpoint(proof[part])
    except checkpoint.Error as e:
        raise Wrong(part, str(e)) from None
    if head.world != proof["world"]:
        raise Wrong(part, "it is of world %s, and the proof of %s" % (brief(head.world), brief(proof["world"])))
    return head


def _signers(proof, heads, believed, limits):
    """Who of those who are known has signed the head, and whether one who is believed has signed each."""
    try:
        keys = [checkpoint.parse_key(text) for text in proof["signers"]]
    except checkpoint.Error as e:
        raise NotProof("signers: %s" % e) from None
    named = [key for _, key in keys]
    if any(world != proof["world"] for world, _ in keys) or len(set(named)) != len(named):
        raise Wrong("signers", "they are of another world, or one comes twice")
    known = checkpoint.by_id(proof["world"], named + sorted(believed), believed)
    by = {}
    for part, head in heads.items():
        try:
            by[part] = head.signed_by(known, lambda: limits.spend(WORK_OF_SIGNATURE))
        except checkpoint.Error as e:
            raise Wrong(part, str(e)) from None
        if not by[part]:
            raise Wrong(part, "none of the keys that are known has signed it")
    if not set(named) <= {key for x in by.values() for key in x}:
        raise Wrong("signers", "one of them has signed nothing in it")
    trusted = all(believed.intersection(x) for x in by.values())
    return [checkpoint.format_key(proof["world"], key) for key in by["checkpoint"]], trusted


def _check_consistency(heads, path):
    old, new = heads["older"], heads["checkpoint"]
    try:
        first, second = merkle.roots_of_consistency(old.size, new.size, old.root, path)
    except merkle.Error as e:
        raise Wrong("consistency", str(e)) from None
    if (first, second) != (old.root, new.root):
        raise Wrong("consistency", "the two are not of one history")


def _record(proof, head, limits):
    """What a proof of a record shows."""
    stored = _bytes(proof, "bytes")
    try:
        record = Record(stored, limits)
        root = merkle.root_of_inclusion(proof["record"] - 1, head.size, merkle.leaf(stored),
                                        _hashes(proof, "inclusion"))
    except RecordError as e:
        raise Wrong("bytes", str(e)) from None
    except merkle.Error as e:
        raise Wrong("inclusion", str(e)) from None
    if record.id != proof["record"]:
        raise Wrong("bytes", "they are record #%d" % record.id)
    if root != head.root:
        raise Wrong("inclusion", "the record is not in the history that was signed")
    _open(proof, record, limits)
    shown = {"kind": "record", "record": {"id": record.id, "time": record.time, "kind": record.kind,
                                          "caused_by": record.caused_by}}
    if record.payload is not None and record.kind in ("invocation.finished", "invocation.late"):
        shown["kind"] = "receipt"
        _check_receipt(record.payload["receipt"])
    if "cell" in proof:
        shown["kind"] = "cell"
        shown["cell"] = _cell(proof["cell"], record, limits)
    return shown


def _open(proof, record, limits):
    """Find the record's payload, where it is shown."""
    value = record.inline
    if record.blob is not None:
        if "payload" not in proof:
            return
        content = _bytes(proof, "payload")
        if hashlib.sha256(content).digest() != record.blob or len(content) != record.blob_bytes:
            raise Wrong("payload", "it is not the one of the record")
        try:
            value = cbor.decode(content, limits)
        except cbor.Error as e:
            raise Wrong("payload", str(e)) from None
    elif "payload" in proof:
        raise Wrong("payload", "it is part of the record")
    try:
        record.open(value)
    except RecordError as e:
        raise Wrong("payload" if record.blob else "bytes", str(e)) from None


def _check_receipt(receipt):
    try:
        receipts.check(receipt)
    except RecordError as e:
        raise Wrong("bytes", str(e)) from None
    if receipts.hash_of(receipt) != receipt.get("hash"):
        raise Wrong("bytes", "the receipt has another hash")


# Cells.

_LEAF = ("n", "history", "state_hash", "reducer_hash", "halted")


def _cell(cell, record, limits):
    """What a cell was at the snapshot that a record is of."""
    if record.kind != "snapshot.created" or record.payload is None:
        raise Wrong("cell", "the record is no snapshot")
    if not isinstance(cell, dict) or not isinstance(cell.get("name"), str) or not isinstance(cell.get("present"), bool):
        raise NotProof("cell: it has another form")
    known = {"name", "present", "proof"} | ({"leaf", "state"} if cell["present"] else set())
    if not set(cell) <= known or not isinstance(cell.get("proof"), str):
        raise NotProof("cell: a part of it is missing, or one too much")
    key = hashlib.sha256(cell["name"].encode()).digest()
    found = _state_value(_bytes(cell, "proof"), record.payload["state_root"], key, limits)
    shown = {"name": cell["name"], "present": cell["present"], "snapshot": record.payload["name"],
             "at": record.payload["at"]}
    if not cell["present"]:
        if found is not None:
            raise Wrong("cell", "the cell was there")
        return shown
    if found != hashlib.sha256(cbor.encode(_leaf(cell, limits))).digest():
        raise Wrong("cell", "the cell was another, or was not there")
    shown["leaf"] = cell["leaf"]
    return shown


def _leaf(cell, limits):
    """The value of a cell in the tree, in the form that is hashed."""
    leaf = cell.get("leaf")
    if not isinstance(leaf, dict) or set(leaf) != set(_LEAF) or not is_uint(leaf["n"]) \
            or not isinstance(leaf["halted"], bool):
        raise NotProof("cell: its leaf has another form")
    hashes = [_unhex(leaf[name]) for name in _LEAF[1:4]]
    state = _bytes(cell, "state") if "state" in cell else None
    expected = bytes(32) if state is None else hashlib.sha256(state).digest()
    if hashes[1] != expected:
        raise Wrong("cell", "its state is not the one of its leaf")
    if state is not None:
        try:
            cbor.decode(state, limits)
        except cbor.Error as e:
            raise Wrong("cell", "its state: %s" % e) from None
    return [leaf["n"], *hashes, leaf["halted"]]


def _unhex(text):
    if not isinstance(text, str) or len(text) != 64 or text != text.lower():
        raise NotProof("cell: a hash is not 64 digits")
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise NotProof("cell: a hash is not 64 digits") from None


def _state_value(data, state_root, key, limits):
    """The value that a key has in the tree of cells below a state root, None where it has none."""
    try:
        cells, mailboxes, timers, tree = cbor.decode(data, limits)
        version, siblings, leaf = tree
        hashes = [cells, mailboxes, timers, *siblings, *(leaf or [])]
    except (cbor.Error, TypeError, ValueError):
        raise Wrong("cell", "its proof has another form") from None
    if not is_uint(version) or version != 1 or len(siblings) > 256 or any(not isinstance(h, bytes) or len(h) != 32 for h in hashes) \
            or leaf is not None and len(leaf) != 2:
        raise Wrong("cell", "its proof has another form")
    if hashlib.sha256(cells + mailboxes + timers).digest() != state_root:
        raise Wrong("cell", "its proof is not of the state root of the snapshot")
    if _tree_root(key, siblings, leaf) != cells:
        raise Wrong("cell", "its proof does not lead to the root of the cells")
    return leaf[1] if leaf and leaf[0] == key else None


def _tree_root(key, siblings, leaf):
    """The root of the sparse tree in which a leaf, or none, is at the end of the way of a key."""
    bits = int.from_bytes(key, "big")
    at = bytes(32)
    if leaf:
        if (int.from_bytes(leaf[0], "big") ^ bits) >> (256 - len(siblings)):
            raise Wrong("cell", "the leaf of its proof is not on the way of its key")
        at = hashlib.sha256(b"\0" + leaf[0] + leaf[1]).digest()
    for depth in range(len(siblings) - 1, -1, -1):
        pair = (siblings[depth], at) if bits >> (255 - depth) & 1 else (at, siblings[depth])
        at = hashlib.sha256(b"\1" + pair[0] + pair[1]).digest()
    return at
