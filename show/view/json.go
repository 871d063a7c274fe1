package view

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal that leaves <, > and & as they are.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// SchemaOf names the form of an answer.
func SchemaOf(name string) string { return "worldctl/" + name + "/v1" }

// MarshalObject is Marshal of an object, whose first member is its schema.
func MarshalObject(schema string, object any) ([]byte, error) {
	b, err := Marshal(object)
	if err != nil {
		return nil, err
	}
	head := `{"schema":"` + SchemaOf(schema) + `"`
	if len(b) > len("{}") {
		head += ","
	}
	return append([]byte(head), b[1:]...), nil
}
