package main

import (
	"errors"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/b3os/b3infer/handlers"
)

// gatewayOptions say who answers for models that are not here.
type gatewayOptions struct {
	url, key string
	timeout  time.Duration
}

func (o *gatewayOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&o.url, "gateway-url", "", "the base `URL` of a server with OpenAI's API, which answers requests with \"route\": \"gateway\"\nfor models that are not here, such as https://api.openai.com/v1")
	flags.StringVar(&o.key, "gateway-key", "", "that server's API `key`")
	flags.DurationVar(&o.timeout, "gateway-timeout", 2*time.Minute, "how long that server may be silent")
}

// check finds what is wrong with the flags by themselves.
func (o *gatewayOptions) check() error {
	if o.timeout <= 0 {
		return errors.New("--gateway-timeout must be above 0")
	}
	if o.url == "" {
		if o.key != "" {
			return errors.New("--gateway-key needs --gateway-url")
		}
		return nil
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--gateway-url must be like https://api.openai.com/v1, without a user or a query")
	}
	return nil
}

func (o *gatewayOptions) gateway() handlers.Gateway {
	return handlers.Gateway{URL: o.url, Key: o.key, Timeout: o.timeout}
}
