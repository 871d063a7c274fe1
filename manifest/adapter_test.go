package manifest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/manifest"
)

func TestMissingAdaptersOfPackagesNameThem(t *testing.T) {
	missing := manifest.NoAdapterError{What: "adapter", Known: []string{"exec", "file"}}
	for name, names := range map[string]bool{"llm": true, "mcp": true, "outbox": false} {
		missing.Name = name
		text := missing.Error()
		require.Contains(t, text, `there is no adapter "`+name+`"; there are: exec, file`)
		require.Equal(t, names, len(text) > 60, text)
		if names {
			require.Contains(t, text, "import github.com/worldkernel/worldkernel/host/"+name)
		}
	}
}
