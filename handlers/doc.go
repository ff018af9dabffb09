// Package handlers is the HTTP edge: it turns requests of a dialect into
// engine.Requests, and engine.Events into that dialect's answers. Package cmd
// builds the handler with New and the server around it with NewServer.
//
// A request passes these files, each of which can end it with an error:
//
//	exchange.go   gives it an id, catches panics, times it, logs it
//	handlers.go   finds the route; unknown paths and methods end here
//	auth.go       checks the API key
//	body.go       checks the content type, reads and unpacks the body
//	target.go     checks that it is JSON, finds the model and the model's size limit
//	X_request.go  decodes and checks the parameters of dialect X (decode.go); its tools
//	              and formats have files beside it (schema.go)
//	X.go          hands the request to the model's engine (generate.go)
//	X_response.go says the events in the words of dialect X, whole or as a stream (sse.go)
//
// Errors are *engine.Error all the way; errors.go alone knows the status of a
// code and the shape of an error body.
//
// Everything runs in the goroutine that net/http gives the request. When the
// client leaves, the request's context ends, and with it the generation. A
// stream's keep-alive timer is the only other goroutine; it shares the writer
// under sse.mu.
package handlers
