package measure

import (
	"go.yaml.in/yaml/v4"

	"github.com/worldkernel/worldkernel/world/source"
)

// Document is a file of measures: measures, at and limits.
type Document struct {
	Specs  []Spec
	At     When // zero: the document does not say
	Limits Limits
}

const wants = "measures: {NAME: {cells: REDUCER}}"

// Read reads a document from a file. Of an experiment it reads measures and at, and leaves the
// rest. The error is a *source.Error, or says that the file cannot be read.
func Read(path string) (*Document, error) { return readDocument(source.ReadDocument(path, wants)) }

// Parse is Read for what is in memory; path names it in faults.
func Parse(path string, data []byte) (*Document, error) {
	return readDocument(source.NewDocument(path, wants, data))
}

func readDocument(file *source.Document, err error) (*Document, error) {
	if err != nil {
		return nil, err
	}
	var doc Document
	found, experiment := false, false
	known := map[string]func(*yaml.Node){
		"measures": func(n *yaml.Node) { found, doc.Specs = true, Decode(file, n) },
		"at":       func(n *yaml.Node) { doc.At = DecodeWhen(file, n) },
		"limits": func(n *yaml.Node) {
			file.Mapping(n, map[string]func(*yaml.Node){
				"values": file.Count(&doc.Limits.Values), "gas": file.Count(&doc.Limits.Gas), "memory": file.Size(&doc.Limits.Memory),
			})
		},
	}
	root := file.Root()
	file.Entries(root, func(key, _ *yaml.Node) { experiment = experiment || key.Value == "experiment" })
	if experiment {
		file.Entries(root, func(key, value *yaml.Node) {
			if decode, ok := known[key.Value]; ok && key.Value != "limits" {
				decode(value)
			}
		})
	} else {
		file.Mapping(root, known)
	}
	if !found && file.Err() == nil {
		file.Fault(root, "measures: want at least one: NAME: {cells: REDUCER}")
	}
	if err := file.Err(); err != nil {
		return nil, err
	}
	return &doc, nil
}
