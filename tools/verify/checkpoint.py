"""Signed checkpoints: docs/bundle-format.md, *Checkpoints*."""

import base64
import binascii
import hashlib

import ed25519

MAX_BYTES = 16384
MAX_SIGNATURES = 100
MAX_SIZE = 1 << 48
_DASH = "\u2014 "


class Error(ValueError):
    """A text is no checkpoint, or no key, or is not signed by those who should have."""


def unbase64(text):
    """The bytes of standard base64 in its only form."""
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise Error("not base64") from None
    if base64.b64encode(raw).decode() != text:
        raise Error("not the only form of base64")
    return raw


def name_of(world):
    """The first line of a world's checkpoints, and the name that they are signed with."""
    return "worldkernel/" + world


def key_id(name, key):
    """What a signature names its key by."""
    return hashlib.sha256(name.encode() + b"\n\1" + key).digest()[:4]


def by_id(world, keys, believed):
    """Keys by the ids that they have in the checkpoints of a world: a place in an order of them, and the key.

    Of two keys with one id the believed one is meant, as whoever made the bundle can choose its keys.
    """
    name, out = name_of(world), {}
    for key in sorted(keys, key=lambda k: k not in believed):
        out.setdefault(key_id(name, key), (len(out), key))
    return out


def format_key(world, key):
    """A public key as text."""
    name = name_of(world)
    return "%s+%s+%s" % (name, key_id(name, key).hex(), base64.b64encode(b"\1" + key).decode())


def parse_key(text):
    """World and public key of a key as text."""
    parts = text.split("+", 2)
    if len(parts) != 3 or not parts[0].startswith("worldkernel/"):
        raise Error("a key is worldkernel/WORLD+HEX+BASE64")
    raw = unbase64(parts[2])
    if len(raw) != 33 or raw[0] != 1 or key_id(parts[0], raw[1:]).hex() != parts[1]:
        raise Error("not the public key of a signer")
    return parts[0][len("worldkernel/"):], raw[1:]


def parse_signer(text):
    """The public key in a text: as checkpoints have it, or as SSH does."""
    kind, _, rest = text.partition(" ")
    if kind != "ssh-ed25519":
        return parse_key(text)[1]
    raw = unbase64(rest.split()[0] if rest.strip() else "")
    if raw[:19] != b"\0\0\0\x0bssh-ed25519\0\0\0\x20" or len(raw) != 51:
        raise Error("not the SSH public key of an Ed25519 key")
    return raw[19:]


class Checkpoint:
    """A checkpoint, with the first signature of each name and key id."""

    def __init__(self, data):
        self.text, signatures = _split(data)
        lines = self.text.split("\n")
        if len(lines) != 4 or not lines[0].startswith("worldkernel/"):
            raise Error("the text of a checkpoint has three lines: origin, size, root")
        self.world = lines[0][len("worldkernel/"):]
        if not _is_name(lines[0]) or not self.world:
            raise Error("its origin names no world")
        self.size = _size(lines[1])
        self.root = unbase64(lines[2])
        if len(self.root) != 32:
            raise Error("its root has no 32 bytes")
        self._signatures = _signatures(signatures)

    def signed_by(self, known, spend):
        """Which of known keys, by id as by_id gives them, have signed it. A signature of one that does not verify is an Error.

        They are in the order of known. spend is called before each is verified.
        """
        out, name = [], name_of(self.world)
        hints = [hint for of, hint in self._signatures if of == name and hint in known]
        for hint in sorted(hints, key=lambda hint: known[hint][0]):
            key, signature = known[hint][1], self._signatures[name, hint]
            spend()
            if not ed25519.verify(key, self.text.encode(), signature):
                raise Error("the signature of %s is bad" % format_key(self.world, key))
            out.append(key)
        return out


def _split(text):
    """The signed text and the lines of signatures, of a checkpoint as text."""
    if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
        raise Error("longer than %d bytes" % MAX_BYTES)
    if any(c < " " and c != "\n" for c in text):
        raise Error("it holds a control character")
    body, gap, signatures = text.rpartition("\n\n")
    if not gap or not signatures.endswith("\n"):
        raise Error("it has no signatures after an empty line")
    return body + "\n", signatures[:-1].split("\n")


def _size(text):
    if not text.isascii() or not text.isdigit() or text[0] == "0" or len(text) > 15 or int(text) > MAX_SIZE:
        raise Error("its size is no number of records")
    return int(text)


def _is_name(name):
    return name != "" and "+" not in name and not any(c.isspace() for c in name)


def _signatures(lines):
    if len(lines) > MAX_SIGNATURES:
        raise Error("more than %d signatures" % MAX_SIGNATURES)
    out = {}
    for line in lines:
        name, gap, encoded = line[len(_DASH):].partition(" ")
        raw = unbase64(encoded)
        if not line.startswith(_DASH) or not gap or not _is_name(name) or len(raw) < 5:
            raise Error("a line is no signature")
        out.setdefault((name, raw[:4]), raw[4:])
    return out
