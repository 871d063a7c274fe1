package worldctl

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// moved says how what an earlier version took is typed now; empty: it took no such
// thing. A flag is named with the verb that it was of.
func moved(cmd *cobra.Command, typed string) string {
	_, path, _ := strings.Cut(cmd.CommandPath()+" "+typed, " ")
	switch path {
	case "state", "state diff":
		return "worldctl diff CELL A B"
	case "snapshot diff":
		return "worldctl diff A B"
	case "manifest diff":
		return "worldctl diff A B, where one of them is a world.yaml, or worldctl diff manifest A B"
	case "tail --since", "audit --from-id":
		return "type --from RECORD"
	case "tail --limit":
		return "type --last N"
	case "audit --to-id":
		return "type --to RECORD"
	case "audit --from-time":
		return "type --from tTICK, such as --from t100"
	case "audit --to-time":
		return "type --to tTICK, such as --to t200"
	}
	return ""
}

func unknownVerb(cmd *cobra.Command, verb string) error {
	hint := moved(cmd, verb)
	if like := suggested(cmd, verb); hint == "" && len(like) > 0 {
		hint = "did you mean " + cmd.CommandPath() + " " + strings.Join(like, " or ") + "?"
	}
	if hint == "" {
		hint = "type " + cmd.CommandPath() + " --help"
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

// flagError explains a flag that a command does not have. A mistyped verb is
// the likelier mistake where there is one.
func flagError(cmd *cobra.Command, err error) error {
	if before := cmd.Flags().Args(); cmd.HasSubCommands() && len(before) > 0 {
		return unknownVerb(cmd, before[0])
	}
	hint := ""
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) {
		hint = likeFlag(cmd, unknown.GetSpecifiedName())
	}
	if hint == "" {
		hint = "type " + cmd.CommandPath() + " --help"
	}
	return usagef(hint, "%w", err)
}

// likeFlag says which flag was meant, or which verbs have it; empty: nobody knows.
func likeFlag(cmd *cobra.Command, typed string) string {
	if hint := moved(cmd, "--"+typed); hint != "" {
		return hint
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
