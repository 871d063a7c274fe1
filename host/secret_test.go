package host

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/worldkernel/worldkernel/internal/canon"
	"github.com/worldkernel/worldkernel/receipt"
)

func secretsOf(values map[string]string) *secrets {
	return newSecrets(func(name string) (string, error) {
		value, ok := values[name]
		if !ok {
			return "", ErrNoSecret
		}
		return value, nil
	})
}

func TestOnlyReferencesAreResolvedAndOtherTextIsNotRepeated(t *testing.T) {
	s := secretsOf(map[string]string{"a": "value", "A-b_c.9": "other", "empty": "", "bytes": "\xff\xfe12", "long": strings.Repeat("x", 1<<20)})
	for _, name := range []string{"a", "A-b_c.9"} {
		value, err := s.resolve("secret://" + name)
		require.NoError(t, err)
		require.NotEmpty(t, value)
	}
	for _, text := range []string{
		"", "hunter2", "secret:a", "secret://", "Secret://a", " secret://a", "secret://a ", "secret://hunter/2", "secret://../hunter2",
		"secret://..", "secret://.", "secret://hunter2\x00", "secret://hünter2", "secret://" + strings.Repeat("hunter2", 10),
	} {
		_, err := s.resolve(text)
		require.ErrorIs(t, err, ErrNotSecretReference, text)
		require.NotContains(t, err.Error(), "unter")
	}
	_, err := s.resolve("secret://missing")
	require.ErrorIs(t, err, ErrNoSecret)
	for _, name := range []string{"empty", "bytes", "long"} {
		_, err := s.resolve("secret://" + name)
		require.ErrorIs(t, err, ErrBadSecret, name)
	}
}

func TestSecretsComeFromTheEnvironmentThenFromAFileOfOnesOwn(t *testing.T) {
	dir := t.TempDir()
	put := func(name, value string, mode os.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(value), 0o600))
		require.NoError(t, os.Chmod(filepath.Join(dir, name), mode))
	}
	put("both", "file", 0o600)
	put("file", "line\nline\n", 0o400)
	put("crlf", "line\r\n", 0o600)
	put("group", "value", 0o640)
	put("world", "value", 0o604)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	t.Setenv("WORLDCTL_SECRET_both", "environment")
	lookup := Secrets(dir)
	for name, want := range map[string]string{"both": "environment", "file": "line\nline", "crlf": "line"} {
		value, err := lookup(name)
		require.NoError(t, err)
		require.Equal(t, want, value)
	}
	for name, want := range map[string]error{
		"group": ErrExposedSecret, "world": ErrExposedSecret, "dir": errNotRegular, "none": ErrNoSecret,
	} {
		_, err := lookup(name)
		require.ErrorIs(t, err, want, name)
	}
	_, err := lookup("none")
	require.ErrorContains(t, err, "WORLDCTL_SECRET_none")
	require.ErrorContains(t, err, filepath.Join(dir, "none"))
}

// awkward is a value that every encoding changes, and differently.
func awkward(n int) string { return fmt.Sprintf("canary%02d \"q\\u\" <a&b>+/?~ÿé\n%02d", n, n) }

// formsOf computes the forms of a value without the code under test.
func formsOf(t *testing.T, value string) []string {
	t.Helper()
	quote := func(html bool) string {
		var b strings.Builder
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(html)
		require.NoError(t, enc.Encode(value))
		return strings.Trim(strings.TrimSpace(b.String()), `"`)
	}
	std, uri := base64.StdEncoding.EncodeToString([]byte(value)), base64.URLEncoding.EncodeToString([]byte(value))
	query := url.Values{"": {value}}.Encode()[1:]
	return []string{
		value, std, uri, strings.TrimRight(std, "="), strings.TrimRight(uri, "="), query, strings.ReplaceAll(query, "+", "%20"), (&url.URL{Path: value}).EscapedPath(),
		quote(true), quote(false),
	}
}

func requireNoCanary(t *testing.T, where string, values []string) {
	t.Helper()
	for _, value := range values {
		for _, form := range formsOf(t, value) {
			require.NotContains(t, where, form, "%q", value)
		}
	}
}

func TestNoFormOfASecretIsLeftInAResult(t *testing.T) {
	values := make(map[string]string)
	var all []string
	for i := range 50 {
		values[fmt.Sprintf("s%d", i)] = awkward(i)
		all = append(all, awkward(i))
	}
	s := secretsOf(values)
	fields, keys := map[string]any{"n": 1, "none": nil}, map[string]any{}
	var text strings.Builder
	for i, value := range all {
		for j, form := range formsOf(t, value) {
			fmt.Fprintf(&text, "<%s>", form)
			fields[fmt.Sprintf("f%d-%d", i, j)] = []any{form, []byte("x" + form + "\xff"), map[string]any{"deep": form}}
			keys["k "+form] = true
		}
	}
	fields["keys"] = keys
	payload, err := canon.Marshal(fields)
	require.NoError(t, err)
	before := Result{
		Status: receipt.StatusOK, Payload: payload, ExternalRef: text.String(),
		StateChange: &receipt.StateChange{Resource: text.String(), Version: text.String(), ETag: text.String(), ExternalRef: text.String()},
	}
	require.Equal(t, before, s.redact(before), "what nobody was given is no secret")
	for name := range values {
		_, err := s.resolve("secret://" + name)
		require.NoError(t, err)
	}
	after := s.redact(before)
	require.Equal(t, receipt.Data(payload), before.Payload)
	require.Equal(t, text.String(), before.StateChange.Resource, "the adapter's own is not changed")
	require.NoError(t, canon.Valid(after.Payload))
	change := after.StateChange
	for _, where := range []string{
		string(after.Payload), after.ExternalRef, change.Resource, change.Version, change.ETag, change.ExternalRef, s.redactText(text.String()),
	} {
		requireNoCanary(t, where, all)
		require.Contains(t, where, "secret://s49")
	}
	left, err := canon.Decode(after.Payload)
	require.NoError(t, err)
	require.Len(t, left.(map[string]any)["keys"], len(keys), "no key is lost")
	require.Contains(t, left, "none")
}

