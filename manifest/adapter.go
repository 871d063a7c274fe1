package manifest

import (
	"fmt"
	"strings"
)

// NoAdapterError says that a program lacks an adapter, or a verifier, that a manifest
// names.
type NoAdapterError struct {
	What  string // "adapter" or "verifier"
	Name  string
	Known []string // those that there are, sorted
}

func (e *NoAdapterError) Error() string {
	text := fmt.Sprintf("there is no %s %q; there are: %s", e.What, e.Name, strings.Join(e.Known, ", "))
	if e.What == "adapter" && (e.Name == "llm" || e.Name == "mcp") {
		text += fmt.Sprintf("; import github.com/worldkernel/worldkernel/host/%[1]s and give the program the adapter %[1]s.New", e.Name)
	}
	return text
}
