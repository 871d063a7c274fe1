package api

import (
	"net/http"
	"slices"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
	"github.com/worldkernel/worldkernel/show/view"
)

// Manifest is the manifest in force. Its hash is that of its bytes, and not of the
// form that is for reading.
type Manifest struct {
	Schema   string             `json:"schema"`
	Hash     journal.Hash       `json:"hash"`
	Manifest *manifest.Manifest `json:"manifest"`
	Raw      []byte             `json:"raw"` // canonical CBOR; prints as base64
}

func showManifest(c *call) error {
	m, hash := c.world.Local.InForce()
	raw, err := m.Encode()
	if err != nil {
		return err
	}
	return c.ok(Manifest{Schema: view.SchemaOf("manifest"), Hash: hash, Manifest: m, Raw: raw})
}

// showContent answers with the bytes of a content that the manifest in force names,
// and with no others: the store holds payloads too.
func showContent(c *call) error {
	hash, err := canon.ParseHash(c.PathValue("hash"))
	if err != nil {
		return notFound("there is no such content")
	}
	m, _ := c.world.Local.InForce()
	if !slices.Contains(m.Contents(), hash) {
		return notFound("the manifest in force names no such content")
	}
	data, err := c.world.Local.Blob(hash)
	if err != nil {
		return err
	}
	return c.send(http.StatusOK, "application/octet-stream", data)
}
