package accounts

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
)

func TestSecrets(t *testing.T) {
	seen := map[string]bool{}
	for kind, pattern := range map[Kind]string{
		KindKey:   `^b3os_sk_[0-9a-hjkmnp-tv-z]{32}_[0-9a-hjkmnp-tv-z]{7}$`,
		KindToken: `^b3os_pat_[0-9a-hjkmnp-tv-z]{32}_[0-9a-hjkmnp-tv-z]{7}$`,
	} {
		for range 100 {
			secret := newSecret(kind)
			if !regexp.MustCompile(pattern).MatchString(secret) {
				t.Fatalf("%s is not like %s", secret, pattern)
			}
			if err := checkSecret(secret); err != nil {
				t.Errorf("%s: %v", secret, err)
			}
			if seen[secret] {
				t.Errorf("%s came twice", secret)
			}
			seen[secret] = true
		}
	}
}

// The checksum of a known secret, computed by other means:
// zlib.crc32(b"b3os_sk_" + 32*b"0") in Python is 0xea227298.
func TestChecksum(t *testing.T) {
	body := "b3os_sk_" + strings.Repeat("0", 32)
	if got, want := checksum(body), "x8h7560"; got != want {
		t.Errorf("checksum %s, want %s", got, want)
	}
}

func TestCheckSecret(t *testing.T) {
	secret := newSecret(KindKey)
	for _, malformed := range []string{
		"", "sk-abc", "b3os_sk_", "_", secret[1:], secret[:len(secret)-1], secret + "0", " " + secret,
		strings.Replace(secret, "b3os_sk_", "b3os_xx_", 1), strings.Replace(secret, "b3os_sk_", "", 1),
		strings.ToUpper(secret), secret[:20] + secret[21:], strings.Repeat("_", 48), strings.Repeat("b3os_sk_", 1000),
	} {
		if err := checkSecret(malformed); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v, want %v", malformed, err, ErrMalformed)
		}
	}
	// Any one character that is miscopied is found.
	for i := len("b3os_sk_"); i < len(secret); i++ {
		if secret[i] == '_' {
			continue
		}
		other := byte('0')
		if secret[i] == other {
			other = '1'
		}
		copied := secret[:i] + string(other) + secret[i+1:]
		if err := checkSecret(copied); !errors.Is(err, ErrChecksum) {
			t.Errorf("%s for %s: %v, want %v", copied, secret, err, ErrChecksum)
		}
	}
}

func FuzzCheckSecret(f *testing.F) {
	f.Add(newSecret(KindKey))
	f.Add("b3os_pat__")
	f.Fuzz(func(t *testing.T, secret string) {
		err := checkSecret(secret)
		if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrChecksum) {
			t.Errorf("%q: %v", secret, err)
		}
		if err != nil && len(secret) > 8 && strings.Contains(err.Error(), secret) {
			t.Errorf("the error tells the secret")
		}
	})
}

func TestCredits(t *testing.T) {
	for text, want := range map[string]Credits{
		"0": 0, "1": Credit, "2.5": 2_500_000, "0.000001": 1, "12.340": 12_340_000, "1000000000": maxCredits, "7.": 7 * Credit,
	} {
		got, err := ParseCredits(text)
		if err != nil || got != want {
			t.Errorf("ParseCredits(%q) = %d, %v, want %d", text, got, err, want)
		}
		var back Credits
		if text, err := json.Marshal(got); err != nil || json.Unmarshal(text, &back) != nil || back != got {
			t.Errorf("%v comes back as %v, %v", got, back, err)
		}
	}
	for _, text := range []string{"", ".", ".5", "-1", "+1", "1e3", "1.0000001", "1000000000.000001", "99999999999999999999", "1.-5", "a", "0x1", "1_0"} {
		if got, err := ParseCredits(text); err == nil {
			t.Errorf("ParseCredits(%q) = %v, want an error", text, got)
		}
	}
	for c, want := range map[Credits]string{0: "0", 1: "0.000001", 2_500_000: "2.5", -1_500_000: "-1.5", 10 * Credit: "10"} {
		if got := c.String(); got != want {
			t.Errorf("%d is written %s, want %s", int64(c), got, want)
		}
	}
}

func TestCost(t *testing.T) {
	tests := []struct {
		prices prices
		usage  Usage
		want   Credits
	}{
		{prices{Credit, Credit, Credit}, Usage{Prompt: 7, Cached: 3, Completion: 5}, 12},
		{prices{Credit, Credit / 10, 3 * Credit}, Usage{Prompt: 1000, Cached: 400, Completion: 10}, 600 + 40 + 30},
		{prices{1, 1, 1}, Usage{Prompt: 1}, 1}, // rounded up
		{prices{maxPrice, maxPrice, maxPrice}, Usage{Prompt: 100_000_000, Completion: 100_000_000}, 2_000_000 * Credit},
		{prices{}, Usage{Prompt: 1, Completion: 1}, 0},
	}
	for _, test := range tests {
		if got := test.prices.cost(test.usage); got != test.want {
			t.Errorf("%+v at %+v cost %d, want %d", test.usage, test.prices, got, test.want)
		}
	}
}
