# shellcheck shell=bash
# Runs steps, all of them whatever fails, and counts; source lib.sh first. Scripts that call
# each other count into one file, TALLY, whose lines are "passed failed skipped what".

tally_owner=
if [[ -z ${TALLY:-} ]]; then
	TALLY=$(mktemp)
	export TALLY
	tally_owner=yes
fi

tally() { echo "$@" >>"$TALLY"; }

# run_step NAME COMMAND... runs a step; one that fails is named in the end.
run_step() {
	local name=$1 started=$SECONDS
	shift
	say "" "== $name"
	if ("$@"); then
		say "== $name: ok ($((SECONDS - started)) s)"
	else
		say "== $name: FAILED ($((SECONDS - started)) s)"
		tally 0 0 0 "$name"
	fi
}

# tally_tests EVENTS RESULT counts the tests in the events of `go test -json`. A run that
# fails without a failed test (it did not compile) counts as one.
tally_tests() {
	local passed failed skipped
	passed=$(grep -c '"Action":"pass".*"Test":' "$1" || true)
	failed=$(grep -c '"Action":"fail".*"Test":' "$1" || true)
	skipped=$(grep -c '"Action":"skip".*"Test":' "$1" || true)
	if [[ $2 -ne 0 && $failed -eq 0 ]]; then failed=1; fi
	tally "$passed" "$failed" "$skipped"
}

# finish prints the counts, if no caller of this script will, and tells whether all is well.
finish() {
	local failures
	failures=$(awk 'NF > 3 { printf "%s%s", comma, $4; comma = ", " }' "$TALLY")
	if [[ -n $tally_owner ]]; then
		if [[ -n $failures ]]; then say "" "failed: $failures"; fi
		awk '{ passed += $1; failed += $2; skipped += $3; if (NF > 3) steps++ }
			END { if (steps > 0 && failed == 0) failed = steps
				printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "$TALLY"
		rm -f "$TALLY"
	fi
	[[ -z $failures ]]
}
