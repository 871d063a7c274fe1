package store

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/journal"
)

// FuzzShape holds that no key and no body makes the checks panic, and that what a
// key is taken apart into makes that key.
func FuzzShape(f *testing.F) {
	for _, key := range [][]byte{
		recordKey(1), imageKey(1), cellVersionKey("agent/a", 1), ledgerKey(journal.Hash{1}, 1), postingKey(nil, 1, "agent/a"),
		noteKey(nil, 2, cellVersionKey("agent/a", 1)), noteKey(nil, 2, ledgerKey(journal.Hash{1}, 1)),
		{notePrefix},
		{metaPrefix},
		hashKey(redactionPrefix, journal.Hash{1}), numberKey(archivePrefix, 7), tileKey(1, 7), signedKey(7),
	} {
		f.Add(key, []byte{})
		f.Add(key, make([]byte, 40))
		f.Add(key, make([]byte, 64))
	}
	f.Fuzz(func(t *testing.T, key, body []byte) {
		if len(key) == 0 {
			return
		}
		require.NotEmpty(t, nameOf(key))
		if err := checkShape(key, body); err != nil {
			require.ErrorIs(t, err, errShape)
		}
		if name, at, ok := splitVersion(key); ok {
			require.Equal(t, key, versionKey(nil, name, at))
		}
		if version, name, at, ok := splitNote(key); ok {
			require.Equal(t, key, noteKey(nil, recordID(key), version))
			require.Equal(t, version, versionKey(nil, name, at))
		}
		if img, err := parseImage(key, body); err == nil {
			require.Equal(t, body, imageBody(img))
		}
	})
}
