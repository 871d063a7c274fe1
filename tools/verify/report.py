"""What a verification found: the keys of `worldctl verify BUNDLE -o json`, as far as they are known here."""

NO_HASH = "0" * 64
MAX_FAULTS = 1000  # that are listed; the verdict needs one
MAX_SHOWN = 200  # characters of a name in a fault


class Report:
    """Faults, and what else there is to say of a bundle."""

    def __init__(self):
        self.faults = []
        self.values = {}

    def fault(self, place, message):
        """Say that something is wrong, and where."""
        if len(self.faults) < MAX_FAULTS:
            self.faults.append({"place": place, "message": message})

    def result(self):
        """The report as JSON has it."""
        out = {"schema": "worldctl/verify/v1", "ok": not self.faults}
        for key, value in self.values.items():
            out[key] = value
            if key == "tool_invocation_ledger_proof":
                out["replay_proof_result"] = {"ok": False, "error": "not checked: this verifier has no kernel",
                                              "first_divergence": None, "gaps": []}
        out["faults"] = self.faults
        return out


def brief(text):
    """What the outside wrote, as far as a fault shows it."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def place_of(record):
    """How faults name a record."""
    return "record #%d" % record
