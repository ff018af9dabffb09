package gpucheck

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// A request is the part of a chat completion's body that varies here.
type request struct {
	Model       string    `json:"model"`
	Messages    []message `json:"messages"`
	MaxTokens   int       `json:"max_tokens"`
	Temperature float64   `json:"temperature"`
	Seed        int       `json:"seed"`
	Stream      bool      `json:"stream,omitempty"`
	Options     *options  `json:"stream_options,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type options struct {
	IncludeUsage bool `json:"include_usage"`
}

// An answer is what a client has in the end, streamed or not.
type answer struct {
	Text, Finish string
	Tokens       int
}

// body is what both forms of an answer look like.
type body struct {
	Choices []struct {
		Message      *message `json:"message"`
		Delta        *message `json:"delta"`
		FinishReason string   `json:"finish_reason"`
	} `json:"choices"`
	Usage struct {
		CompletionTokens int `json:"completion_tokens"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// post sends a request; the caller closes the body.
func (s *server) post(ctx context.Context, r request) (io.ReadCloser, error) {
	r.Model = s.model
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/chat/completions", bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(post)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body) // the status is the failure
		return nil, fmt.Errorf("%s: %s", response.Status, text)
	}
	return response.Body, nil
}

// complete asks for a whole answer.
func (s *server) complete(ctx context.Context, r request) (answer, error) {
	response, err := s.post(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer response.Close()
	var b body
	if err := json.NewDecoder(response).Decode(&b); err != nil {
		return answer{}, err
	}
	if len(b.Choices) != 1 || b.Choices[0].Message == nil {
		return answer{}, fmt.Errorf("no message in %+v", b)
	}
	return answer{b.Choices[0].Message.Content, b.Choices[0].FinishReason, b.Usage.CompletionTokens}, nil
}

// stream asks for an answer in pieces and puts it together.
func (s *server) stream(ctx context.Context, r request) (answer, error) {
	r.Stream, r.Options = true, &options{IncludeUsage: true}
	response, err := s.post(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer response.Close()
	var a answer
	var text strings.Builder
	for lines := bufio.NewScanner(response); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if data == "[DONE]" {
			a.Text = text.String()
			return a, nil
		}
		var b body
		if err := json.Unmarshal([]byte(data), &b); err != nil {
			return a, fmt.Errorf("%w in %s", err, data)
		}
		if b.Error != nil {
			return a, fmt.Errorf("stream: %s", b.Error)
		}
		a.Tokens += b.Usage.CompletionTokens
		for _, c := range b.Choices {
			text.WriteString(c.Delta.Content)
			a.Finish += c.FinishReason
		}
	}
	return a, errors.New("the stream ends without [DONE]")
}
