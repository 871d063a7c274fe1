package experiment

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/host"
	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// readAnswers reads a file of answers that says this.
func readAnswers(t *testing.T, dir string, text []byte) (*answers, error) {
	t.Helper()
	a := &answers{mode: EffectsRecorded, lines: lines{of: ofAnswers()}, known: make(map[canon.Hash]*answered), kill: func() {}}
	path := filepath.Join(dir, answersFile)
	require.NoError(t, os.WriteFile(path, text, 0o600))
	err := a.open(filepath.Dir(path), filepath.Base(path))
	require.NoError(t, a.close())
	return a, err
}

// twoAnswers are the lines of an answer, of a doubt, and of an attempt without an end.
func twoAnswers(t testing.TB) [][]byte {
	t.Helper()
	var lines [][]byte
	one, two, three := canon.Sum([]byte("1")), canon.Sum([]byte("2")), canon.Sum([]byte("3"))
	for _, x := range []answered{
		{Key: one, Run: 1, Cell: "asker/a", Kind: "model.ask", Begun: true, Hold: &Budget{1, 20, 300}},
		{Key: two, Run: 2, Cell: "asker/a", Kind: "model.ask", Begun: true, Hold: &Budget{1, 20, 300}},
		{Key: one, Run: 1, Result: &answer{host.Result{Status: receipt.StatusOK, Cost: receipt.Cost{Calls: 1, Tokens: 7}}, []byte{4}}},
		{Key: two, Run: 2, Doubt: "killed"},
		{Key: three, Run: 2, Cell: "asker/a", Kind: "model.ask", Begun: true, Hold: &Budget{1, 20, 300}},
	} {
		line, err := encodeLine(ofAnswers(), x)
		require.NoError(t, err)
		lines = append(lines, line)
	}
	return lines
}

func TestEachFlippedBitOfAnAnswerIsRefused(t *testing.T) {
	dir, whole := t.TempDir(), bytes.Join(twoAnswers(t), nil)
	for at := range whole {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 1 << (at % 8)
		_, err := readAnswers(t, dir, flipped)
		var damage *DamageError
		require.ErrorAs(t, err, &damage, "byte %d", at)
		require.Equal(t, 1+bytes.Count(whole[:at], []byte("\n")), damage.Line, "byte %d: %v", at, err)
	}
}

func TestLinesOfAnswersThatSayTooLittleAreRefused(t *testing.T) {
	dir, given := t.TempDir(), twoAnswers(t)
	begun := bytes.Clone(given[0][:len(given[0])-sumSize])
	said := func(text string) []byte { return withSum(ofAnswers(), []byte(text)) }
	for name, text := range map[string][]byte{
		"a result, and no attempt":  given[2],
		"an attempt twice":          bytes.Join([][]byte{given[0], given[0]}, nil),
		"an answer again":           bytes.Join([][]byte{given[0], given[2], given[2]}, nil),
		"neither":                   append(bytes.Clone(given[0]), said(`{"key":"`+canon.Sum([]byte("1")).String()+`","run":1`)...),
		"an attempt without a hold": said(`{"key":"` + canon.Sum([]byte("1")).String() + `","run":1,"begun":true`),
		"no sum":                    append(bytes.Clone(begun), "}\n"...),
		"a key that nobody knows":   said(string(begun) + `,"more":1`),
		"two things":                said(string(begun) + `} {"more":1`),
	} {
		_, err := readAnswers(t, dir, text)
		var damage *DamageError
		require.ErrorAs(t, err, &damage, name)
		require.True(t, damage.Answers)
		require.Equal(t, bytes.Count(text, []byte("\n")), damage.Line, name)
		require.ErrorContains(t, err, answersFile+":")
	}
}

func TestAnswersAreReadAgain(t *testing.T) {
	is, err := readAnswers(t, t.TempDir(), bytes.Join(twoAnswers(t), nil))
	require.NoError(t, err)
	require.Equal(t, Budget{Calls: 3, Tokens: 7 + 20 + 20, Micros: 900}, is.used, "what no receipt names stays set aside")
	require.Len(t, is.known, 3)
	one := is.known[canon.Sum([]byte("1"))].Result.result()
	require.Equal(t, host.Result{Status: receipt.StatusOK, Payload: receipt.Data{4}, Cost: receipt.Cost{Calls: 1, Tokens: 7}}, one)
	require.Equal(t, "killed", is.known[canon.Sum([]byte("2"))].Doubt)
	require.NotEmpty(t, is.known[canon.Sum([]byte("3"))].Doubt)
}

func FuzzAnswers(f *testing.F) {
	for _, line := range twoAnswers(f) {
		f.Add(line[:len(line)-sumSize])
	}
	f.Fuzz(func(t *testing.T, open []byte) {
		x, err := decodeAnswered(withSum(ofAnswers(), open))
		if err != nil {
			return
		}
		text, err := encodeLine(ofAnswers(), x)
		require.NoError(t, err)
		again, err := decodeAnswered(text)
		require.NoError(t, err)
		require.Equal(t, x, again)
	})
}
