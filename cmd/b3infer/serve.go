package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/b3os/b3infer/accounts"
	"github.com/b3os/b3infer/engine"
	"github.com/b3os/b3infer/handlers"
	"github.com/b3os/b3infer/llama"
	"github.com/b3os/b3infer/models"
)

// lastAnswers is how long the HTTP server may take to send what the engine has
// finished, when it stops.
const lastAnswers = 5 * time.Second

// A server is one run of serve.
type server struct {
	*program
	o       serveOptions
	log     *slog.Logger
	facts   models.Facts
	source  string // of --chat-template
	metrics *prometheus.Registry
	store   *accounts.Store
	model   *handlers.Model
	http    *http.Server
}

// serve opens the accounts and the port, loads the model and answers until ctx
// ends.
func (p *program) serve(ctx context.Context, o serveOptions) (err error) {
	log, err := o.log.logger(p.err)
	if err != nil {
		return err
	}
	slog.SetDefault(log) // also for what other packages log
	store, err := p.openStore(ctx, o, log)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, store) }()
	if err := o.access.checkAddress(o.listen, store); err != nil {
		return err
	}
	secure, err := o.access.tls()
	if err != nil {
		return err
	}
	listener, err := listen(o.listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	log.Debug("listening", "address", listener.Addr().String())
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
	s := &server{program: p, o: o, log: log, metrics: prometheus.NewRegistry(), store: store}
	s.metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := s.inspect(); err != nil {
		return err
	}
	handler, err := s.handler()
	if err != nil {
		return err
	}
	s.http = handlers.NewServer(o.listen, handler)
	s.http.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // clients that break off
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(listener) }()
	err = s.loadAndAnswer(ctx, listener.Addr(), failed)
	s.http.Close()
	return err
}

// openStore opens the accounts, which take the records of requests too.
func (p *program) openStore(ctx context.Context, o serveOptions, log *slog.Logger) (*accounts.Store, error) {
	path, err := p.storePath(o.data)
	if err != nil {
		return nil, err
	}
	return accounts.Open(ctx, path, accounts.Options{KeepRequests: o.keepRequests, Log: log})
}

// listen opens the port, with an error that says what to do if it is taken.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case err == nil:
		return listener, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is taken by another program, perhaps another b3infer: stop it, or choose a port with --listen", address)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s needs more rights: choose a port above 1023 with --listen", address)
	}
	return nil, err
}

// inspect reads what the model's file says about itself, and the template.
func (s *server) inspect() (err error) {
	s.facts, err = models.Inspect(s.o.model)
	if err != nil {
		return err
	}
	if s.facts.WeightBytes == 0 {
		return fmt.Errorf("%s: holds no weights", s.o.model)
	}
	if s.o.alias == "" {
		s.o.alias = models.ID(s.o.model)
	}
	if s.o.chatTemplate == "" {
		return nil
	}
	if s.source, err = readTemplate(s.o.chatTemplate); err == nil {
		_, err = s.template(s.source) // a broken one is better found before the model is loaded
	}
	return err
}

func (s *server) handler() (http.Handler, error) {
	proxies, err := s.o.access.networks()
	if err != nil {
		return nil, err
	}
	created := time.Now()
	if info, err := os.Stat(s.o.model); err == nil {
		created = info.ModTime()
	}
	node := s.o.nodeName
	if node == "" {
		node, _ = os.Hostname() // no name is fine
	}
	s.model = handlers.NewModel(handlers.ModelParams{ID: s.o.alias, Created: created, MaxRequestBytes: s.o.maxRequest})
	return handlers.New(handlers.Config{
		Models:   []*handlers.Model{s.model},
		Accounts: s.store,
		Keys:     s.o.access.apiKeys,
		Hosts:    s.o.access.allowedHosts(),
		Origins:  s.o.access.origins,
		Proxies:  proxies,
		Gateway:  s.o.gateway.gateway(),
		Node:     node,
		Version:  ownVersion(),
		Log:      s.log,
		Metrics:  s.metrics,
	}), nil
}

// loadAndAnswer loads the model, serves it until ctx ends or the HTTP server
// fails, and gives everything back.
func (s *server) loadAndAnswer(ctx context.Context, address net.Addr, failed <-chan error) (err error) {
	machine := thisMachine(s.root)
	if s.o.threads == 0 {
		s.o.threads = max(1, machine.cores-1)
	}
	backend, err := s.openBackend(s.log, s.o.threads)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, backend) }()
	if s.o.ctx, err = s.context(machine, backend.Devices()); err != nil {
		return err
	}
	model, err := s.load(ctx, backend)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, model) }()
	eng, err := s.start(model)
	if err != nil {
		return err
	}
	s.model.Serve(eng)
	if ctx.Err() == nil {
		s.ready(address, eng.Info(), backend.Devices())
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	return errors.Join(err, s.stop(eng))
}

