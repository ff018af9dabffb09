package grammar

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFormats walks each format and asks another implementation. Lists of what
// is in and out of a format keep the patterns from being narrower than needed.
func TestFormats(t *testing.T) {
	tests := map[string]struct{ yes, no []string }{
		"date":                  {[]string{"2024-02-29", "0001-01-01"}, []string{"2023-02-29", "1900-02-29", "2024-04-31", "24-01-01"}},
		"time":                  {[]string{"08:30:06Z", "23:59:59.123+05:30"}, []string{"24:00:00Z", "08:30:06", "08:30Z"}},
		"date-time":             {[]string{"1985-04-12T23:20:50.52Z", "2020-02-29T00:00:00-08:00"}, []string{"2019-02-29T00:00:00Z", "1985-04-12 23:20:50Z"}},
		"duration":              {[]string{"P4DT12H30M5S", "P1Y2M3D", "PT36H", "P2W", "P4Y", "PT1M"}, []string{"P", "PT", "P1YT", "4D", "PT1D", "P2D1Y", "P1W2D"}},
		"email":                 {[]string{"joe.bloggs@example.com", "te~st@example.com", "a+b@c.de"}, []string{"2962", ".a@b.c", "a.@b.c", "a..b@c.d", "a@b@c"}},
		"idn-email":             {[]string{"joe@example.com"}, []string{"2962"}},
		"hostname":              {[]string{"www.example.com", "a-b.c1", "localhost"}, []string{"-a", "a-", "a..b", "a_b", ""}},
		"idn-hostname":          {[]string{"example.com"}, []string{"-a"}},
		"ipv4":                  {[]string{"192.168.0.1", "0.0.0.0", "255.255.255.255"}, []string{"256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5"}},
		"ipv6":                  {[]string{"::1", "::", "12::42:abcd", "1:2:3:4:5:6:7:8", "::ffff:1.2.3.4", "1::8", "1:2:3:4:5:6:7::"}, []string{"12345::", "1:2:3", "::1::", ":::", "1:2:3:4:5:6:7:8:9", "::g"}},
		"uuid":                  {[]string{"2EB8AA08-aa98-11ea-b4aa-73b441d16380"}, []string{"2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638"}},
		"uri":                   {[]string{"http://foo.bar/?baz=qux#quux", "https://example.com:8080/a%20b", "http://127.0.0.1:65535", "file:///etc/hosts", "postgres://user:p%40ss@my_db:5432/x", "mailto:a@b.c", "urn:oasis:names"}, []string{"http://a:65536", "//foo.bar", "/abc", "abc", "http://a b", ":// x"}},
		"iri":                   {[]string{"http://foo.bar/"}, []string{"/abc"}},
		"uri-reference":         {[]string{"http://foo.bar/", "//foo.bar/x", "/abc", "abc", "#frag", "", "?q"}, []string{"\\\\WIN", "#a\\b"}},
		"iri-reference":         {[]string{"/abc"}, []string{"\\\\WIN"}},
		"uri-template":          {[]string{"http://example.com/{term}/{a,b}"}, []string{"{", "/{a"}},
		"json-pointer":          {[]string{"", "/foo/bar~0/baz~1/%a", "/"}, []string{"a", "/a~", "/~2"}},
		"relative-json-pointer": {[]string{"1", "0/foo/bar", "2#"}, []string{"/a", "-1/a", "01/a", "0##"}},
		"byte":                  {[]string{"", "YQ==", "YWI=", "YWJj", "+/+/"}, []string{"Y", "YQ", "YQ=", "Y===", "YW Jj"}},
		"regex":                 {[]string{`^[a-z0-9_]+$`, `\d+|[^a ]*$`, "abc"}, []string{"(a", "[", "*", "a**"}},
	}
	for name, test := range tests {
		schema := fmt.Appendf(nil, `{"type":"string","format":%q}`, name)
		g, err := FromSchema(schema, Options{Strict: true})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, want := map[string]bool{}, map[string]bool{}
		for _, s := range test.yes {
			got[s], want[s] = g.Match([]byte(quote(s))), true
		}
		for _, s := range test.no {
			got[s], want[s] = g.Match([]byte(quote(s))), false
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		v, err := validator(schema)
		if err != nil {
			t.Fatal(err)
		}
		w := newWalker(g, 1, 60)
		for range 500 {
			if text := w.text(); !isValid(v, text) {
				var s string
				_ = json.Unmarshal([]byte(text), &s)
				t.Errorf("%s admits %q", name, s)
				break
			}
		}
	}
	if len(tests) != len(formats) {
		t.Errorf("%d of %d formats are tested", len(tests), len(formats))
	}
}

// TestFormatInBranches has formats without a type of their own: they are enforced
// in branches of what has one, and are annotations elsewhere.
func TestFormatInBranches(t *testing.T) {
	tests := []struct {
		schema string
		want   bool // whether a string that is no date is admitted
	}{
		{`{"format":"date"}`, true},
		{`{"type":"string","format":"date"}`, false},
		{`{"type":"string","anyOf":[{"format":"date"},{"maxLength":1}]}`, false},
		{`{"type":["string","null"],"allOf":[{"oneOf":[{"format":"date"},{"maxLength":1}]}]}`, false},
		{`{"type":"string","if":{"minLength":2},"then":{"format":"date"}}`, false},
		{`{"type":"string","if":{"maxLength":2},"else":{"format":"date"}}`, false},
		{`{"type":"string","anyOf":[{"not":{"maxLength":1}},{"format":"date"}]}`, true},
		{`{"type":"array","items":{"format":"date"},"anyOf":[{"items":{"format":"date"}}]}`, true},
	}
	for _, test := range tests {
		g, err := FromSchema([]byte(test.schema), Options{Strict: true})
		if err != nil {
			t.Errorf("%s: %v", test.schema, err)
			continue
		}
		if got := g.Match([]byte(`"no date"`)) || g.Match([]byte(`["no date"]`)); got != test.want {
			t.Errorf("%s: got %v, want %v", test.schema, got, test.want)
		}
	}
}
