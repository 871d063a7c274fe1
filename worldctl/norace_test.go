//go:build !race

package worldctl

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// processes lets the tests start themselves as worldctl.
func processes(m *testing.M) testscript.TestingM { return m }
