//go:build race

package testrace

// On reports whether the race detector looks on.
const On = true
