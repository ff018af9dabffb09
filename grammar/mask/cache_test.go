package mask

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/b3os/b3infer/grammar"
)

func literal(text string) func() (*grammar.Grammar, error) {
	return func() (*grammar.Grammar, error) {
		return &grammar.Grammar{Rules: []grammar.Rule{{Name: "root", Body: grammar.Literal(text)}}}, nil
	}
}

func TestCacheBuildsOnce(t *testing.T) {
	v := smallVocabulary()
	synctest.Test(t, func(t *testing.T) {
		c := NewCache(v, Limits{}, 0)
		builds, got := 0, make([]*Automaton, 8)
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				a, err := c.Get(t.Context(), NewKey([]byte("k")), func() (*grammar.Grammar, error) {
					builds++
					time.Sleep(time.Second)
					return literal("a")()
				})
				if err != nil {
					t.Error(err)
				}
				got[i] = a
			})
		}
		all.Wait()
		for _, a := range got {
			if a == nil || a != got[0] {
				t.Errorf("got automata %p and %p", a, got[0])
			}
		}
		if builds != 1 || c.Len() != 1 {
			t.Errorf("%d builds, %d kept", builds, c.Len())
		}
	})
}

func TestCacheErrors(t *testing.T) {
	v, failure := smallVocabulary(), errors.New("no such schema")
	synctest.Test(t, func(t *testing.T) {
		c, k := NewCache(v, Limits{}, 0), NewKey([]byte("k"))
		fail := func() (*grammar.Grammar, error) {
			time.Sleep(time.Second)
			return nil, failure
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := c.Get(t.Context(), k, fail); err != failure {
				t.Errorf("the builder got %v", err)
			}
		})
		synctest.Wait()
		all.Go(func() {
			if _, err := c.Get(t.Context(), k, fail); err != failure {
				t.Errorf("a waiter got %v", err)
			}
		})
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := c.Get(ctx, k, fail); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("an impatient waiter got %v", err)
			}
		})
		all.Wait()
		if _, err := c.Get(t.Context(), k, literal("a")); err != nil || c.Len() != 1 {
			t.Errorf("after the error: %v, %d kept", err, c.Len())
		}
	})
}

func TestCachePanics(t *testing.T) {
	v := smallVocabulary()
	synctest.Test(t, func(t *testing.T) {
		c, k := NewCache(v, Limits{}, 0), NewKey([]byte("k"))
		var all sync.WaitGroup
		all.Go(func() {
			defer func() { _ = recover() }()
			_, _ = c.Get(t.Context(), k, func() (*grammar.Grammar, error) {
				time.Sleep(time.Second)
				panic("a bug")
			})
		})
		synctest.Wait()
		if _, err := c.Get(t.Context(), k, literal("a")); err != errBuild {
			t.Errorf("a waiter got %v", err)
		}
		all.Wait()
		if _, err := c.Get(t.Context(), k, literal("a")); err != nil {
			t.Error(err)
		}
	})
}

func TestCacheEvicts(t *testing.T) {
	v := smallVocabulary()
	get := func(c *Cache, i int) *Automaton {
		t.Helper()
		a, err := c.Get(t.Context(), NewKey(fmt.Append(nil, i)), literal(fmt.Sprint(i)))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	one := get(NewCache(v, Limits{}, 0), 0).Bytes()
	c := NewCache(v, Limits{}, one*7/2+1000)
	first := get(c, 0)
	for i := 1; i < 3; i++ {
		get(c, i)
	}
	if c.Len() != 3 || get(c, 0) != first {
		t.Fatalf("%d kept of three that fit", c.Len())
	}
	get(c, 3) // 1 was not used for longest
	if c.Len() != 3 || get(c, 0) != first {
		t.Errorf("%d kept, and not those used last", c.Len())
	}
	small := NewCache(v, Limits{}, 1)
	if last := get(small, 1); get(small, 1) != last || small.Len() != 1 {
		t.Errorf("the last one is not kept")
	}
}

func TestKeys(t *testing.T) {
	if NewKey([]byte("ab"), []byte("c")) == NewKey([]byte("a"), []byte("bc")) {
		t.Error("parts run together")
	}
	if first := NewKey([]byte("a")); NewKey([]byte("a")) != first {
		t.Error("equal parts differ")
	}
}
