package handlers

import (
	"net/http"
	"time"
)

// Limits of a connection. Bodies have their own (pacedReader), streams too
// (stream.send): a server-wide read or write time-out would end long answers.
const (
	headerTime = 10 * time.Second // for a request's head
	idleTime   = 2 * time.Minute  // between requests
	// headBytes is where net/http breaks off, in plain text and without a request id.
	// Up to here maxURI and maxHeaders refuse, as the API does.
	headBytes = 256 << 10
)

// NewServer is the HTTP server for h on addr: HTTP/1.1, and HTTP/2 without TLS
// for clients that know it is there (h2c).
func NewServer(addr string, h http.Handler) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headBytes,
		Protocols:         &protocols,
	}
}
