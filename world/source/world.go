package source

import (
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/governance"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/internal/schema"
	"github.com/worldkernel/worldkernel/manifest"
)

// manifest decodes the root of a world file.
func (d *decoder) manifest(root *yaml.Node) manifest.Manifest {
	var m manifest.Manifest
	d.entries(root, func(key, value *yaml.Node) {
		if key.Value == "clock" { // first: durations are counted in its ticks
			d.mapping(value, fields{"epoch": d.epoch(&m.Clock.Epoch), "tick": d.duration(&m.Clock.Tick), "mode": d.text(&m.Clock.Mode)})
		}
	})
	d.clock = m.WithDefaults().Clock
	d.mapping(root, fields{
		"world":    d.text(&m.World),
		"version":  d.number(&m.Version),
		"seed":     d.number(&m.Seed),
		"clock":    func(*yaml.Node) {},
		"reducers": func(n *yaml.Node) { m.Reducers = named(d, n, d.reducer) },
		"events":   func(n *yaml.Node) { m.Events = named(d, n, d.event) },
		"effects":  func(n *yaml.Node) { m.Effects = named(d, n, d.effect) },
		"caps":     func(n *yaml.Node) { m.Caps = named(d, n, d.capability) },
		"policies": func(n *yaml.Node) { m.Policies = listed(d, n, d.policy) },
		"routing":  func(n *yaml.Node) { m.Routing = listed(d, n, d.route) },
		"budget":   d.budget(&m.Budget),
		"defaults": d.object(fields{
			"approval_ttl":     d.ticks(&m.Defaults.ApprovalTTL),
			"snapshot_every":   d.number(&m.Defaults.SnapshotEvery),
			"checkpoint_every": d.count(&m.Defaults.CheckpointEvery),
			"retention":        d.object(fields{"max_snapshots": d.count(&m.Defaults.Retention.MaxSnapshots)}),
		}),
		"limits":     d.object(d.fieldsOf(&m.Limits, "payload", "receipt")),
		"governance": d.governance(&m.Governance),
	})
	return m
}

func (d *decoder) reducer(_, n *yaml.Node) manifest.Reducer {
	var r manifest.Reducer
	var named *yaml.Node // the source
	var source []byte
	d.mapping(n, fields{
		"engine": d.text(&r.Engine),
		"source": func(n *yaml.Node) {
			file, data := d.file(n, MaxCodeBytes)
			if data != nil {
				r.File, r.Source = file, d.keep(data)
				named, source = n, data
			}
		},
		"params":   func(n *yaml.Node) { r.Params = d.config(n) },
		"name":     d.text(&r.Name),
		"version":  d.text(&r.Version),
		"grants":   d.texts(&r.Grants),
		"on_error": d.text(&r.OnError),
		"budget":   d.budget(&r.Budget),
		"limits":   d.object(d.fieldsOf(&r.Limits, "state", "value", "memory")),
	})
	if named != nil {
		d.checkReducer(named, &r, source)
	}
	return r
}

func (d *decoder) event(_, n *yaml.Node) manifest.Event {
	var e manifest.Event
	d.mapping(n, fields{
		"schema": func(n *yaml.Node) { e.File, e.Schema = d.schemaFile(n) },
	})
	return e
}

// schemaFile decodes the path of a JSON Schema.
func (d *decoder) schemaFile(n *yaml.Node) (string, manifest.Hash) {
	file, data := d.file(n, MaxCodeBytes)
	if data == nil {
		return "", manifest.Hash{}
	}
	d.checkSchema(file, data)
	return file, d.keep(data)
}

// schema decodes a JSON Schema that is a file or stands here.
func (d *decoder) schema(n *yaml.Node) (string, manifest.Hash) {
	if n.Kind != yaml.MappingNode {
		return d.schemaFile(n)
	}
	data, err := canon.ToJSON(d.config(n))
	if err != nil {
		return "", manifest.Hash{} // which was reported
	}
	if !d.withoutCode {
		if _, err := schema.Compile(data); err != nil {
			d.report(n, "%s", err)
		}
	}
	return "", d.keep(data)
}

func (d *decoder) policy(n *yaml.Node) manifest.Policy {
	var p manifest.Policy
	d.mapping(n, fields{
		"name":   d.text(&p.Name),
		"when":   func(n *yaml.Node) { d.expression(&p.When)(n); d.checkCEL(n, p.When, governance.CheckPolicy) },
		"decide": d.text(&p.Decide),
	})
	return p
}

func (d *decoder) route(n *yaml.Node) manifest.Route {
	var r manifest.Route
	d.mapping(n, d.fieldsOf(&r))
	return r
}
