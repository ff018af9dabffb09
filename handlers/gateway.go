package handlers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/b3os/b3infer/engine"
)

// Gateway is a server with OpenAI's API that answers for models which the node
// lacks, when a request asks for that with "route": "gateway".
type Gateway struct {
	// URL is what /chat/completions is added to; empty: there is no gateway.
	URL string
	// Key is its API key. Clients never see it, and it never sees theirs.
	Key string
	// Timeout is how long it may be silent, before its answer and within; 0 means
	// two minutes.
	Timeout time.Duration
}

const (
	gatewayTimeout = 2 * time.Minute
	gatewayRetry   = 5 * time.Second // where the gateway does not say
	// maxGatewayBody bounds an answer that is not streamed, and a line of one that is.
	maxGatewayBody = 64 << 20
	// gatewayModel is what limits and prices of all models behind the gateway are set
	// for: their names are the clients' own words.
	gatewayModel = "gateway"
)

// errSilent ends a call of the gateway that takes too long.
var errSilent = errors.New("the gateway is silent")

// A gateway asks the other server.
type gateway struct {
	Gateway
	client *http.Client
	agent  string
}

// newGateway is nil if there is none.
func newGateway(g Gateway, version string) *gateway {
	if g.URL == "" {
		return nil
	}
	g.URL = strings.TrimRight(g.URL, "/")
	g.Timeout = cmp.Or(g.Timeout, gatewayTimeout)
	return &gateway{g, &http.Client{
		Transport: http.DefaultTransport.(*http.Transport).Clone(),
		// Who follows a redirect sends the key and the prompt elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, "b3infer/" + version}
}

// A call is one request to the gateway.
type call struct {
	ctx     context.Context
	client  context.Context // of the client whose request it is
	stop    context.CancelCauseFunc
	silence *time.Timer
	timeout time.Duration
	answer  *http.Response
}

// ask sends a chat completion to the gateway. The answer's status is 200, and
// close must be called.
func (g *gateway) ask(ctx context.Context, requestID string, body []byte) (_ *call, err error) {
	k := &call{client: ctx, timeout: g.Timeout}
	k.ctx, k.stop = context.WithCancelCause(ctx)
	k.silence = time.AfterFunc(g.Timeout, func() { k.stop(errSilent) })
	defer func() {
		if err != nil {
			k.close()
		}
	}()
	r, err := http.NewRequestWithContext(k.ctx, http.MethodPost, g.URL+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Accept-Encoding", "identity") // packed streams come in lumps
	r.Header.Set("User-Agent", g.agent)
	r.Header.Set("X-Request-Id", requestID)
	if g.Key != "" {
		r.Header.Set("Authorization", "Bearer "+g.Key)
	}
	if k.answer, err = g.client.Do(r); err != nil {
		return nil, k.failure(err)
	}
	if k.answer.StatusCode != http.StatusOK {
		return nil, k.refusal()
	}
	return k, nil
}

// Read reads the answer's body. Each piece gives the gateway time for the next.
func (k *call) Read(b []byte) (int, error) {
	n, err := k.answer.Body.Read(b)
	if n > 0 {
		k.silence.Reset(k.timeout)
	}
	return n, err
}

func (k *call) close() {
	k.silence.Stop()
	k.stop(nil)
	if k.answer != nil {
		k.answer.Body.Close() // what it fails with is the network's, and nothing is awaited any more
	}
}

// failure is what the client is told when the gateway cannot be reached or
// breaks off with err. Of the client's own leaving it is the context's error.
func (k *call) failure(err error) error {
	if k.client.Err() != nil {
		return k.client.Err()
	}
	message := "the gateway cannot be reached"
	switch {
	case errors.Is(context.Cause(k.ctx), errSilent):
		message = fmt.Sprintf("the gateway was silent for %d seconds", int(k.timeout.Seconds()))
	case k.answer != nil:
		message = "the gateway's answer broke off"
	}
	return unavailable(engine.CodeUnavailable, message, gatewayRetry, err)
}

func unavailable(code engine.Code, message string, retry time.Duration, err error) *engine.Error {
	return &engine.Error{Code: code, Message: fmt.Sprintf("%s; retry in %d seconds", message, retrySeconds(retry)), RetryAfter: retry, Err: err}
}

// refusalSize bounds what is read of the gateway's error.
const refusalSize = 64 << 10

// refusal is the gateway's error, as one of ours. What is wrong with the request
// is the client's to know; what is wrong with the gateway or this node's key for
// it is not.
func (k *call) refusal() error {
	text, _ := io.ReadAll(io.LimitReader(k, refusalSize)) // half an error is one too
	var said struct {
		Error struct {
			Message string  `json:"message"`
			Param   *string `json:"param"`
			Code    *string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(text, &said) // what is not OpenAI's error has no words for us
	status := k.answer.StatusCode
	cause := fmt.Errorf("the gateway answered %d", status)
	told := &engine.Error{
		Message: clip(cmp.Or(said.Error.Message, "the gateway refuses this request")),
		Param:   clip(value(said.Error.Param)),
		Err:     cause,
	}
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		told.Code = engine.CodeInvalid
		if value(said.Error.Code) == string(engine.CodeContext) {
			told.Code = engine.CodeContext
		}
	case http.StatusNotFound:
		told.Code, told.Param = codeModel, "model"
	case http.StatusRequestEntityTooLarge:
		told.Code = codeTooLarge
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return unavailable(engine.CodeOverloaded, "the gateway is overloaded", k.retryAfter(), cause)
	default:
		return unavailable(engine.CodeUnavailable, "the gateway failed", k.retryAfter(), cause)
	}
	return told
}

// retryAfter is when the gateway wants to be asked again.
func (k *call) retryAfter() time.Duration {
	seconds, err := strconv.ParseUint(k.answer.Header.Get("Retry-After"), 10, 20)
	if err != nil {
		return gatewayRetry
	}
	return time.Duration(seconds) * time.Second
}
