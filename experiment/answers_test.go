package experiment

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

// readAnswers reads a file of answers that says this.
func readAnswers(t *testing.T, dir string, text []byte) (*answers, error) {
	t.Helper()
	a := &answers{mode: EffectsRecorded, known: make(map[canon.Hash]*answered), kill: func() {}}
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
		{Key: one, Run: 1, Result: &answer{Status: receipt.StatusOK, Payload: []byte{4}, Cost: receipt.Cost{Calls: 1, Tokens: 7}}},
		{Key: two, Run: 2, Doubt: "killed"},
		{Key: three, Run: 2, Cell: "asker/a", Kind: "model.ask", Begun: true, Hold: &Budget{1, 20, 300}},
	} {
		line, err := x.encode()
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
	dir, lines := t.TempDir(), twoAnswers(t)
	old := regexp.MustCompile(`,"(sum|hold)":("[0-9a-f]{64}"|{[^}]*})`)
	for name, text := range map[string][]byte{
		"a result, and no attempt": lines[2],
		"an attempt twice":         bytes.Join([][]byte{lines[0], lines[0]}, nil),
		"an answer again":          bytes.Join([][]byte{lines[0], lines[2], lines[2]}, nil),
		"neither, and no sum":      append(old.ReplaceAll(lines[0], nil), []byte(`{"key":"`+canon.Sum([]byte("1")).String()+`","run":1}`+"\n")...),
		"a key that nobody knows":  bytes.Replace(old.ReplaceAll(lines[0], nil), []byte(`"begun"`), []byte(`"more":1,"begun"`), 1),
		"two things":               append(bytes.TrimSpace(old.ReplaceAll(lines[0], nil)), old.ReplaceAll(lines[1], nil)...),
	} {
		_, err := readAnswers(t, dir, text)
		var damage *DamageError
		require.ErrorAs(t, err, &damage, name)
		require.Equal(t, bytes.Count(text, []byte("\n")), damage.Line, name)
		require.ErrorContains(t, err, answersFile+":")
	}
}

// TestAnswersOfBeforeAreRead: they were paid for. Two runs may have made an attempt twice.
func TestAnswersOfBeforeAreRead(t *testing.T) {
	dir, lines := t.TempDir(), twoAnswers(t)
	is, err := readAnswers(t, dir, bytes.Join(lines, nil))
	require.NoError(t, err)
	require.Equal(t, Budget{Calls: 3, Tokens: 7 + 20 + 20, Micros: 900}, is.used, "what no receipt names stays set aside")
	old := regexp.MustCompile(`,"(sum|hold)":("[0-9a-f]{64}"|{[^}]*})`).ReplaceAll(bytes.Join(lines, nil), nil)
	was, err := readAnswers(t, dir, old)
	require.NoError(t, err)
	require.Equal(t, Budget{Calls: 3, Tokens: 7}, was.used)
	require.Len(t, was.known, 3)
	for key, x := range was.known {
		require.Equal(t, is.known[key].Result, x.Result)
		require.Equal(t, is.known[key].Doubt, x.Doubt)
	}
	begun, ended, _ := bytes.Cut(old, []byte("\n"))
	_, ended, _ = bytes.Cut(ended, []byte("\n"))
	end, _, _ := bytes.Cut(ended, []byte("\n"))
	_, err = readAnswers(t, dir, bytes.Join([][]byte{begun, begun, end, end, nil}, []byte("\n")))
	require.NoError(t, err)
}

func FuzzAnswers(f *testing.F) {
	for _, line := range twoAnswers(f) {
		f.Add(line[:len(line)-sumSize])
	}
	f.Fuzz(func(t *testing.T, open []byte) {
		x, summed, err := decodeAnswered(withSum(ofAnswers(), open))
		if err != nil {
			return
		}
		require.True(t, summed)
		text, err := json.Marshal(x)
		require.NoError(t, err)
		again, _, err := decodeAnswered(append(text, '\n'))
		require.NoError(t, err)
		require.Equal(t, x, again)
	})
}
