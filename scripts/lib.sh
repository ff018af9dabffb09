# shellcheck shell=bash
# Functions that the scripts share. They write for people on stderr; stdout is for
# results. Source it after `set -euo pipefail`.

# shellcheck disable=SC2034 # for the scripts that source this
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${B3INFER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/b3infer}

say() { printf '%s\n' "$@" >&2; }

die() {
	say "${0##*/}: $*"
	exit 1
}

# need TOOL... makes sure that the commands are there: the system's package
# manager installs them if it may, else the message says what to type.
need() {
	local tool missing=() packages=()
	for tool; do
		command -v "$tool" >/dev/null && continue
		missing+=("$tool")
		packages+=("$(package_of "$tool")")
	done
	[[ ${#missing[@]} -eq 0 ]] || install_packages "${missing[*]}" "${packages[@]}"
}

# package_of TOOL prints the name of the Debian and Ubuntu package that holds it.
package_of() {
	case $1 in
	cc) echo gcc ;;
	c++) echo g++ ;;
	ninja) echo ninja-build ;;
	python3) echo python3-venv ;;
	flock) echo util-linux ;;
	xz) echo xz-utils ;;
	*) echo "$1" ;;
	esac
}

install_packages() {
	local tools=$1 as_root=()
	shift
	if [[ $EUID -ne 0 ]]; then as_root=(sudo -n); fi
	if ! command -v apt-get >/dev/null; then
		die "$tools: not found; install it with this system's package manager (Debian's names: $*)"
	fi
	if [[ $EUID -ne 0 ]] && ! sudo -n true 2>/dev/null; then
		die "$tools: not found; type: sudo apt-get install --no-install-recommends $*"
	fi
	as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
	say "installing $* (apt-get)"
	local log
	log=$(log_file apt)
	{
		"${as_root[@]}" update && "${as_root[@]}" install --no-install-recommends "$@" </dev/null
	} >"$log" 2>&1 || fail_with_log "$log" "apt-get could not install $*"
}

# log_file NAME prints the path of a log in the cache.
log_file() {
	mkdir -p "$CACHE/logs"
	echo "$CACHE/logs/$1.log"
}

# fail_with_log LOG MESSAGE ends the script with the last lines of a log.
fail_with_log() {
	say ""
	tail -n 30 "$1" >&2
	say ""
	die "$2; the whole log: $1"
}

# progress LABEL shows the steps of ninja ("[3/185] ...") that it reads as one line
# that moves; where stderr is no terminal, as a line for every tenth.
progress() {
	local label=$1 line started=$SECONDS tenth=0
	while IFS= read -r line; do
		[[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
		local n=${BASH_REMATCH[1]} of=${BASH_REMATCH[2]} took=$((SECONDS - started))
		if [[ -t 2 ]]; then
			local filled=$((n * 30 / of)) bar
			printf -v bar '%*s' "$filled" ''
			printf '\r%s  %-30s %d/%d  %d:%02d ' "$label" "${bar// /#}" "$n" "$of" $((took / 60)) $((took % 60)) >&2
		elif ((n * 10 / of > tenth)); then
			tenth=$((n * 10 / of))
			printf '%s  %d/%d  %d:%02d\n' "$label" "$n" "$of" $((took / 60)) $((took % 60)) >&2
		fi
	done
	if [[ -t 2 ]]; then say ""; fi
}

# with_lock FILE COMMAND... runs a command that no other process may run at the
# same time with the same file.
with_lock() {
	local file=$1
	shift
	need flock
	mkdir -p "$(dirname "$file")"
	(
		if ! flock -n 9; then
			say "waiting for another ${0##*/} ($file)"
			flock 9
		fi
		"$@"
	) 9>"$file"
}
