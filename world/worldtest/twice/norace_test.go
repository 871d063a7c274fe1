//go:build !race

package twice

const raced = false
