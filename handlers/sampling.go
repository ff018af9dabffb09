package handlers

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// leastTopP stands for a top_p of 0: only the likeliest token is kept.
const leastTopP = 1e-9

func readTopP(p *float64) *float64 {
	if p == nil || *p >= leastTopP {
		return p
	}
	return new(leastTopP)
}

// clamp is l as an int that fits 32 bits; nil is 0.
func clamp(l *limit) int {
	if l == nil {
		return 0
	}
	return int(min(max(*l, math.MinInt32), math.MaxInt32))
}

// readBias reads logit_bias. Whether the vocabulary has the tokens is for the
// engine to say.
func readBias(wire map[string]*float64) (map[int]float64, *fault) {
	if len(wire) == 0 {
		return nil, nil
	}
	bias := make(map[int]float64, len(wire))
	for _, token := range slices.Sorted(maps.Keys(wire)) {
		if !isTokenID(token) {
			return nil, invalid("logit_bias."+token, "must be named by a token id")
		}
		id, err := strconv.ParseInt(token, 10, 32)
		if err != nil {
			return nil, invalid("logit_bias."+token, "names a token that no vocabulary has")
		}
		switch b := wire[token]; {
		case b == nil:
		case *b < -100 || *b > 100:
			return nil, invalid("logit_bias."+token, "must be between -100 and 100")
		default:
			bias[int(id)] = *b
		}
	}
	return bias, nil
}

// isTokenID tells whether s is written as a number from 0 on, so that no two
// names mean one token.
func isTokenID(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && (s[0] != '0' || s == "0")
}
