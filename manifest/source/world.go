package source

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/manifest"
)

// scriptKey is the config key of an adapter whose file is Starlark.
const scriptKey = "script"

// manifest decodes the root of a world file.
func (d *decoder) manifest(root *yaml.Node) manifest.Manifest {
	var m manifest.Manifest
	d.mapping(root, fields{
		"world":   d.text(&m.World),
		"version": d.number(&m.Version),
		"seed":    d.number(&m.Seed),
		"clock": func(n *yaml.Node) {
			d.mapping(n, fields{"epoch": d.epoch(&m.Clock.Epoch), "tick": d.duration(&m.Clock.Tick)})
		},
		"reducers": func(n *yaml.Node) { m.Reducers = named(d, n, d.reducer) },
		"events":   func(n *yaml.Node) { m.Events = named(d, n, d.event) },
		"effects":  func(n *yaml.Node) { m.Effects = named(d, n, d.effect) },
		"caps":     func(n *yaml.Node) { m.Caps = named(d, n, d.capability) },
		"policies": func(n *yaml.Node) { m.Policies = listed(d, n, d.policy) },
		"routing":  func(n *yaml.Node) { m.Routing = listed(d, n, d.route) },
		"limits": func(n *yaml.Node) {
			d.mapping(n, fields{
				"events_per_tick": d.count(&m.Limits.EventsPerTick),
				"in_flight":       d.count(&m.Limits.InFlight),
				"mailbox":         d.count(&m.Limits.Mailbox),
				"alarms":          d.count(&m.Limits.Alarms),
				"payload":         d.size(&m.Limits.Payload),
				"receipt":         d.size(&m.Limits.Receipt),
			})
		},
	})
	return m
}

func (d *decoder) reducer(_, n *yaml.Node) manifest.Reducer {
	var r manifest.Reducer
	d.mapping(n, fields{
		"engine": d.text(&r.Engine),
		"source": func(n *yaml.Node) {
			file, data := d.file(n, MaxCodeBytes)
			if data != nil {
				r.File, r.Source = file, d.keep(data)
				d.checkReducer(n, file, data)
			}
		},
		"name":     d.text(&r.Name),
		"version":  d.text(&r.Version),
		"grants":   d.texts(&r.Grants),
		"on_error": d.text(&r.OnError),
		"limits": func(n *yaml.Node) {
			d.mapping(n, fields{
				"gas":     d.count(&r.Limits.Gas),
				"state":   d.size(&r.Limits.State),
				"events":  d.count(&r.Limits.Events),
				"effects": d.count(&r.Limits.Effects),
				"timers":  d.count(&r.Limits.Timers),
				"value":   d.size(&r.Limits.Value),
			})
		},
	})
	return r
}

func (d *decoder) event(_, n *yaml.Node) manifest.Event {
	var e manifest.Event
	d.mapping(n, fields{
		"schema": func(n *yaml.Node) {
			file, data := d.file(n, MaxCodeBytes)
			if data != nil {
				e.File, e.Schema = file, d.keep(data)
				d.checkSchema(file, data)
			}
		},
	})
	return e
}

func (d *decoder) effect(key, n *yaml.Node) manifest.Effect {
	var e manifest.Effect
	adapter, config := key, key // where their absence is reported
	d.mapping(n, fields{
		"adapter": func(n *yaml.Node) { adapter = n; d.text(&e.Adapter)(n) },
		"config":  func(n *yaml.Node) { config = n },
	})
	if config != key {
		e.Config = d.config(config)
	}
	if e.Adapter == "" || d.refused[n] {
		return e
	}
	keys, known := d.adapters[e.Adapter]
	switch {
	case !known:
		names := strings.Join(slices.Sorted(maps.Keys(d.adapters)), ", ")
		d.refuse(adapter, "there is no adapter %q; there are: %s", e.Adapter, names)
	case keys != nil:
		e.Files = d.configFiles(config, e.Adapter, keys)
	}
	return e
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

func (d *decoder) capability(_, n *yaml.Node) manifest.Cap {
	var c manifest.Cap
	var expires uint64
	d.mapping(n, fields{
		"type": d.text(&c.Type),
		"params": func(n *yaml.Node) {
			d.mapping(n, fields{"kinds": d.texts(&c.Params.Kinds)})
		},
		"expires": d.number(&expires),
	})
	c.Expires = manifest.Tick(expires)
	return c
}

func (d *decoder) policy(n *yaml.Node) manifest.Policy {
	var p manifest.Policy
	d.mapping(n, fields{
		"name":   d.text(&p.Name),
		"when":   func(n *yaml.Node) { d.expression(&p.When)(n); d.checkPolicy(n, p.When) },
		"decide": d.text(&p.Decide),
	})
	return p
}

func (d *decoder) route(n *yaml.Node) manifest.Route {
	var r manifest.Route
	d.mapping(n, fields{
		"event":   d.text(&r.Event),
		"reducer": d.text(&r.Reducer),
		"key":     d.text(&r.Key),
	})
	return r
}
