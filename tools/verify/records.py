"""Records, and the shape of each kind's payload: docs/journal-format.md, *Records* and *Kinds*."""

import cbor

MAX_INLINE = 4096  # bytes of a payload that is part of its record


class Error(ValueError):
    """A record or its payload is not what journal-format.md says."""


class Gone:
    """Stands for a payload that nobody has any more, or that was not shown."""


class Record:
    """A record. payload is what the array holds after the version, by name; Gone where its bytes are gone."""

    __slots__ = ("id", "time", "kind", "caused_by", "inline", "blob", "blob_bytes", "payload")

    def __init__(self, raw, limits=None):
        try:
            fields = cbor.decode(raw, limits)
        except cbor.Error as e:
            raise Error(str(e)) from None
        if not isinstance(fields, list) or len(fields) != 5:
            raise Error("a record is an array of 5")
        self.id, self.time, self.kind, self.caused_by, payload = fields
        if not (is_uint(self.id) and is_uint(self.time) and is_uint(self.caused_by)):
            raise Error("id, time or cause of a record is no number")
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise Error("its kind is unknown")
        self.inline = self.blob = self.payload = None
        self.blob_bytes = 0
        if isinstance(payload, bytes):
            self._set_inline(payload, limits)
        else:
            self._set_blob(payload)

    def _set_inline(self, payload, limits):
        if len(payload) > MAX_INLINE:
            raise Error("a payload of more than %d bytes is part of its record" % MAX_INLINE)
        try:
            self.inline = cbor.decode(payload, limits)
        except cbor.Error as e:
            raise Error("its payload: %s" % e) from None

    def _set_blob(self, payload):
        if not is_hash_and_size(payload):
            raise Error("its payload is neither bytes nor the hash and length of a blob")
        self.blob, self.blob_bytes = payload

    def open(self, value):
        """Take the value of the payload."""
        self.payload = body(self.kind, value)


def is_uint(value):
    """Whether a value is an integer of 0 to 2^64 - 1."""
    return type(value) is int and 0 <= value < 1 << 64


def is_hash_and_size(value):
    """Whether a payload names a blob: its hash is not zero, and it is too long to be part of the record."""
    return (isinstance(value, list) and len(value) == 2 and is_hash(value[0]) and any(value[0])
            and is_uint(value[1]) and value[1] > MAX_INLINE)


def is_hash(value):
    """Whether a value is 32 bytes."""
    return isinstance(value, bytes) and len(value) == 32


def body(kind, value):
    """The payload of a kind by names, checked."""
    if not isinstance(value, list) or not value or not is_uint(value[0]):
        raise Error("its payload is no array that begins with a version")
    fields = KINDS[kind]
    if value[0] != 1:
        raise Error("its payload has version %d, which is unknown" % value[0])
    if len(value) != len(fields) + 1:
        raise Error("its payload has %d items, %s has %d" % (len(value), kind, len(fields) + 1))
    out = {}
    for (name, check), x in zip(fields, value[1:]):
        if not check(x):
            raise Error("its payload: %s is not what %s has there" % (name, kind))
        out[name] = x
    return out


def _is_text(x):
    return isinstance(x, str)


def _is_bool(x):
    return isinstance(x, bool)


def _is_any(_):
    return True


def _is_nonce(x):
    return isinstance(x, bytes) and len(x) == 16


def _one_of(*values):
    return lambda x: isinstance(x, str) and x in values


def _list_of(check):
    return lambda x: isinstance(x, list) and all(check(y) for y in x)


def _tuple_of(*checks):
    return lambda x: isinstance(x, list) and len(x) == len(checks) and all(c(y) for c, y in zip(checks, x))


def _is_signature(x):
    return _tuple_of(is_hash, lambda s: isinstance(s, bytes) and len(s) == 64)(x)


def is_cost(x):
    return isinstance(x, dict) and all(k in ("calls", "tokens", "bytes", "micros") and is_uint(v) and v > 0 for k, v in x.items())


def _is_map(x):
    return isinstance(x, dict)


_TYPES = {
    "text": _is_text, "uint": is_uint, "bool": _is_bool, "hash": is_hash, "nonce": _is_nonce, "any": _is_any,
    "cost": is_cost, "texts": _list_of(_is_text), "uints": _list_of(is_uint), "receipt": _is_map, "report": _is_map,
    "seen": _tuple_of(is_hash, is_hash, is_hash),
    "engines": lambda x: _list_of(_tuple_of(_is_text, _is_text))(x) and x == [[k, v] for k, v in sorted(dict(x).items())],
    "submit_key?": lambda x: x is None or _tuple_of(_is_text, is_hash, is_uint)(x) and x[0] != "", "uint?": lambda x: x is None or is_uint(x),
    "signature": _is_signature, "signature?": lambda x: x is None or _is_signature(x),
    "effects": _list_of(_tuple_of(is_hash, _is_text, _is_text, _is_text,
                                  _one_of("committed", "failed", "denied", "open", "in_flight", "in_doubt", "awaiting_approval",
                                          "awaiting_answer", "awaiting_confirmation"), is_uint,
                                  _one_of("kept", "compensate", "acknowledged", "cancelled", "made_up_for"))),
}

