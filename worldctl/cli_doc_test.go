package worldctl

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
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

This page is made from the commands: each verb's text here is its --help. Change it there, then
`+"`make docs`"+`.

%s

Wherever a MOMENT or a RECORD is asked for: %s.
`+"`--from`"+` and `+"`--to`"+` bound a part of the journal, both with all of the moment. `+"`--limit N`"+` is the first N; without
it lists are complete.

`, root.Long, momentForms)
	b.WriteString("## Flags of every verb\n\n" + block(root.PersistentFlags().FlagUsages()))
	for _, g := range root.Groups() {
		id, about, _ := strings.Cut(g.Title, ": ")
		fmt.Fprintf(&b, "## %s\n\n%s%s.\n\n", id, strings.ToUpper(about[:1]), about[1:])
		for _, verb := range root.Commands() {
			if verb.GroupID == g.ID {
				describeVerb(&b, verb)
			}
		}
	}
	b.WriteString("## others\n\n`worldctl help` and `worldctl completion` are as in other programs.\n\n")
	for _, verb := range root.Commands() {
		if verb.GroupID == "" && verb.IsAvailableCommand() {
			describeVerb(&b, verb)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// describeVerb writes a verb and those below it.
func describeVerb(b *strings.Builder, verb *cobra.Command) {
	fmt.Fprintf(b, "### %s\n\n%s.\n\n", verb.CommandPath(), strings.TrimSuffix(verb.Short, "."))
	if !verb.HasSubCommands() || verb.Example != "" {
		text := verb.UseLine()
		if verb.Long != "" && verb.Long != verb.Short {
			text += "\n\n" + verb.Long
		}
		if flags := verb.LocalNonPersistentFlags().FlagUsages(); flags != "" {
			text += "\n\n" + strings.TrimRight(flags, "\n")
		}
		b.WriteString(block(text))
		if verb.Example != "" {
			b.WriteString("Examples:\n\n" + block(strings.TrimRight(unindented.ReplaceAllString(verb.Example, ""), "\n")))
		}
	}
	for _, below := range verb.Commands() {
		if below.IsAvailableCommand() {
			describeVerb(b, below)
		}
	}
}

var unindented = regexp.MustCompile(`(?m)^  `)

// block is text as it stands.
func block(text string) string { return "```text\n" + strings.TrimRight(text, "\n") + "\n```\n\n" }
