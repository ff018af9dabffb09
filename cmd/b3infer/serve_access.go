package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/b3os/b3infer/accounts"
)

// accessOptions say who may ask, and through what.
type accessOptions struct {
	apiKeys         []string
	noAuth          bool
	hosts, origins  []string
	proxies         []string
	tlsCert, tlsKey string
}

func (o *accessOptions) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&o.apiKeys, "api-key", nil, "a `key` that clients must send, besides those of b3infer keys; several have commas between them")
	flags.BoolVar(&o.noAuth, "insecure-no-auth", false, "let everyone in who reaches an address that is not this computer's own, as long as there is no key")
	flags.StringSliceVar(&o.hosts, "allow-host", nil, "a `name` by which a server without keys may be asked, besides localhost and addresses; * is any")
	flags.StringSliceVar(&o.origins, "cors-origin", nil, "an `origin`, such as https://app.example, whose web pages may call; * is any")
	flags.StringSliceVar(&o.proxies, "trusted-proxy", nil, "a `network`, such as 10.0.0.0/8, whose X-Forwarded-For is believed")
	flags.StringVar(&o.tlsCert, "tls-cert", "", "the certificate chain's PEM `file`, to speak HTTPS; needs --tls-key")
	flags.StringVar(&o.tlsKey, "tls-key", "", "the private key's PEM `file`")
}

// check finds what is wrong with the flags by themselves.
func (o *accessOptions) check() error {
	if slices.ContainsFunc(o.apiKeys, func(key string) bool { return strings.TrimSpace(key) == "" }) {
		return errors.New("--api-key: a key is empty")
	}
	for _, origin := range o.origins {
		if u, err := url.Parse(origin); origin != "*" && (err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
			return fmt.Errorf("--cors-origin %s: must be a scheme and a host, such as https://app.example, or *", origin)
		}
	}
	if _, err := o.networks(); err != nil {
		return err
	}
	if (o.tlsCert == "") != (o.tlsKey == "") {
		return errors.New("--tls-cert and --tls-key are needed together")
	}
	return nil
}

// networks are those of --trusted-proxy. An address alone is a network.
func (o *accessOptions) networks() ([]netip.Prefix, error) {
	var list []netip.Prefix
	for _, text := range o.proxies {
		network, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			network, err = address.Prefix(address.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("--trusted-proxy %s: must be an address or a network, such as 10.0.0.0/8", text)
		}
		list = append(list, network.Masked())
	}
	return list, nil
}

// allowedHosts are the names that a server without keys answers to. Whoever
// lets everyone in may be called anything.
func (o *accessOptions) allowedHosts() []string {
	if o.noAuth {
		return append([]string{"*"}, o.hosts...)
	}
	return o.hosts
}

// checkAddress refuses to serve other computers without a key.
func (o *accessOptions) checkAddress(listen string, store *accounts.Store) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.IsLoopback() || len(o.apiKeys) > 0 || store.HasKeys() || o.noAuth {
		return nil
	}
	return fmt.Errorf("%s can be reached from other computers, and there is no API key: "+
		"make one with b3infer keys create (or give one with --api-key), or let everyone in with --insecure-no-auth", listen)
}

// tls is the configuration of HTTPS, or nil for HTTP.
func (o *accessOptions) tls() (*tls.Config, error) {
	if o.tlsCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.tlsCert, o.tlsKey)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}, nil
}
