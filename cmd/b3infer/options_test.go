package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFlagsBeforeEnvironmentBeforeDefaults(t *testing.T) {
	tests := []struct {
		name string
		args []string
		env  map[string]string
		want map[string]string
	}{
		{"C002_defaults", nil, nil,
			map[string]string{"parallel": "32", "listen": "127.0.0.1:7700", "queue-timeout": "2m0s", "kv-type": "f16", "gpu-layers": "-1", "api-key": "[]"}},
		{"environment", nil,
			map[string]string{"B3INFER_PARALLEL": "4", "B3INFER_QUEUE_TIMEOUT": "5s", "B3INFER_API_KEY": "a,b", "B3INFER_LISTEN": "", "PARALLEL": "9"},
			map[string]string{"parallel": "4", "queue-timeout": "5s", "api-key": "[a,b]", "listen": "127.0.0.1:7700"}},
		{"command line", []string{"--parallel", "8", "--api-key", "c"},
			map[string]string{"B3INFER_PARALLEL": "4", "B3INFER_API_KEY": "a,b"},
			map[string]string{"parallel": "8", "api-key": "[c]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			flags := serveCommand(t).Flags()
			if err := flags.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }
			if err := fromEnvironment(flags, env); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name := range test.want {
				got[name] = flags.Lookup(name).Value.String()
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("flags (-want +got):\n%s", diff)
			}
		})
	}
}
