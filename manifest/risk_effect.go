package manifest

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"
)

func (r *risks) effect(path, name string, was, is *Effect) {
	if was == nil {
		r.add(Gains, path, name, "is new: adapter %s", is.Adapter)
		return
	}
	if !entered(r, path, name, was, is, Gains, Loses) {
		return
	}
	r.unclear(path+"/adapter", name, "adapter "+is.Adapter+", not "+was.Adapter, was.Adapter != is.Adapter)
	r.noteNeutral(path+"/params_file", name, "the schema of its params is %q, not %q", is.ParamsFile, was.ParamsFile)
	r.unclear(path+"/params", name, "another schema of its params", was.Params != is.Params)
	r.unclear(path+"/config", name, "its adapter is configured differently", !equalFiles(was.Config, is.Config, was.Files, is.Files))
	r.noteNeutral(path+"/timeout", name, "an attempt may take %s, not %s", time.Duration(is.Timeout), time.Duration(was.Timeout))
	r.unclear(path+"/class", name, "its class, which policies look at, is "+quoted(is.Class)+", not "+quoted(was.Class), was.Class != is.Class)
	r.choice(path+"/idempotent", name, "idempotent", strconv.FormatBool(was.Idempotent), strconv.FormatBool(is.Idempotent), "false", "true")
	r.choice(path+"/external_key", name, "external_key", cmp.Or(was.ExternalKey, oneKey), cmp.Or(is.ExternalKey, oneKey), oneKey, ExternalPerAttempt)
	r.limit(path+"/retry/attempts", name, "attempts", was.Retry.Attempts, is.Retry.Attempts)
	r.noteNeutral(path+"/retry/backoff", name, "the second attempt comes after %s, not %s", time.Duration(is.Retry.Backoff), time.Duration(was.Retry.Backoff))
	r.choice(path+"/on_in_doubt", name, "on_in_doubt", was.OnInDoubt, is.OnInDoubt, InDoubtAsk, InDoubtVerify+" "+InDoubtFail, InDoubtRetry)
	r.settles(path+"/settles_after", name, was, is)
	r.choice(path+"/on_repeat", name, "on_repeat", cmp.Or(was.OnRepeat, RepeatAsk), cmp.Or(is.OnRepeat, RepeatAsk), RepeatAsk, RepeatReuse, RepeatRun)
	r.verify(path+"/verify", name, was.Verify, is.Verify)
	r.compensate(path+"/compensate", name, was.Compensate, is.Compensate)
	r.unclear(path+"/max_cost", name, "an attempt reserves a different amount from budgets", !was.MaxCost.equal(is.MaxCost))
	r.rate(path+"/rate", name, was.Rate, is.Rate)
}

func (c MaxCost) equal(other MaxCost) bool {
	same := func(a, b *uint64) bool { return a == b || a != nil && b != nil && *a == *b }
	return c.Calls == other.Calls && same(c.Tokens, other.Tokens) && same(c.Bytes, other.Bytes) && same(c.Micros, other.Micros)
}

// rate compares how often attempts may start.
func (r *risks) rate(path, name string, was, is Rate) {
	if was == is {
		return
	}
	risk, text := Loses, fmt.Sprintf("at most %d calls in %d ticks", is.Calls, is.Per)
	more, less := wide(is.Calls, uint64(was.Per)), wide(was.Calls, uint64(is.Per))
	if is == (Rate{}) {
		text = "any number of calls in a tick"
	}
	if is == (Rate{}) || was != (Rate{}) && more.Cmp(less) > 0 {
		risk = Gains
	}
	r.add(risk, path, name, "%s", text)
}

func wide(a, b uint64) *big.Int {
	return new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
}

