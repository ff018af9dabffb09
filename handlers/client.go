package handlers

import (
	"net/http"
	"net/netip"
	"strings"
)

// clientOf is the address that a request comes from, for the log. Behind listed
// proxies it is the last address in X-Forwarded-For that is none of theirs: what
// stands before that one the client may have made up.
func (s *server) clientOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	client := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && s.isProxy(client); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = next.Unmap()
	}
	return client.String()
}

func (s *server) isProxy(a netip.Addr) bool {
	for _, network := range s.proxies {
		if network.Contains(a) {
			return true
		}
	}
	return false
}
