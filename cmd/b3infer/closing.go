package main

import (
	"errors"
	"io"
)

// closing closes c at the end of a function that fails with err, or not, and
// returns what it fails with then.
func closing(err error, c io.Closer) error {
	if closeErr := c.Close(); err == nil || closeErr == nil {
		return errors.Join(err, closeErr)
	}
	return err // the first failure is the cause
}
