package accounts

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
)

// Kind says what a credential stands for.
type Kind string

// The kinds of credentials.
const (
	KindKey   Kind = "key"   // an API key, for a program; its secret starts with b3os_sk_
	KindToken Kind = "token" // a user's own token, for the command line; its secret starts with b3os_pat_
)

var prefixes = map[Kind]string{KindKey: "b3os_sk_", KindToken: "b3os_pat_"}

// A secret is a prefix, 160 random bits as 32 characters, an underscore and
// the CRC-32 (IEEE) of all before that underscore as 7 characters.
const (
	randomBytes  = 20
	randomChars  = 32
	checksumSize = 7
)

// crockford is Crockford's base32 in lower case.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// hash is what is stored of a secret.
type hash = [sha256.Size]byte

// newSecret makes the secret of a key.
func newSecret(kind Kind) string {
	body := prefixes[kind] + randomText(randomBytes)
	return body + "_" + checksum(body)
}

// randomText is n random bytes in base32. crypto/rand does not fail.
func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return crockford.EncodeToString(b)
}

func checksum(body string) string {
	var sum [4]byte
	binary.BigEndian.PutUint32(sum[:], crc32.ChecksumIEEE([]byte(body)))
	return crockford.EncodeToString(sum[:])
}

// checkSecret finds what can be wrong with a secret by itself: that it is not
// whole or has been miscopied.
func checkSecret(secret string) error {
	at := strings.LastIndexByte(secret, '_')
	if at < 0 {
		return ErrMalformed
	}
	body, sum := secret[:at], secret[at+1:]
	var random string
	for _, prefix := range prefixes {
		if rest, ok := strings.CutPrefix(body, prefix); ok {
			random = rest
		}
	}
	if len(random) != randomChars || len(sum) != checksumSize {
		return ErrMalformed
	}
	if sum != checksum(body) {
		return ErrChecksum
	}
	return nil
}

// newID is a prefix and 26 characters of lower-case Crockford base32: a ULID,
// so that ids sort by time.
func newID(prefix string, now time.Time) string {
	return prefix + strings.ToLower(ulid.MustNew(ulid.Timestamp(now), rand.Reader).String())
}