// context is the number of cells that the memory is large enough for.
func (s *server) context(m machine, devices []llama.Device) (int, error) {
	gpuFree, hasGPU := deviceMemory(devices)
	need, err := estimate(s.facts, sizes{
		parallel:  s.o.parallel,
		batch:     s.o.batch,
		ubatch:    s.o.ubatch,
		kv:        llama.KVType(s.o.kv),
		gpuLayers: s.o.gpuLayers,
	}, hasGPU)
	if err != nil {
		return 0, err
	}
	have := supply{host: m.memory, gpu: gpuFree}
	cells, err := chooseContext(s.facts, need, have, s.o.ctx)
	if err != nil {
		return 0, err
	}
	s.log.Debug("memory", "context", cells, "host", bytesText(need.host.at(cells)), "host_free", bytesText(have.host),
		"gpu", bytesText(need.gpu.at(cells)), "gpu_free", bytesText(have.gpu))
	if s.facts.Context > 0 && cells > s.facts.Context {
		s.log.Warn("the context is longer than the model was trained for; long prompts may be answered badly",
			"ctx", cells, "trained", s.facts.Context)
	}
	return cells, nil
}

// load reads the weights and shows how far it is. It stops when ctx ends.
func (s *server) load(ctx context.Context, backend llama.Backend) (llama.Model, error) {
	bar := newProgress(s.err, "loading "+s.o.alias)
	defer bar.clear()
	model, err := backend.Load(s.o.model, llama.ModelParams{
		GPULayers: s.o.gpuLayers,
		Progress: func(done float32) bool {
			bar.set(done)
			return ctx.Err() == nil
		},
	})
	if err != nil && ctx.Err() != nil {
		return nil, errInterrupted
	}
	return model, err
}

// start makes the engine.
func (s *server) start(model llama.Model) (*engine.Engine, error) {
	return engine.New(model, engine.Params{
		Cells:        s.o.ctx,
		Parallel:     s.o.parallel,
		Batch:        s.o.batch,
		UBatch:       s.o.ubatch,
		Threads:      s.o.threads,
		KV:           llama.KVType(s.o.kv),
		QueueTimeout: s.o.queueTimeout,
		Template:     s.source,
		Metrics:      s.metrics,
		Log:          s.log,
	})
}

// ready tells the user what is served and how to ask for it.
func (s *server) ready(address net.Addr, info engine.Info, devices []llama.Device) {
	perCell, _ := s.facts.CellBytes(s.o.kv) // the type was checked
	kv := fmt.Sprintf("%s cache of %s", s.o.kv, bytesText(uint64(info.Cells)*perCell))
	if state := s.facts.RecurrentBytes(); state > 0 {
		kv += fmt.Sprintf(", %s of state per request", bytesText(state))
	}
	fmt.Fprintf(s.out, "model    %s (%s, %s, %s, %s)\n", s.o.alias, s.facts.Architecture,
		countText(s.facts.Parameters), s.facts.Quantization, bytesText(s.facts.WeightBytes))
	fmt.Fprintf(s.out, "context  %d tokens, %s; up to %d requests at a time\n", info.Context, kv, info.Parallel)
	for _, d := range devices {
		fmt.Fprintf(s.out, "device   %s\n", deviceText(d))
	}
	fmt.Fprintf(s.out, "threads  %d\n", s.o.threads)
	fmt.Fprintf(s.out, "address  %s/v1\n\n%s\n", s.url(address), s.curl(address))
}

// stop lets the engine finish what runs, and then the HTTP server send it.
func (s *server) stop(eng *engine.Engine) error {
	s.log.Info("stopping: running requests may end", "grace", s.o.grace)
	grace, cancel := context.WithTimeout(context.Background(), s.o.grace)
	defer cancel()
	err := eng.Shutdown(grace)
	rest, cancelRest := context.WithTimeout(context.Background(), lastAnswers)
	defer cancelRest()
	if httpErr := s.http.Shutdown(rest); httpErr != nil && !errors.Is(httpErr, context.DeadlineExceeded) {
		err = errors.Join(err, httpErr)
	}
	return err
}
