// Package lint holds the house rules that no linter knows, as tests over the
// type-checked program:
//
//   - floors: imports stay within a top folder or go down, and every folder has a floor
//   - purity: the kernel and what it is made of hold no I/O, clock, randomness, goroutine, channel,
//     lock, log, float arithmetic, or range over a map whose order can show
//   - words: at most one first sentence of a hundred is hard to read; documents link to and
//     name what there is
//   - shape: functions of at most 60 lines, files of at most 450, files named
//     after what they hold, a doc comment on every exported name, a reason
//     behind every nolint
//
// Each message names what to use instead. Rules are for non-test files; a test
// over testdata/bad.txtar proves that each of them fires.
package lint
