package handlers

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/b3os/b3infer/engine"
)

// A body must come at this pace at least, so that slow senders cannot hold
// connections.
const (
	paceBytes = 64 << 10
	paceTime  = 30 * time.Second
)

// readBody reads a JSON request's body, unpacked, of at most limit bytes.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, err error) {
	packed, err := checkHeaders(r.Header)
	if err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(fmt.Sprint(r.ContentLength), "this server", limit)
	}
	paced := &pacedReader{from: r.Body, conn: http.NewResponseController(w)}
	defer func() {
		// Of a body that came too slowly the server must not wait for the rest.
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			paced.done()
		}
	}()
	var from io.Reader = paced
	if packed {
		unpacker, err := gzip.NewReader(paced)
		if err != nil {
			return nil, bodyError(err, packed)
		}
		from = unpacker
	}
	body, err = io.ReadAll(io.LimitReader(from, limit+1))
	switch {
	case err != nil:
		return nil, bodyError(err, packed)
	case int64(len(body)) > limit:
		return nil, tooLarge(fmt.Sprintf("over %d", limit), "this server", limit)
	case len(body) == 0:
		return nil, &engine.Error{Code: engine.CodeInvalid, Message: "the request has no body; send a JSON object"}
	}
	return body, nil
}

// checkHeaders refuses bodies that are not JSON and tells whether the body is
// packed with gzip.
func checkHeaders(h http.Header) (packed bool, err error) {
	mediaType, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/json") {
		return false, &engine.Error{Code: codeMediaType, Message: "expected Content-Type: application/json"}
	}
	switch encoding := strings.ToLower(h.Get("Content-Encoding")); encoding {
	case "", "identity":
		return false, nil
	case "gzip":
		return true, nil
	}
	return false, &engine.Error{Code: codeMediaType, Message: "this Content-Encoding is not supported; send gzip or none"}
}

// tooLarge is the error for a body of size bytes where who takes limit.
func tooLarge(size, who string, limit int64) error {
	return &engine.Error{
		Code:    codeTooLarge,
		Message: fmt.Sprintf("Request body is %s bytes; %s accepts at most %d", size, who, limit),
	}
}

// bodyError says why a body could not be read.
func bodyError(err error, packed bool) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		message := fmt.Sprintf("the request body came too slowly; %d KiB must arrive every %d seconds",
			paceBytes>>10, int(paceTime.Seconds()))
		return &engine.Error{Code: codeSlow, Message: message, Err: err}
	case errors.Is(err, io.EOF) && packed:
		return &engine.Error{Code: engine.CodeInvalid, Message: "the request has no body; send a JSON object", Err: err}
	case packed:
		return &engine.Error{Code: engine.CodeInvalid, Message: "the request body is not valid gzip, or ends early", Err: err}
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: "the request body ends early", Err: err}
}

// A pacedReader ends with os.ErrDeadlineExceeded when a connection sends less
// than paceBytes in paceTime. A server-wide ReadTimeout cannot do this: it
// would also end the context of the request while its answer is generated.
type pacedReader struct {
	from io.Reader
	conn *http.ResponseController
	left int // bytes until the deadline is moved
}

func (p *pacedReader) Read(b []byte) (int, error) {
	if p.left <= 0 {
		p.left = paceBytes
		p.setDeadline(time.Now().Add(paceTime))
	}
	n, err := p.from.Read(b)
	p.left -= n
	return n, err
}

// done lifts the deadline.
func (p *pacedReader) done() { p.setDeadline(time.Time{}) }

// setDeadline does nothing where the connection has no deadlines (in tests).
func (p *pacedReader) setDeadline(t time.Time) { _ = p.conn.SetReadDeadline(t) }
