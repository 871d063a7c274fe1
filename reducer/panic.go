package reducer

import "fmt"

// PanicError says that the code of a cell panicked: its step fails by it, as by any error.
type PanicError struct{ Fault string }

func (e *PanicError) Error() string { return "it panicked: " + e.Fault }

// Reduce has r handle an event. A panic of its is an error.
func Reduce(r Reducer, in *Input, out *Output) (err error) {
	defer caught(&err)
	return r.Reduce(in, out)
}

// Migrate has m take over a state. A panic of its is an error.
func Migrate(m Migrator, in *Input, out *Output) (err error) {
	defer caught(&err)
	return m.Migrate(in, out)
}

func caught(err *error) {
	switch fault := recover().(type) {
	case nil:
	case error, string, fmt.Stringer:
		*err = &PanicError{fmt.Sprint(fault)}
	default: // it may have addresses in it, which are others in each process
		*err = &PanicError{fmt.Sprintf("with a %T", fault)}
	}
}
