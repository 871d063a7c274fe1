//go:build unix

package mcp

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLines reads lines of bounded length: each comes whole or as its two ends, and none is lost.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nnot ended"), uint8(2))
	f.Add([]byte(strings.Repeat("x", 9000)+"\nnext\n"), uint8(40))
	f.Fuzz(func(t *testing.T, data []byte, most uint8) {
		r := bufio.NewReaderSize(bytes.NewReader(data), 16)
		lines := bytes.Split(data, []byte("\n"))
		for _, want := range lines[:len(lines)-1] {
			line, whole, err := ReadLine(r, int(most))
			require.NoError(t, err)
			require.Equal(t, len(want) <= int(most), whole)
			if whole {
				require.Equal(t, string(want), string(line))
				continue
			}
			head, tail := want[:min(len(want), endBytes)], want[max(0, len(want)-endBytes):]
			require.True(t, bytes.HasPrefix(line, head))
			require.True(t, bytes.HasSuffix(line, tail[min(1, len(tail)):]))
			require.LessOrEqual(t, len(line), 2*endBytes+1)
		}
		_, _, err := ReadLine(r, int(most))
		require.Error(t, err)
	})
}
