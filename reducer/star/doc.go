// Package star runs reducers written in Starlark. docs/starlark.md is for who writes them: every name
// that they can use, with an example. It is a part of worldctl, and not an API.
//
// # A program
//
// A program is one file, with the modules that it loads ([Code]), that defines
//
//	def reduce(ctx, state, event):
//	    state = state or {"count": 0}
//	    state["count"] += 1
//	    ctx.emit("counted", {"count": state["count"]})
//	    return state
//
// state is None for a new cell, else what reduce returned last; returning None
// deletes the cell. event has a name and data. What reduce changes besides its
// state lasts no longer than the step: the module's globals are frozen, and
// state and event data are new values each time.
//
// ctx has
//
//	ctx.emit(name, data=None, key="")                  an event, through the manifest's routes
//	ctx.effect(kind, params=None, tag="", cap="")      something to be done outside
//	ctx.timer(after_ticks, name, data=None, tag="")    an event to this cell, later
//	ctx.cancel(tag)                                    what was asked for under the tag, no more
//	ctx.time, ctx.cell, ctx.key                        the tick, "reducer/key" and the key
//	ctx.random(n)                                      an integer from 0 to n-1
//	ctx.params, ctx.schemas                            what the manifest gives; see [Setting]
//
// A program may also define
//
//	def migrate(state):
//	    return {"count": state["n"]}
//
// When it is put in force in the place of other code, migrate gets every state
// that this has left and returns the one to go on with. Without it states stay as
// they are. fail(...) in it keeps the program from being put in force.
//
// fail(...) fails the step: the cell keeps its state and nothing is emitted.
//
// # The language
//
// Starlark as go.starlark.net has it, with sets, while loops and recursion. print
// has no effect but that of Input.OnPrint. Added are math.floor, math.ceil, math.round
// (half away from zero), math.sqrt, json.encode and json.decode(text, default).
// Different are:
//
//   - None, True and False cannot be redefined.
//   - Integers have at most 4096 bits ([MaxIntBits]). Wider ones in states and
//     events can be compared and passed on, and nothing else.
//   - range takes integers of 32 bits.
//   - Calls nest at most about 1000 deep, and values 64 deep when they are
//     printed, encoded or put into a tuple.
//   - A function has at most 255 parameters, a program [MaxSourceBytes] bytes.
//
// # Data
//
// States, event data and params are None, bool, int, finite float, string
// (UTF-8), bytes, list or tuple, and dict with string keys. Anything else
// fails the step with the way to it: "state.items[3].price: a float that is
// nan has no canonical form". A tuple comes back as a list, -0.0 as 0.0, a list
// that is reached twice as two lists, and a dict in the order of its encoded
// keys (shorter keys first, then bytewise).
//
// # Limits
//
// A step is charged one unit of gas for each instruction of the interpreter,
// for each 64 bytes of memory that an operation fills, and for each 512 bytes
// that it only reads or moves; decoding the state and encoding the results
// included. The step fails when it is charged more than limits.gas. One string,
// list, dict or other value may have limits.value bytes, reckoned at 16 bytes an
// item and 64 a dict entry; encoded states have limits.state. Errors of limits
// wrap [reducer.ErrLimit]. Every error names the line of the program:
// "agent.star:12:9: limit exceeded: …".
//
// # How memory is bounded
//
// The library counts steps, but one step can take any amount of memory or time:
// [0] * 100000000 is five. So the syntax tree is rewritten before it is
// compiled. Each operator, method and function that can make something large, or
// walk something that is large as a tree, becomes a call of a hidden built-in
// that works out the size first, refuses what is over a limit, charges the rest
// and only then asks the library. Operators with a literal that leaves them
// nothing expensive to do (n + 1, x == "a") stay as they are. Evaluation order,
// results and positions do not change.
//
// The charges are part of the meaning of a program, because a step that runs out
// of gas fails: whoever changes one changes [Version].
package star
