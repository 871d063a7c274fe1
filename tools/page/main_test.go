package main

import (
	"bytes"
	"os"
	"testing"
)

// TestThePageIsCurrent: what is served is what the modules say.
func TestThePageIsCurrent(t *testing.T) {
	want, err := build("../../serve/ui/page/app.js")
	if err != nil {
		t.Fatal(err)
	}
	is, err := os.ReadFile("../../serve/ui/built/app.js")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, is) {
		t.Fatal("serve/ui/built/app.js is not what its modules are today: type make page")
	}
}
