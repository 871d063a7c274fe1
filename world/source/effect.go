package source

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/manifest"
)

// scriptKey is the config key of an adapter whose file is Starlark.
const scriptKey = "script"

// builtIn returns the adapters that every host has, by name: the config keys
// that name files, of which exactly one is needed. Nil: any config, which is
// the adapter's own business.
func builtIn() map[string][]string {
	out := map[string][]string{"recorded": {"cassette"}, "stub": {"answers", scriptKey}, manifest.AdapterRelay: nil, manifest.AdapterOutside: nil}
	for _, name := range manifest.Adapters() {
		out[name] = nil
	}
	return out
}

func (d *decoder) effect(key, n *yaml.Node) manifest.Effect {
	var e manifest.Effect
	adapter, config := key, key // where their absence is reported
	d.mapping(n, fields{
		"adapter":       func(n *yaml.Node) { adapter = n; d.text(&e.Adapter)(n) },
		"config":        func(n *yaml.Node) { config = n },
		"params":        func(n *yaml.Node) { e.ParamsFile, e.Params = d.schema(n) },
		"timeout":       d.duration(&e.Timeout),
		"class":         d.text(&e.Class),
		"idempotent":    d.boolean(&e.Idempotent),
		"external_key":  d.text(&e.ExternalKey),
		"retry":         d.object(fields{"attempts": d.count(&e.Retry.Attempts), "backoff": d.duration(&e.Retry.Backoff)}),
		"on_in_doubt":   d.text(&e.OnInDoubt),
		"settles_after": d.duration(&e.SettlesAfter),
		"on_repeat":     d.text(&e.OnRepeat),
		"verify":        func(n *yaml.Node) { e.Verify = d.verify(n) },
		"compensate":    func(n *yaml.Node) { e.Compensate = d.compensate(n) },
		"max_cost": d.object(fields{
			"calls":  d.number(&e.MaxCost.Calls),
			"tokens": d.most(&e.MaxCost.Tokens, d.number),
			"bytes":  d.most(&e.MaxCost.Bytes, d.sizeOrNone),
			"micros": d.most(&e.MaxCost.Micros, d.number),
		}),
		"rate": d.rate(&e.Rate),
	})
	if config != key {
		e.Config = d.config(config)
	}
	if e.Adapter == "" || d.refused[n] {
		return e
	}
	if keys := d.adapter(adapter, e.Adapter); keys != nil {
		e.Files = d.configFiles(config, e.Adapter, keys)
	}
	return e
}

// adapter returns the config keys of an adapter, named at n, that name files.
func (d *decoder) adapter(n *yaml.Node, name string) []string {
	keys, known := d.adapters[name]
	if !known && !d.anyAdapter {
		d.refuse(n, "%s", &manifest.NoAdapterError{What: "adapter", Name: name, Known: slices.Sorted(maps.Keys(d.adapters))})
	}
	return keys
}

// configFiles reads the file that the config of an adapter names under exactly
// one of keys.
func (d *decoder) configFiles(config *yaml.Node, adapter string, keys []string) map[string]manifest.Hash {
	files := make(map[string]manifest.Hash)
	given := 0
	known := make(fields)
	for _, key := range keys {
		known[key] = func(n *yaml.Node) {
			given++
			file, data := d.file(n, MaxContentBytes)
			if data == nil {
				return
			}
			files[key] = d.keep(data)
			if key == scriptKey {
				d.checkScript(n, file, data)
			}
		}
	}
	if config.Kind == yaml.MappingNode {
		d.mapping(config, known)
	}
	if given != 1 && !d.refused[config] {
		d.report(config, "the config of adapter %s names one file, as %s", adapter, strings.Join(keys, " or "))
	}
	return files
}

// verify decodes a verifier. Whether an adapter can verify is the host's to
// say; none that names files can.
func (d *decoder) verify(n *yaml.Node) *manifest.Verify {
	var v manifest.Verify
	d.mapping(n, fields{
		"adapter": func(n *yaml.Node) {
			d.text(&v.Adapter)(n)
			if v.Adapter != "" && d.adapter(n, v.Adapter) != nil {
				d.refuse(n, "adapter %s cannot tell what became of an effect", v.Adapter)
			}
		},
		"config": func(n *yaml.Node) { v.Config = d.config(n) },
		"mode":   d.text(&v.Mode),
	})
	return &v
}

func (d *decoder) compensate(n *yaml.Node) *manifest.Compensate {
	var c manifest.Compensate
	d.mapping(n, fields{
		"kind":   d.text(&c.Kind),
		"params": func(n *yaml.Node) { d.expression(&c.Params)(n); d.checkCEL(n, c.Params, governance.CheckTransform) },
	})
	return &c
}

// most decodes how much of a unit an attempt costs at most, which may be nothing.
func (d *decoder) most(to **uint64, amount func(*uint64) func(*yaml.Node)) func(*yaml.Node) {
	return func(n *yaml.Node) {
		*to = new(uint64)
		amount(*to)(n)
	}
}

// rate decodes how often attempts start, as 10/s, 100/m or 2/30s: in so many whole ticks,
// or a little longer.
func (d *decoder) rate(to *manifest.Rate) func(*yaml.Node) {
	return scalar(d, to, "a rate such as 10/s, 100/m or 2/30s", func(n *yaml.Node) (manifest.Rate, bool) {
		calls, per, found := strings.Cut(n.Value, "/")
		count, err := strconv.ParseUint(calls, 10, 64)
		if !found || err != nil || count == 0 {
			return manifest.Rate{}, false
		}
		if !strings.ContainsAny(per, "0123456789") {
			per = "1" + per
		}
		length, err := manifest.ParseDuration(per)
		return manifest.Rate{Calls: count, Per: d.clock.Ticks(length)}, err == nil
	})
}

// budget decodes what a budget bounds.
func (d *decoder) budget(to *manifest.Budget) func(*yaml.Node) {
	return d.object(d.fieldsOf(to, "bytes"))
}
