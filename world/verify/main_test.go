package verify_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/worldkernel/worldkernel/internal/testrace"
)

func TestMain(m *testing.M) {
	if err := testrace.Only(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	m.Run()
}
