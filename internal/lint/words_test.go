package lint

import (
	"go/ast"
	"go/doc"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// pointing are words that name nothing: where they are a fifth of a sentence, it has to be decoded.
var pointing = []string{"that", "what", "who", "where", "it", "one", "those", "none", "nobody"}

var word = regexp.MustCompile(`[A-Za-z]+('[a-z]+)?`)

// hard reports whether a sentence has a fifth or more of pointing words.
func hard(sentence string) bool {
	words := word.FindAllString(strings.ToLower(sentence), -1)
	n := 0
	for _, w := range words {
		if slices.Contains(pointing, w) {
			n++
		}
	}
	return n > 0 && n*5 >= len(words)
}

// firstSentences calls f with the first sentence of each comment of an exported name.
func firstSentences(r *room, f func(at token.Pos, sentence string)) {
	var p doc.Package
	say := func(c *ast.CommentGroup) {
		if c != nil {
			f(c.Pos(), p.Synopsis(c.Text()))
		}
	}
	for _, file := range r.Syntax {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && ofExported(d) {
					say(d.Doc)
				}
			case *ast.GenDecl:
				if d.Tok == token.IMPORT {
					continue
				}
				for _, spec := range d.Specs {
					own, exported := d.Doc, false
					switch s := spec.(type) {
					case *ast.TypeSpec:
						exported = s.Name.IsExported()
						if s.Doc != nil {
							own = s.Doc
						}
					case *ast.ValueSpec:
						exported = slices.ContainsFunc(s.Names, (*ast.Ident).IsExported)
						if s.Doc != nil {
							own = s.Doc
						}
					}
					if exported {
						say(own)
						if own == d.Doc {
							break // of a group, once
						}
					}
				}
			}
		}
	}
}

// TestFirstSentencesAreReadOnce counts hard first sentences: subject, verb, object, in words of the field.
func TestFirstSentencesAreReadOnce(t *testing.T) {
	require.True(t, hard("Signed is a checkpoint and who of those that one asked about has signed it."))
	require.False(t, hard("Signed is a checkpoint with the signers, among the keys asked for, whose signature is valid."))
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	all, found := 0, []string(nil)
	for _, r := range load(t, root) {
		firstSentences(r, func(at token.Pos, sentence string) {
			all++
			if hard(sentence) {
				pos := r.Fset.Position(at)
				rel, _ := filepath.Rel(root, pos.Filename)
				found = append(found, rel+":"+strings.TrimPrefix(pos.String()[len(pos.Filename):], ":")+": "+sentence)
			}
		})
	}
	require.Empty(t, found, "%d of %d first sentences have a fifth or more of words that name nothing (%s):\n%s",
		len(found), all, strings.Join(pointing, ", "), strings.Join(found, "\n"))
}
