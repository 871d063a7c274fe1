package lint

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// TestEverythingTypeChecksElsewhere: on the other system that worldctl is released for, tests included; all are built in
// make nightly.
func TestEverythingTypeChecksElsewhere(t *testing.T) {
	pkgs, err := packages.Load(&packages.Config{
		Dir:   "../..",
		Env:   append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"),
		Mode:  packages.NeedName | packages.NeedImports | packages.NeedDeps | packages.NeedTypes, // from source: nothing is compiled
		Tests: true,
	}, "./...")
	require.NoError(t, err)
	require.NotEmpty(t, pkgs)
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			t.Errorf("%s does not type-check: %v", p.ID, p.Errors[0])
		}
	}
}