_INTENT = "key:hash step:text cell:text effect:text tag:text cap:text occurrence:uint "

_SHAPES = {
    "world.created": "world:text name:text seed:uint manifest:hash kernel:text engines:engines",
    "clock.advanced": "to:uint still:bool",
    "event.submitted": "name:text due:uint direct:bool cells:texts key:submit_key? data:any",
    "effect.submitted": "actor:text n:uint effect:text cap:text reason:text params:any",
    "invocation.finished": "receipt:receipt",
    "invocation.late": "receipt:receipt",
    "invocation.expired": "key:hash attempt:uint reason:text",
    "invocation.due": "key:hash attempt:uint",
    "intent.resolved": "key:hash decision:approve|deny|executed|not_executed|retry|edit|reuse|answer|stop params_hash:hash actor:text "
                       "reason:text payload:any",
    "intent.confirmed": "key:hash mode:strict|warn|human|person verdict:happened|not_happened actor:text reason:text",
    "cell.resumed": "cell:text skip:bool actor:text reason:text",
    "keys.rotated": "key_id:text revoked:texts actor:text",
    "snapshot.created": "name:text at:uint chain_root:hash state_root:hash cells:uint label:text actor:text gone:texts",
    "snapshot.pinned": "name:text pinned:bool actor:text",
    "snapshot.pruned": "name:text actor:text",
    "snapshot.retention": "keep:uint actor:text gone:texts",
    "rollback.applied": "snapshot:text snapshot_hash:hash at:uint prior:uint reason:text actor:text ack:bool "
                        "compensate:bool fresh:bool effects:effects",
    "world.forked": "world:text parent:text at:uint chain_root:hash effects:hold|live|recorded live:texts manifest:hash "
                    "actor:text seed:uint?",
    "manifest.proposed": "base:hash candidate:hash actor:text signature:signature? reason:text",
    "manifest.shadowed": "proposal:uint report_hash:hash report:report actor:text",
    "manifest.approved": "proposal:uint world:text base:hash candidate:hash report_hash:hash signature:signature "
                         "actor:text reason:text",
    "manifest.rejected": "proposal:uint actor:text reason:text",
    "manifest.withdrawn": "proposal:uint actor:text reason:text",
    "manifest.applied": "proposal:uint manifest:hash base:hash actor:text kernel:text engines:engines",
    "blob.redacted": "blob:hash actor:text reason:text",
    "cell.stepped": "cell:text n:uint outcome:pure|success state:hash gas:uint",
    "cell.failed": "cell:text n:uint halted:bool error:text",
    "cell.deleted": "cell:text n:uint",
    "cell.migrated": "cell:text n:uint state:hash gas:uint",
    "event.emitted": "name:text cells:texts data:any",
    "event.dropped": "name:text reason:text",
    "intent.emitted": _INTENT + "decision:allow|approved|recorded|waits|rejected|reused rules:texts params:any",
    "intent.denied": _INTENT + "code:text reason:text rules:texts params:any",
    "intent.awaiting_approval": _INTENT + "rules:texts deadline:uint params:any reason:text seen:seen",
    "invocation.started": "key:hash attempt:uint owner:uint nonce:nonce",
    "intent.in_doubt": "key:hash cell:text attempt:uint action:ask|verify|retry|fail reason:text",
    "intent.waiting": "key:hash cell:text attempt:uint outcome:retryable_failure|compensatable_failure|"
                      "input_required|accepted",
    "intent.cancelled": "key:hash cell:text attempt:uint",
    "intent.ended": "key:hash cell:text step:text status:text outcome:text payload:any",
    "timer.set": "cell:text name:text deadline:uint tag:text data:any",
    "timer.fired": "cell:text name:text",
    "capability.rests": "key:hash cell:text attempt:uint cap:text said:cost charged:cost",
    "cell.cancelled": "cell:text tag:text timer:uint receipts:uints",
}


def _check_of(kind):
    return _TYPES[kind] if kind in _TYPES else _one_of(*kind.split("|"))


def _fields(shape):
    return [(name, _check_of(of)) for name, of in (field.split(":") for field in shape.split())]


KINDS = {kind: _fields(shape) for kind, shape in _SHAPES.items()}
