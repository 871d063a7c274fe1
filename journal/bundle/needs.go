package bundle

import (
	"github.com/worldkernel/worldkernel/journal"
	"github.com/worldkernel/worldkernel/manifest"
)

// needs returns the blobs that a record needs: its payload, and the manifest that
// it brings into the world with all that this names. What cannot be read needs
// nothing: whoever verifies the records says that it is missing. A manifest of more than
// most bytes (0: of any size) is not read.
func needs(rec journal.Record, blobs journal.Blobs, most int) (names []journal.Hash) {
	if !rec.Blob.IsZero() {
		names = append(names, rec.Blob)
	}
	if !journal.BringsManifest(rec.Kind) || rec.Load(blobs) != nil {
		return names
	}
	body, err := rec.Body()
	if err != nil {
		return names
	}
	name, brings := journal.ManifestOf(body)
	if !brings {
		return names
	}
	names = append(names, name)
	encoded, err := blobs.Blob(name)
	if err != nil || most > 0 && len(encoded) > most {
		return names
	}
	m, err := manifest.Decode(encoded)
	if err != nil {
		return names
	}
	return append(names, m.Contents()...)
}
