// Package grammartest reads and writes the files that the tests of several packages
// hold grammars against.
package grammartest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"testing"
)

// ReadGzip is the text of a file of compress/gzip's format.
func ReadGzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// ReadJSON decodes such a file.
func ReadJSON(t testing.TB, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(ReadGzip(t, path), into); err != nil {
		t.Fatal(err)
	}
}

// HoldJSON holds a value against such a file, or writes it there.
func HoldJSON(t testing.TB, path string, value any, update bool) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if update {
		writeGzip(t, path, text)
	}
	if !bytes.Equal(ReadGzip(t, path), text) {
		t.Errorf("%s is not what was made; -update rewrites it, and then the tests of all packages that read it are to be run", path)
	}
}

func writeGzip(t testing.TB, path string, text []byte) {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