func TestRedactionTakesTheLongestAndLeavesTheShort(t *testing.T) {
	s := secretsOf(map[string]string{"short": "abc", "part": "pass", "whole": "password"})
	for _, name := range []string{"short", "part", "whole"} {
		_, err := s.resolve("secret://" + name)
		require.NoError(t, err)
	}
	require.Equal(t, "abc secret://part secret://whole", s.redactText("abc pass password"))
}

func TestPayloadThatIsNotCanonicalIsNotSavedWithItsSecret(t *testing.T) {
	s := secretsOf(map[string]string{"a": "password"})
	_, err := s.resolve("secret://a")
	require.NoError(t, err)
	got := s.redact(Result{Payload: receipt.Data("\xffpassword")})
	require.NoError(t, canon.Valid(got.Payload))
	require.NotContains(t, string(got.Payload), "password")
}

func TestSecretsAreForManyAtOnce(t *testing.T) {
	s := newSecrets(func(name string) (string, error) { return "value-of-" + name, nil })
	var all sync.WaitGroup
	faults := make(chan error, 64)
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				name := fmt.Sprintf("s%d.%d", i, j)
				value, err := s.resolve("secret://" + name)
				if got := s.redactText(value); err != nil || got != "secret://"+name {
					faults <- errors.Join(err, errors.New(got))
					return
				}
			}
		})
	}
	all.Wait()
	require.Empty(t, faults)
}

// TestSecretsAreFoundAsNumbersAndBehindEscapes: an outside may send back what it
// was given in any spelling that means the same.
func TestSecretsAreFoundAsNumbersAndBehindEscapes(t *testing.T) {
	values := map[string]string{
		"pin": "4829", "otp": "00482913", "card": "4012888888881881", "long": "12345678901234567890123", "rate": "0.5512345", "exp": "1.5e21",
		"key": "sk/live+ü𝄞\"<x>", "percent": "a%41/b~c", "back": `c:\u0041\new`,
	}
	s := secretsOf(values)
	for name := range values {
		_, err := s.resolve("secret://" + name)
		require.NoError(t, err)
	}
	everyUnit := func(text, format string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(text)) {
			fmt.Fprintf(&b, format, u)
		}
		return b.String()
	}
	everyByte := func(text, format string) string {
		var b strings.Builder
		for _, c := range []byte(text) {
			fmt.Fprintf(&b, format, c)
		}
		return b.String()
	}
	for _, name := range []string{"key", "percent", "back", "card"} {
		value := values[name]
		quoted, err := json.Marshal(value)
		require.NoError(t, err)
		slashed := strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "/", `\/`)
		twice, err := json.Marshal(slashed)
		require.NoError(t, err)
		for _, written := range []string{
			slashed, string(twice[1 : len(twice)-1]), everyUnit(value, `\u%04x`), everyUnit(value, `\u%04X`), everyUnit(value, `\\u%04x`),
			everyByte(value, "%%%02x"), everyByte(value, "%%%02X"), everyByte(value, "%%25%02x"), `\` + value, value + `\`,
		} {
			text := s.redactText("<" + written + ">")
			require.Equal(t, "<secret://"+name+">", strings.ReplaceAll(text, `\`, ""), "%s as %s", value, written)
		}
	}
	require.Equal(t, `a\/b \u00e9 100% \`, s.redactText(`a\/b \u00e9 100% \`), "what is no secret stays as it was written")

	for answer, want := range map[string]string{
		`4829`:                        `"secret://pin"`,
		`-4829`:                       `"-secret://pin"`,
		`4829.0`:                      `"secret://pin"`,
		`4.829e3`:                     `"secret://pin"`,
		`48291`:                       `48291`,
		`14829`:                       `14829`,
		`482913`:                      `"secret://otp"`,
		`4012888888881881`:            `"secret://card"`,
		`99401288888888188199`:        `"99secret://card99"`,
		`4.012888888881881e15`:        `"secret://card"`,
		`12345678901234567890123`:     `"secret://long"`,
		`1.2345678901234567890123e22`: `"secret://long"`,
		`0.5512345`:                   `"secret://rate"`,
		`1500000000000000000000`:      `"secret://exp"`,
		`1.5e21`:                      `"secret://exp"`,
		`{"a":[7,{"4829":4829}]}`:     `{"a":[7,{"secret://pin":"secret://pin"}]}`,
	} {
		payload, err := canon.FromJSON([]byte(answer))
		require.NoError(t, err)
		got, err := canon.ToJSON(s.redact(Result{Payload: payload}).Payload)
		require.NoError(t, err)
		require.Equal(t, want, string(got), answer)
	}
}
