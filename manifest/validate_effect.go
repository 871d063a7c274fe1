package manifest

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/worldkernel/worldkernel/internal/canon"
)

func (v *validator) effect(path, name string, e Effect) {
	v.check(path, checkName(name))
	if e.Adapter == "" {
		v.fault(path+"/adapter", "an effect needs an adapter")
	}
	if e.ParamsFile != "" && e.Params.IsZero() {
		v.fault(path+"/params", "the schema %q has no content", e.ParamsFile)
	}
	v.config(path+"/config", e.Config, e.Files)
	v.duration(path+"/timeout", e.Timeout, maxTimeout)
	if e.Class != "" {
		v.oneOf(path+"/class", e.Class, ClassRead, ClassWrite, ClassDestructive)
	}
	if e.ExternalKey != "" {
		v.oneOf(path+"/external_key", e.ExternalKey, ExternalPerAttempt)
	}
	v.limit(path+"/retry/attempts", e.Retry.Attempts, maxAttempts)
	v.duration(path+"/retry/backoff", e.Retry.Backoff, maxBackoff)
	v.inDoubt(path+"/on_in_doubt", e)
	if e.SettlesAfter != 0 {
		v.duration(path+"/settles_after", e.SettlesAfter, maxTimeout)
		if e.OnInDoubt != InDoubtVerify {
			v.fault(path+"/settles_after", "it says when a verifier can be believed that nothing happened, and on_in_doubt is not verify")
		}
	}
	if e.OnRepeat != "" {
		v.oneOf(path+"/on_repeat", e.OnRepeat, RepeatAsk, RepeatReuse, RepeatRun)
	}
	if e.Verify != nil {
		v.verify(path+"/verify", e.Verify)
	}
	if e.Compensate != nil {
		v.compensate(path+"/compensate", name, e.Compensate)
	}
	v.maxCost(path+"/max_cost/", e.MaxCost)
	if e.Rate != (Rate{}) {
		v.limit(path+"/rate/calls", e.Rate.Calls, maxRate)
		v.limit(path+"/rate/per", uint64(e.Rate.Per), maxPer)
	}
}

func (v *validator) maxCost(path string, c MaxCost) {
	if c.Calls != 0 {
		v.fault(path+"calls", "an attempt always costs one call")
	}
	for _, l := range []struct {
		unit string
		most *uint64
	}{{"tokens", c.Tokens}, {"bytes", c.Bytes}, {"micros", c.Micros}} {
		if l.most != nil {
			v.amount(path+l.unit, *l.most)
		}
	}
}

// config checks the config of an adapter or verifier.
func (v *validator) config(path string, config Data, files map[string]Hash) {
	if len(config) > 0 {
		v.check(path, checkMap(config))
	}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if files[key].IsZero() {
			v.fault(path+"/"+escape(key), "the file has no content")
		}
	}
}

// checkMap reports why data is not one canonical map.
func checkMap(data Data) error {
	r := canon.NewReader(data)
	r.Map()
	if err := r.Err(); err != nil {
		return err
	}
	return canon.Valid(data)
}

func (v *validator) duration(path string, have int64, most time.Duration) {
	if have < 1 || have > int64(most) {
		v.fault(path, "must be 1ns to %s, not %s", most, time.Duration(have))
	}
}

// inDoubt refuses what would do an effect twice.
func (v *validator) inDoubt(path string, e Effect) {
	v.oneOf(path, e.OnInDoubt, InDoubtAsk, InDoubtVerify, InDoubtRetry, InDoubtFail)
	switch {
	case e.OnInDoubt == InDoubtRetry && !e.Idempotent:
		v.fault(path, "only an idempotent effect can be attempted again while it is in doubt")
	case e.OnInDoubt == InDoubtRetry && e.ExternalKey == ExternalPerAttempt:
		v.fault(path, "an effect in doubt is attempted again under the same external key, not one per attempt")
	case e.OnInDoubt == InDoubtVerify && e.Verify == nil:
		v.fault(path, "verify says who can tell, and is missing")
	}
}

func (v *validator) verify(path string, y *Verify) {
	if y.Adapter == "" {
		v.fault(path+"/adapter", "a verifier needs an adapter")
	}
	v.config(path+"/config", y.Config, y.Files)
	v.oneOf(path+"/mode", y.Mode, VerifyStrict, VerifyWarn, VerifyHuman)
}

// circle returns the effects of which each makes up for the one before, from one
// back to the same; nothing where it leads elsewhere, or to what was looked at before.
func (v *validator) circle(name string) []string {
	var way []string
	at := make(map[string]int)
	for next := name; ; {
		if i, here := at[next]; here {
			return way[i:]
		}
		undo := v.m.Effects[next].Compensate
		if undo == nil || v.undone[next] {
			return nil
		}
		v.undone[next] = true
		at[next] = len(way)
		way = append(way, next)
		next = undo.Kind
	}
}

func (v *validator) compensate(path, name string, c *Compensate) {
	_, ok := v.m.Effects[c.Kind]
	switch {
	case !ok:
		v.fault(path+"/kind", "there is no effect %q%s", c.Kind, among(c.Kind, v.m.Effects))
	case c.Kind == name:
		v.fault(path+"/kind", "an effect cannot make up for itself")
	default:
		if circle := v.circle(name); len(circle) > 0 {
			v.fault(Pointer("effects", circle[0], "compensate", "kind"), "these effects make up for each other in a circle: %s", strings.Join(circle, ", "))
		}
	}
	if strings.TrimSpace(c.Params) == "" {
		v.fault(path+"/params", "a compensation needs an expression that gives its params")
	}
}
