// ggml's threads wait for each other some hundred times a token, and libgomp lets them
// spin there for milliseconds before they sleep. Where another program wants a core, the
// thread that spins keeps the one that it waits for from running. A short spin is as
// fast on a free machine and keeps its speed on a shared one: docs/threads.md.
//
// libgomp reads the environment when it is loaded, so main would be too late. This
// runs before its constructor, since libgomp is linked statically (link_static.go) or
// loaded with the backends (link_dl.go). What the user has set stays.

#include <stdlib.h>

__attribute__((constructor(101))) static void spin_briefly(void) {
    if (getenv("OMP_WAIT_POLICY") == NULL) {
        setenv("GOMP_SPINCOUNT", "1000", 0);
    }
}
