package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v4"
)

// MaxDocumentBytes bounds a document.
const MaxDocumentBytes = 1 << 20

// Document is a file of measures: measures, at and limits.
type Document struct {
	Specs  []Spec
	At     When // zero: the document does not say
	Limits Limits
}

// Read reads a document. Of an experiment it reads measures and at, and leaves the rest. The error is a
// *DocumentError.
func Read(data []byte) (*Document, error) {
	root, err := parse(data)
	if err != nil {
		at := Place{1, 1}
		var broken *yaml.LoadError
		if errors.As(err, &broken) {
			at = Place{max(broken.Mark.Line, 1), max(broken.Mark.Column, 1)}
			err = fmt.Errorf("is not YAML: %s", broken.Message)
		}
		return nil, &DocumentError{[]Fault{{Place: at, Msg: err.Error()}}}
	}
	var d decoder
	var doc Document
	found := false
	known := map[string]func(*yaml.Node){
		"measures": func(n *yaml.Node) {
			found = true
			var faults []Fault
			doc.Specs, faults = Decode(n)
			d.faults = append(d.faults, faults...)
		},
		"at": func(n *yaml.Node) {
			var faults []Fault
			doc.At, faults = DecodeWhen(n)
			d.faults = append(d.faults, faults...)
		},
		"limits": func(n *yaml.Node) { doc.Limits = d.limits(n) },
	}
	if isExperiment(root) {
		d.entries(root, func(key, value *yaml.Node) {
			if decode, ok := known[key.Value]; ok && key.Value != "limits" {
				decode(value)
			}
		})
	} else {
		d.mapping(root, known)
	}
	if !found && len(d.faults) == 0 {
		d.fault(root, "measures: want at least one: NAME: {cells: REDUCER}")
	}
	if len(d.faults) > 0 {
		return nil, &DocumentError{d.faults}
	}
	return &doc, nil
}

// parse returns the one document in data.
func parse(data []byte) (*yaml.Node, error) {
	if len(data) > MaxDocumentBytes {
		return nil, fmt.Errorf("is larger than %d bytes", MaxDocumentBytes)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var n, second yaml.Node
	err := d.Decode(&n)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(n.Content) == 0:
		return nil, errors.New("is empty: want measures: {NAME: {cells: REDUCER}}")
	case err != nil:
		return nil, fmt.Errorf("is not YAML: %w", err)
	case !errors.Is(d.Decode(&second), io.EOF):
		return nil, errors.New("holds more than one document")
	}
	return n.Content[0], nil
}

func isExperiment(root *yaml.Node) bool {
	return root.Kind == yaml.MappingNode && slices.ContainsFunc(root.Content, func(n *yaml.Node) bool { return n.Value == "experiment" })
}

func (d *decoder) limits(n *yaml.Node) (l Limits) {
	d.mapping(n, map[string]func(*yaml.Node){
		"values": func(n *yaml.Node) { l.Values = d.number(n) },
		"gas":    func(n *yaml.Node) { l.Gas = d.number(n) },
		"memory": func(n *yaml.Node) { l.Memory = d.number(n) },
	})
	return l
}
