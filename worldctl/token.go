package worldctl

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/worldkernel/worldkernel/serve/api"
)

// tokenAnswer is a new token, or the end of one.
type tokenAnswer struct {
	Name   string      `json:"name"`
	Token  string      `json:"token,omitempty"` // printed once: the file betrays none
	Scopes []api.Scope `json:"scopes,omitempty"`
	Worlds []string    `json:"worlds,omitempty"` // ids; none: all
	Ahead  string      `json:"ahead,omitempty"`  // how far ahead it may submit; empty: nothing is said
	Line   string      `json:"line,omitempty"`   // for a token file
	File   string      `json:"file,omitempty"`   // that has it; empty: none
}

func newTokenCommand(c *cli) *cobra.Command {
	return group(&cobra.Command{Use: "token"}, newTokenNewCommand(c), newTokenListCommand(c), newTokenRevokeCommand(c))
}

func newTokenNewCommand(c *cli) *cobra.Command {
	var scopes []string
	var line api.TokenLine
	var file string
	cmd := &cobra.Command{
		Use: "new NAME",
		RunE: func(_ *cobra.Command, args []string) error {
			line.Name = args[0]
			for _, s := range scopes {
				line.Scopes = append(line.Scopes, api.Scope(s))
			}
			return c.newToken(line, file)
		},
	}
	cmd.Flags().StringSliceVar(&scopes, "scope", nil, "what its bearer may do: `SCOPE,...`")
	cmd.Flags().StringVar(&line.Ahead, "ahead", "", "how far ahead of now its events may fall due: `TICKS` or a duration")
	cmd.Flags().StringSliceVar(&line.Worlds, "world-id", nil, "only in the worlds with these `ID,...`; all if not given")
	cmd.Flags().StringVar(&file, "file", "", "add the token's line to this `FILE`, which is made if it is not there")
	return cmd
}

func (c *cli) newToken(of api.TokenLine, file string) error {
	if len(of.Scopes) == 0 {
		return usagef("worldctl token new "+of.Name+" --scope read,submit", "token new needs --scope: what its bearer may do")
	}
	if c.world != "" {
		return usagef("type --world-id ID, which worldctl -w "+shellWord(c.world)+" status -o json tells as world_id", "-w does not say for which worlds a token is")
	}
	for _, s := range of.Scopes {
		if !slices.Contains(api.Scopes(), s) {
			names := strings.Trim(fmt.Sprint(api.Scopes()), "[]")
			return usagef("the scopes are "+strings.ReplaceAll(names, " ", ", "), "--scope: %q is not a scope", s)
		}
	}
	if words := strings.Fields(of.Name); len(words) != 1 || words[0] != of.Name || words[0][0] == '#' {
		return usagef("type one word, such as ada", "%q is no name of a token", of.Name)
	}
	secret, hash := api.NewToken()
	line := of.Text(hash)
	if _, err := api.ParseTokens([]byte(line)); err != nil {
		return usagef("type worldctl token new --help", "%w", cmp.Or(errors.Unwrap(err), err)) // there is no file, and no line of one
	}
	a := tokenAnswer{Name: of.Name, Token: secret, Scopes: of.Scopes, Worlds: of.Worlds, Ahead: of.Ahead, Line: line, File: file}
	if file != "" {
		if err := inTokenFile(file, api.AddToken(c.path(file), line)); err != nil {
			return err
		}
	}
	return c.object("token", a, func() {
		fmt.Fprintln(c.stdout, secret)
		if file == "" {
			c.note("for a token file: %s", line)
		}
	})
}

func newTokenListCommand(c *cli) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "list --file FILE",
		RunE: func(*cobra.Command, []string) error {
			tokens, err := c.tokensIn(file)
			if err != nil {
				return err
			}
			return list(c, "tokens", "tokens", allItems(tokens.Lines()), columns[api.TokenLine]{
				header: table.Row{"name", "scopes", "worlds", "ahead"},
				row: func(t api.TokenLine) table.Row {
					return table.Row{t.Name, t.ScopeList(), cmp.Or(strings.Join(t.Worlds, ","), "all"), t.Ahead}
				},
				none: "no token is taken",
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the token `FILE`")
	return cmd
}

func newTokenRevokeCommand(c *cli) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "revoke NAME --file FILE",
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if _, err := c.tokensIn(file); err != nil {
				return err
			}
			err := api.RevokeToken(c.path(file), name)
			if errors.Is(err, api.ErrNoToken) {
				return usagef("worldctl token list --file FILE shows those that there are", "there is no token of %q", name)
			}
			if err != nil {
				return inTokenFile(file, err)
			}
			return c.object("token-revoked", tokenAnswer{Name: name, File: file}, func() {
				fmt.Fprintf(c.stdout, "%s is revoked\n", name)
				c.note("a server that is running takes it until SIGHUP")
			})
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "the token `FILE`")
	return cmd
}

func (c *cli) tokensIn(file string) (*api.Tokens, error) {
	if file == "" {
		return nil, usagef("type --file FILE", "which token file is meant?")
	}
	return readTokens(c.path(file))
}

// readTokens is api.ReadTokens with what to do about its errors.
func readTokens(file string) (*api.Tokens, error) {
	tokens, err := api.ReadTokens(file)
	return tokens, inTokenFile(file, err)
}

// inTokenFile says what to do about the error of a token file.
func inTokenFile(file string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*api.ClashError)):
		return usagef("worldctl token list --file "+file+" shows those that there are", "%w", err)
	case errors.Is(err, api.ErrExposedTokens):
		return hinted(err, "chmod 600 %s", file)
	case errors.Is(err, fs.ErrNotExist):
		return hinted(err, "worldctl token new NAME --scope read,submit --file %s makes it", file)
	case errors.As(err, new(*fs.PathError)): // it cannot be read or written
		return err
	}
	return hinted(err, "correct that line, or take it out")
}
