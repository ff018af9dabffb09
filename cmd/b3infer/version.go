package main

import (
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/b3os/b3infer/llama"
)

// version is set by the linker (-X main.version=…).
var version = ""

// ownVersion is what the linker or, for `go install`, the module says.
func ownVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of b3infer, llama.cpp and Go, and the devices found",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return p.printVersion() },
	}
}

func (p *program) printVersion() (err error) {
	backend, err := p.openBackend(slog.New(slog.NewTextHandler(p.err, &slog.HandlerOptions{Level: slog.LevelWarn})), 1)
	if err != nil {
		return err
	}
	defer func() { err = closing(err, backend) }()
	fmt.Fprintf(p.out, "b3infer    %s\n", ownVersion())
	fmt.Fprintf(p.out, "llama.cpp  %s\n", backend.Version())
	fmt.Fprintf(p.out, "go         %s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
	for _, d := range backend.Devices() {
		fmt.Fprintf(p.out, "device     %s\n", deviceText(d))
	}
	return nil
}

// deviceText names a device: how ggml calls it, what it is, and its memory.
func deviceText(d llama.Device) string {
	text := d.Name
	if d.Description != "" && d.Description != d.Name {
		text += ": " + d.Description
	}
	if d.Total > 0 {
		text += fmt.Sprintf(", %s free of %s", bytesText(d.Free), bytesText(d.Total))
	}
	return text
}
