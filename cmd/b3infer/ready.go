package main

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
)

// countText is a number of parameters as models are named after it.
func countText(n uint64) string {
	switch {
	case n >= 1e9:
		return fmt.Sprintf("%.1fB parameters", float64(n)/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.0fM parameters", float64(n)/1e6)
	default:
		return fmt.Sprintf("%d parameters", n)
	}
}

// reachable is an address that this computer reaches a listener at.
func reachable(address net.Addr) string {
	tcp, ok := address.(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return address.String()
	}
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(tcp.Port))
}

// url is where this computer reaches a listener.
func (s *server) url(address net.Addr) string {
	if s.o.access.tlsCert != "" {
		return "https://" + reachable(address)
	}
	return "http://" + reachable(address)
}

// curl is a command that asks the server something.
func (s *server) curl(address net.Addr) string {
	model, _ := json.Marshal(s.o.alias) // a string: it cannot fail
	body := fmt.Sprintf(`{"model": %s, "messages": [{"role": "user", "content": "Say hello."}]}`, model)
	key := ""
	if len(s.o.access.apiKeys) > 0 || s.store.HasKeys() {
		key = ` -H "Authorization: Bearer $B3INFER_API_KEY"`
	}
	return fmt.Sprintf("curl %s/v1/chat/completions%s -H 'Content-Type: application/json' -d %s",
		s.url(address), key, shellQuote(body))
}

// shellQuote makes one word of a text for a POSIX shell.
func shellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
