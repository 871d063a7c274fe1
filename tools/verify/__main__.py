"""python3 tools/verify BUNDLE: the second verifier. See README.md."""

import argparse
import json
import os
import sys

import checkpoint
import items
import journal
import packing
import proof
from limits import Limits

OK, NOT, USAGE = 0, 3, 2
NEITHER = (packing.Error, items.NotBundle, proof.NotProof)


def main(argv=None):
    """Verify what the arguments name, and return the exit code."""
    options = _parser().parse_args(argv)
    try:
        believed = [key for text in options.trust for key in _keys(text)]
        kept = [_kept(name) for name in options.checkpoint]
    except (OSError, UnicodeError, checkpoint.Error) as e:
        _say("error: --trust or --checkpoint: %s" % e, sys.stderr)
        return USAGE
    if options.batch:
        return _batch(options.batch, believed, options)
    try:
        with open(options.file, "rb") as file:
            report = verdict(file, believed, kept, _limits(options))
    except OSError as e:
        _say("error: %s" % e, sys.stderr)
        return USAGE
    except NEITHER as e:
        _say("error: %s: neither a bundle nor a proof: %s" % (options.file, e), sys.stderr)
        return NOT
    _show(report, options.output)
    return OK if report["ok"] and (report["trusted"] or not believed) else NOT


def verdict(file, believed, kept, limits):
    """The report on the bundle, or the proof, in a file."""
    if file.read(1) == b"{":
        file.seek(0)
        return proof.verify(file.read(proof.max_bytes(limits) + 1), believed, limits)
    file.seek(0)
    return journal.verify(file, believed, kept, limits)


def _parser():
    parser = argparse.ArgumentParser(prog="tools/verify", description="Verify a bundle, all but its replay.")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", metavar="FILE", help="a bundle or a proof")
    what.add_argument("--batch", metavar="DIR", help="verify every file in DIR, a line of JSON each")
    parser.add_argument("--trust", action="append", default=[], metavar="KEY", help="believe the owner of KEY")
    parser.add_argument("--checkpoint", action="append", default=[], metavar="FILE",
                        help="a checkpoint that was kept, and must be of this history")
    allowed = parser.add_argument_group("what a file may cost")
    allowed.add_argument("--max-unpacked", type=int, default=256, metavar="MIB", help="that it unpacks to, beside 200 times its size")
    allowed.add_argument("--max-item", type=int, default=16, metavar="MIB", help="of an item in it; a proof may have twice that")
    allowed.add_argument("--max-values", type=int, default=1 << 20, metavar="N", help="in an item")
    allowed.add_argument("--max-memory", type=int, default=192, metavar="MIB", help="for what is kept while it is read")
    allowed.add_argument("--max-work", type=int, default=4, metavar="MILLIONS", help="of units of work, beside what its bytes bring")
    parser.add_argument("-o", dest="output", choices=("text", "json"), default="text")
    return parser


def _limits(options):
    return Limits(options.max_unpacked << 20, options.max_item << 20, options.max_values, options.max_memory << 20,
                  options.max_work * 1000000)


def _keys(text):
    """The key that a text is, or the keys in the file that it names, one a line."""
    if not os.path.exists(text):
        return [checkpoint.parse_signer(text)]
    with open(text, encoding="utf-8") as file:
        lines = [line.strip() for line in file]
    return [checkpoint.parse_signer(line) for line in lines if line and not line.startswith("#")]


def _kept(name):
    with open(name, encoding="utf-8", newline="") as file:
        return checkpoint.Checkpoint(file.read(checkpoint.MAX_BYTES + 1))


def _batch(directory, believed, options):
    """Print a line for every file, and return whether all of them are good."""
    worst = OK
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if not os.path.isfile(path):
            continue
        line = {"name": name, **_short(path, believed, _limits(options))}
        if not line["ok"]:
            worst = NOT
        _say(_json(line))
    return worst


def _short(path, believed, limits):
    try:
        with open(path, "rb") as file:
            report = verdict(file, believed, (), limits)
    except (OSError, *NEITHER) as e:
        return {"ok": False, "trusted": False, "fault": {"place": "bundle", "message": str(e)}}
    long = ("schema", "replay_proof_result", "faults")
    out = {key: value for key, value in report.items() if key not in long}
    out["fault"] = report["faults"][0] if report["faults"] else None
    return out


def _json(value, indent=None):
    """JSON in which all but printable ASCII is escaped."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def _say(text, to=None):
    """Print a line, with what a terminal does not print but acts on or hides spelled out. Nothing here prints but this."""
    shown = "".join(c if c.isprintable() and not _takes_no_room(ord(c)) else "<U+%04X>" % ord(c) for c in text)
    to = to or sys.stdout
    print(shown.encode(to.encoding or "ascii", "backslashreplace").decode(to.encoding or "ascii"), file=to, flush=True)


def _takes_no_room(code):
    """Tell whether a character that counts as printable is none to see: a filler or a variation selector."""
    return (code in (0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0) or 0x180B <= code <= 0x180F
            or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF)


def _show(report, form):
    if form == "json":
        for line in _json(report, indent=2).split("\n"):
            _say(line)
        return
    _say(_word(report))
    for key in ("world_id", "kind", "records", "execution_hash", "event_chain_root_hash", "record", "cell"):
        if key in report:
            _say("%-22s %s" % (key, report[key]))
    if "replay_proof_result" in report:
        _say("%-22s %s" % ("replay", report["replay_proof_result"]["error"]))
    for fault in report["faults"]:
        _say("fault: %(place)s: %(message)s" % fault)


def _word(report):
    if not report["ok"]:
        return "not consistent"
    return "consistent, and signed by whom you trust" if report["trusted"] else "consistent, signer not trusted"


if __name__ == "__main__":
    sys.exit(main())
