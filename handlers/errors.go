package handlers

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/b3os/b3infer/engine"
)

// The codes of failures that the engine knows nothing of.
const (
	codeUnauthorized engine.Code = "unauthorized"
	codeCredits      engine.Code = "credits_exhausted"
	codeForbidden    engine.Code = "forbidden"
	codeModel        engine.Code = "model_not_available"
	codePath         engine.Code = "not_found"
	codeMethod       engine.Code = "method_not_allowed"
	codeSlow         engine.Code = "request_timeout"
	codeTooLarge     engine.Code = "payload_too_large"
	codeMediaType    engine.Code = "unsupported_media_type"
	codeURI          engine.Code = "uri_too_long"
	codeHeaders      engine.Code = "headers_too_large"
	codeRate         engine.Code = "rate_limited"
	codeInFlight     engine.Code = "concurrency_limited"
	codeQuota        engine.Code = "quota_exceeded"
)

// A verdict is what a code means in HTTP and in OpenAI's words.
type verdict struct {
	status int
	kind   string // error.type
}

// verdicts is the one place that knows a code's status.
var verdicts = map[engine.Code]verdict{
	engine.CodeInvalid:     {http.StatusBadRequest, "invalid_request_error"},
	engine.CodeUnsupported: {http.StatusBadRequest, "invalid_request_error"},
	engine.CodeContext:     {http.StatusBadRequest, "invalid_request_error"},
	codeUnauthorized:       {http.StatusUnauthorized, "authentication_error"},
	codeCredits:            {http.StatusPaymentRequired, "rate_limit_error"},
	codeForbidden:          {http.StatusForbidden, "permission_error"},
	codeModel:              {http.StatusNotFound, "invalid_request_error"},
	codePath:               {http.StatusNotFound, "invalid_request_error"},
	codeMethod:             {http.StatusMethodNotAllowed, "invalid_request_error"},
	codeSlow:               {http.StatusRequestTimeout, "invalid_request_error"},
	codeTooLarge:           {http.StatusRequestEntityTooLarge, "invalid_request_error"},
	codeMediaType:          {http.StatusUnsupportedMediaType, "invalid_request_error"},
	codeURI:                {http.StatusRequestURITooLong, "invalid_request_error"},
	codeHeaders:            {http.StatusRequestHeaderFieldsTooLarge, "invalid_request_error"},
	codeRate:               {http.StatusTooManyRequests, "rate_limit_error"},
	codeInFlight:           {http.StatusTooManyRequests, "rate_limit_error"},
	codeQuota:              {http.StatusTooManyRequests, "rate_limit_error"},
	engine.CodeInternal:    {http.StatusInternalServerError, "server_error"},
	engine.CodeUnavailable: {http.StatusServiceUnavailable, "server_error"},
	engine.CodeOverloaded:  {http.StatusServiceUnavailable, "server_error"},
}

// statusGone stands in the log where the client left before an answer. It is
// nginx's number and never sent.
const statusGone = 499

// public is err as the client may see it. Whatever is not an *engine.Error of
// a known code is internal, and of an internal error only the request id is
// told.
func public(err error, requestID string) (*engine.Error, verdict) {
	if e, ok := errors.AsType[*engine.Error](err); ok && e.Code != engine.CodeInternal {
		if v, ok := verdicts[e.Code]; ok {
			return e, v
		}
	}
	message := fmt.Sprintf("internal error (request %s)", requestID)
	return &engine.Error{Code: engine.CodeInternal, Message: message}, verdicts[engine.CodeInternal]
}

// setErrorHeaders sets the headers that go with an error. A limit that a request
// will always be above has no time to wait for, and OpenAI's SDKs, which try a
// 429 again, are told not to.
func setErrorHeaders(h http.Header, e *engine.Error, v verdict) {
	switch {
	case v.status == http.StatusUnauthorized:
		h.Set("WWW-Authenticate", "Bearer")
	case v.status == http.StatusTooManyRequests && e.RetryAfter == 0:
		h.Set("X-Should-Retry", "false")
	case v.status == http.StatusTooManyRequests, v.status == http.StatusServiceUnavailable:
		h.Set("Retry-After", strconv.Itoa(retrySeconds(e.RetryAfter)))
	}
}

// retrySeconds rounds up, so that a client that waits this long gets in.
func retrySeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

// appendError appends OpenAI's error body.
func appendError(dst []byte, e *engine.Error, v verdict) []byte {
	dst = append(dst, `{"error":{"message":`...)
	dst = appendString(dst, e.Message)
	dst = append(dst, `,"type":"`...)
	dst = append(dst, v.kind...)
	dst = append(dst, `","param":`...)
	if e.Param == "" {
		dst = append(dst, `null`...)
	} else {
		dst = appendString(dst, e.Param)
	}
	dst = append(dst, `,"code":"`...)
	dst = append(dst, e.Code...)
	return append(dst, `"}}`...)
}
