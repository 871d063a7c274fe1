package worldctl

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

var updateCLIDoc = flag.Bool("update", false, "write docs/cli.md")

// TestCLIDocSaysWhatHelpSays holds docs/cli.md to the commands; with -update it is
// written.
func TestCLIDocSaysWhatHelpSays(t *testing.T) {
	want := cliDoc(&cli{})
	file := filepath.Join("..", "docs", "cli.md")
	if *updateCLIDoc {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "go test ./worldctl -run CLIDoc -update writes it")
}

// TestEveryVerbIsDocumented has every verb say what it is for, and show how it is typed.
func TestEveryVerbIsDocumented(t *testing.T) {
	root := newRootCommand(&cli{})
	for _, verb := range root.Commands() {
		require.True(t, verb.GroupID != "" || verb.Name() == "version", "%s is in no group of --help", verb.Name())
	}
	for _, verb := range allVerbs(root) {
		require.NotEmpty(t, verb.Short, verb.CommandPath())
		if !verb.HasSubCommands() {
			require.Contains(t, verb.Example, "worldctl ", verb.CommandPath())
		}
	}
}

// cliDoc is docs/cli.md.
func cliDoc(c *cli) string {
	root := newRootCommand(c)
	var b strings.Builder
	fmt.Fprintf(&b, `# The command line

This page is made from the commands by `+"`make docs`"+`: what there is. `+"`worldctl VERB --help`"+` explains a verb and shows examples.

%s

Wherever a MOMENT or a RECORD is asked for: %s.
`+"`--from`"+` and `+"`--to`"+` bound a part of the journal, both with all of the moment. `+"`--limit N`"+` is the first N; without
it lists are complete.

`, root.Long, momentForms)
	b.WriteString("## Flags of every verb\n\n" + block(root.PersistentFlags().FlagUsages()))
	for _, g := range root.Groups() {
		id, about, _ := strings.Cut(g.Title, ": ")
		fmt.Fprintf(&b, "## %s: %s\n\n| verb | what it does | flags |\n|---|---|---|\n", id, about)
		for _, verb := range root.Commands() {
			if verb.GroupID == g.ID {
				describeVerb(&b, verb)
			}
		}
		b.WriteString("\n")
	}
	b.WriteString("## others\n\n`worldctl help` and `worldctl completion` are as in other programs.\n\n| verb | what it does | flags |\n|---|---|---|\n")
	for _, verb := range root.Commands() {
		if verb.GroupID == "" && verb.IsAvailableCommand() {
			describeVerb(&b, verb)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// describeVerb writes the rows of a verb and those below it.
func describeVerb(b *strings.Builder, verb *cobra.Command) {
	if !verb.HasSubCommands() || verb.Example != "" {
		var flags []string
		verb.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if kind, _ := pflag.UnquoteUsage(f); !f.Hidden && f.Name != "help" {
				flags = append(flags, "`"+strings.TrimSpace("--"+f.Name+" "+kind)+"`")
			}
		})
		use := strings.ReplaceAll(strings.TrimSuffix(verb.UseLine(), " [flags]"), "|", "\\|")
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", use, strings.TrimSuffix(verb.Short, "."), strings.Join(flags, " "))
	}
	for _, below := range verb.Commands() {
		if below.IsAvailableCommand() {
			describeVerb(b, below)
		}
	}
}

// block is text as it stands.
func block(text string) string { return "```text\n" + strings.TrimRight(text, "\n") + "\n```\n\n" }

// TestHelpShowsTheFirstVerbs has --help stay short, and --help --all show every verb and flag.
func TestHelpShowsTheFirstVerbs(t *testing.T) {
	help := func(args ...string) string {
		var out, said bytes.Buffer
		require.Zero(t, run(t.Context(), Options{}, args, strings.NewReader(""), &out, &said), said.String())
		return out.String()
	}
	short := help("--help")
	for name := range strings.FieldsSeq(firstVerbs) {
		require.Regexp(t, `(?m)^  `+name+` `, short)
	}
	all := help("--help", "--all")
	for _, verb := range newRootCommand(&cli{}).Commands() {
		if verb.GroupID != "" {
			require.Regexp(t, `(?m)^  `+verb.Name()+` `, all)
			require.Contains(t, short, "  "+verb.GroupID+" ")
		}
	}
	require.NotContains(t, short, "--store URL")
	require.Contains(t, all, "--store URL")
	require.NotContains(t, help("send", "--help"), "--store URL")
	require.Contains(t, help("move", "--help"), "--store URL")
}
