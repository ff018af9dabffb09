package engine

import (
	"fmt"
	"time"
)

// Code says what kind of failure an Error is.
type Code string

// The codes that clients see, by the names that the API's pages give them.
const (
	CodeInvalid     Code = "invalid_request"           // the request is wrong
	CodeUnsupported Code = "unsupported_parameter"     // it asks for what is not offered
	CodeContext     Code = "context_length_exceeded"   // the prompt does not fit
	CodeUnavailable Code = "infer_backend_unavailable" // the model is loading, draining or stuck
	CodeOverloaded  Code = "capacity_unavailable"      // the queue is full, or the wait was too long
	CodeInternal    Code = "internal"                  // our fault
)

// An Error is a failure that a client may be told of. Param names the request
// field by its dotted path as the handlers know it, where one is to blame.
type Error struct {
	Code    Code
	Message string
	Param   string
	// RetryAfter is when to try again; meant for CodeUnavailable and CodeOverloaded.
	RetryAfter time.Duration
	// Err is the cause, for the log alone.
	Err error
}

func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Message, e.Err)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Message)
}

func (e *Error) Unwrap() error { return e.Err }
