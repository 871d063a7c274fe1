//go:build !race

package testrace

// On reports whether the race detector looks on.
const On = false

// Only does nothing: without the race detector all tests run.
func Only() error { return nil }
