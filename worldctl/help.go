package worldctl

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const (
	// firstVerbs are the verbs that --help shows; --help --all shows all.
	firstVerbs = "init send run status intent timeline why test"

	// flagsOfStores are for worlds in a store and for sealed keyrings. All verbs take them; the help of
	// verbsOfStores shows them.
	flagsOfStores = "copies store take passphrase-file"
	verbsOfStores = "init serve store node move fork backup restore export import keys ui"
)

// helpText is help.txt: what --help says of each verb.
//
//go:embed help.txt
var helpText string

// verbText is what it says of one.
type verbText struct{ short, long, example string }

// verbTexts returns the sections of help.txt by the verbs in their headings.
func verbTexts() map[string]verbText {
	all, shared := map[string]verbText{}, []string{"{moments}", momentForms}
	for _, section := range strings.Split(helpText, "\n# ")[1:] {
		section, t := strings.TrimRight(section, "\n"), verbText{}
		if at := strings.LastIndex(section, "\n\n  "); at >= 0 {
			section, t.example = section[:at], section[at+2:]
		}
		heading, long, _ := strings.Cut(section, "\n\n")
		if strings.HasPrefix(heading, "{") {
			shared = append(shared, heading, long)
			continue
		}
		path, short, _ := strings.Cut(heading, ": ")
		t.long = strings.NewReplacer(shared...).Replace(long)
		t.short = cmp.Or(short, firstSentence(t.long))
		all[path] = t
	}
	return all
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(strings.ReplaceAll(text, "\n", " "), ". ")
	sentence, _, _ = strings.Cut(sentence, ": ")
	return strings.TrimSuffix(sentence, ".")
}

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

func unknownVerb(cmd *cobra.Command, verb string) error {
	hint := "type " + cmd.CommandPath() + " --help"
	if like := suggested(cmd, verb); len(like) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(like, " or ") + "?"
	}
	return usagef(hint, "%s has no verb %q", cmd.CommandPath(), verb)
}

// suggested returns the verbs of a command that look like what was typed.
func suggested(cmd *cobra.Command, typed string) []string {
	if cmd.SuggestionsMinimumDistance == 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	return cmd.SuggestionsFor(typed)
}

// flagError explains a flag that a command does not have, or does not take so. A mistyped
// verb is the likelier mistake where there is one: a word before the flag, unless it may be what
// the command itself takes.
func flagError(cmd *cobra.Command, err error) error {
	before, takes := cmd.Flags().Args(), strings.Contains(cmd.Use, " ")
	if cmd.HasSubCommands() && len(before) > 0 && (!takes || len(suggested(cmd, before[0])) > 0) {
		return unknownVerb(cmd, before[0])
	}
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		hint = likeFlag(cmd, cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName()))
	}
	return usagef(cmp.Or(hint, "type "+cmd.CommandPath()+" --help"), "%s", wrongFlag(err))
}

// wrongFlag says what is wrong with a flag, without the words of the library that found it.
func wrongFlag(err error) string {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return "unknown flag: -" + unknown.GetSpecifiedName()
	case errors.As(err, &bare):
		return fmt.Sprintf("--%s takes %s, and there is none", bare.GetFlag().Name, takenBy(bare.GetFlag()))
	case errors.As(err, &wrong):
		return fmt.Sprintf("--%s takes %s, not %q", wrong.GetFlag().Name, takenBy(wrong.GetFlag()), wrong.GetValue())
	case errors.As(err, &syntax):
		return fmt.Sprintf("%q does not read as a flag", syntax.GetSpecifiedFlag())
	}
	return err.Error()
}

// takenBy says what a flag takes.
func takenBy(f *pflag.Flag) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int", "uint64":
		return "a whole number"
	case "uintSlice":
		return "whole numbers with commas between"
	case "stringSlice":
		return "words with commas between"
	case "duration":
		return "a duration such as 10s or 5m"
	case boundType:
		return "a number that is not 0"
	case spanType:
		return "a duration that is not 0, such as 10s or 5m"
	case heldType:
		return "a size of 1MiB or more, such as 512MiB"
	case sizeType:
		return "a size such as 512MiB or 16GiB"
	}
	what, _ := pflag.UnquoteUsage(f)
	return what
}

// likeFlag says which flag was meant, or which verbs have it; empty: nobody knows.
func likeFlag(cmd *cobra.Command, typed string) string {
	if len(typed) == 1 {
		return ""
	}
	names := new(cobra.Command) // cobra knows which names look like each other
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		names.AddCommand(&cobra.Command{Use: f.Name, Run: func(*cobra.Command, []string) {}})
	})
	if like := suggested(names, typed); len(like) > 0 {
		return "did you mean --" + strings.Join(like, " or --") + "?"
	}
	var others []string
	for _, verb := range allVerbs(cmd.Root()) {
		if verb.LocalFlags().Lookup(typed) != nil {
			others = append(others, verb.CommandPath())
		}
	}
	if len(others) == 0 || len(others) > 3 {
		return ""
	}
	return "it is a flag of " + strings.Join(others, " and of ") + "; type " + cmd.CommandPath() + " --help"
}

// allVerbs returns the verbs that can be typed, and theirs, in the order of --help.
func allVerbs(cmd *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, verb := range cmd.Commands() {
		if verb.IsAvailableCommand() {
			out = append(append(out, verb), allVerbs(verb)...)
		}
	}
	return out
}
