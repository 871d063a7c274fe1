package api

import (
	_ "embed" // openapi.yaml
	"encoding/json"
	"fmt"
	"net/http"

	"go.yaml.in/yaml/v4"
)

//go:embed openapi.yaml
var openapiYAML []byte

// document is what the API promises, in both forms.
type document struct{ yaml, json []byte }

func readDocument() (document, error) {
	d := document{yaml: openapiYAML}
	var tree map[string]any
	err := yaml.Unmarshal(d.yaml, &tree)
	if err == nil {
		d.json, err = json.Marshal(tree)
	}
	if err != nil {
		return d, fmt.Errorf("api: openapi.yaml: %w", err)
	}
	return d, nil
}

func showDocumentYAML(c *call) error {
	return c.send(http.StatusOK, "application/yaml", c.server.document.yaml)
}

func showDocumentJSON(c *call) error {
	return c.send(http.StatusOK, jsonType, c.server.document.json)
}
