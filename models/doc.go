// Package models knows the model files that the server can serve: their names
// and what a GGUF file says about itself.
//
// The command calls Inspect before it loads a model, so that a file that is
// missing, cut short or not understood is told in one line, and so that the
// memory a model needs is known before it is taken. Nothing here reads the
// weights: a file of any size is inspected in milliseconds. Files are not
// trusted; a hostile one yields an error, bounded in time and memory by its
// header.
package models
