package handlers

import "github.com/b3os/b3infer/engine"

// DecodeChat is what the body of a chat completion asks of an engine, for the
// commands that show what becomes of a request. Errors are *engine.Error.
func DecodeChat(body []byte) (*engine.Request, error) {
	var wire chatRequest
	if err := decode(body, &wire, strict); err != nil {
		return nil, err
	}
	return wire.toRequest()
}