// settles compares how long a verifier is not believed that nothing happened.
func (r *risks) settles(path, name string, was, is *Effect) {
	if was.SettlesAfter == is.SettlesAfter {
		return
	}
	risk := Loses
	if is.Settles() < was.Settles() {
		risk = Gains
	}
	r.add(risk, path, name, "a verifier's word that nothing happened counts after %s, not %s", time.Duration(is.Settles()), time.Duration(was.Settles()))
}

// oneKey stands for the ExternalKey that is empty.
const oneKey = "per_intent"

func (r *risks) verify(path, name string, was, is *Verify) {
	switch {
	case was == nil && is == nil:
	case was == nil:
		r.add(Loses, path, name, "is verified by %s", is.Adapter)
	case is == nil:
		r.add(Gains, path, name, "is not verified any more")
	default:
		r.unclear(path+"/adapter", name, "verified by "+is.Adapter+", not "+was.Adapter, was.Adapter != is.Adapter)
		r.unclear(path+"/config", name, "its verifier is configured differently", !equalFiles(was.Config, is.Config, was.Files, is.Files))
		r.choice(path+"/mode", name, "verify.mode", was.Mode, is.Mode, VerifyStrict, VerifyHuman, VerifyWarn)
	}
}

func (r *risks) compensate(path, name string, was, is *Compensate) {
	switch {
	case was == nil && is == nil:
	case was == nil:
		r.add(Gains, path, name, "is compensated by %s", is.Kind)
	case is == nil:
		r.add(Loses, path, name, "is no longer compensated by %s", was.Kind)
	default:
		r.unclear(path+"/kind", name, "compensated by "+is.Kind+", not "+was.Kind, was.Kind != is.Kind)
		r.unclear(path+"/params", name, "compensated with "+is.Params+", not "+was.Params, was.Params != is.Params)
	}
}

// policies compares policies by their names: their order decides nothing.
func (r *risks) policies(a, b []Policy) {
	for i, is := range b {
		path, name := "/policies/"+strconv.Itoa(i), "policy "+is.Name
		k := slices.IndexFunc(a, func(p Policy) bool { return p.Name == is.Name })
		switch {
		case k < 0 && is.Decide == DecideAllow:
			r.add(Gains, path, name, "is new: allow when %s", is.When)
		case k < 0:
			r.add(Loses, path, name, "is new: %s when %s", is.Decide, is.When)
		default:
			r.choice(path+"/decide", name, "its decision", a[k].Decide, is.Decide, DecideDeny, DecideRequireApproval, DecideAllow)
			r.when(path+"/when", name, &a[k], &is)
		}
	}
	moved := len(a) == len(b)
	for i, was := range a {
		k := slices.IndexFunc(b, func(p Policy) bool { return p.Name == was.Name })
		path, name := "/policies/"+strconv.Itoa(i), "policy "+was.Name
		moved = moved && k >= 0
		switch {
		case k >= 0:
		case was.Decide == DecideAllow:
			r.add(Loses, path, name, "is gone: allow when %s", was.When)
		default:
			r.add(Gains, path, name, "is gone: %s when %s", was.Decide, was.When)
		}
	}
	if moved && !slices.EqualFunc(a, b, func(p, q Policy) bool { return p.Name == q.Name }) {
		r.add(Neutral, "/policies", "policies", "are in another order")
	}
}

// when compares the expressions of a policy: an allow that holds more often gains rights, and
// a deny that does, or what asks a person, loses them.
func (r *risks) when(path, name string, was, is *Policy) {
	if was.When == is.When {
		return
	}
	text := is.Decide + " when " + is.When + ", not " + was.When
	wider := r.widens(was.When, is.When)
	if is.Decide != DecideAllow {
		wider = -wider
	}
	switch {
	case wider > 0:
		r.add(Gains, path, name, "allows more: %s", text)
	case wider < 0:
		r.add(Loses, path, name, "allows less: %s", text)
	default:
		r.unclear(path, name, text, true)
	}
}

// quoted shows that there is no text.
func quoted(s string) string { return cmp.Or(s, "none") }
