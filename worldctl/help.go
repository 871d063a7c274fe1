package worldctl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

const (
	// firstVerbs are the verbs that --help shows; --help --all shows all.
	firstVerbs = "init send run status intent timeline why test"

	// flagsOfStores are for worlds in a store and for sealed keyrings. All verbs take them; the help of
	// verbsOfStores shows them.
	flagsOfStores = "copies store take passphrase-file"
	verbsOfStores = "init serve store node move fork backup restore export import keys ui"
)

// shortHelp has the program's own help name the first verbs and the groups of the others, and the help of
// verbs leave out the flags of stores where they are for others.
func shortHelp(root *cobra.Command) {
	all := root.Flags().Bool("all", false, "with --help: all verbs, and all flags that every verb takes")
	whole := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		top := cmd
		for top.HasParent() && top.Parent() != root {
			top = top.Parent()
		}
		for name := range strings.FieldsSeq(flagsOfStores) {
			root.PersistentFlags().Lookup(name).Hidden = !*all && !slices.Contains(strings.Fields(verbsOfStores), top.Name())
		}
		if cmd != root || *all {
			whole(cmd, args)
			return
		}
		fmt.Fprint(cmd.OutOrStdout(), firstHelp(root))
	})
}

// firstHelp is what --help prints.
func firstHelp(root *cobra.Command) string {
	var b strings.Builder
	paragraphs := strings.SplitN(root.Long, "\n\n", 3)
	fmt.Fprintf(&b, "%s\n\n%s\n\nThe first verbs:\n", paragraphs[0], paragraphs[1])
	for name := range strings.FieldsSeq(firstVerbs) {
		verb, _, _ := root.Find([]string{name})
		fmt.Fprintf(&b, "  %-10s  %s\n", name, verb.Short)
	}
	b.WriteString("\nGroups of verbs:\n")
	for _, g := range root.Groups() {
		id, about, _ := strings.Cut(g.Title, ": ")
		fmt.Fprintf(&b, "  %-12s  %s\n", id, about)
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\n\nFlags:\n%s\n%[3]s VERB --help explains a verb, %[3]s --help --all lists all of them.\n",
		root.Example, root.LocalFlags().FlagUsages(), root.Name())
	return b.String()
}
