package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Token types (enum llama_token_type).
const (
	normal      = 1
	control     = 3
	userDefined = 4
	unused      = 5
)

// addedTokens follow the ranked tokens in this order. Qwen3 has the first 26, and Qwen3.5 all.
var addedTokens = strings.Fields(`
	<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|>
	<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>
	<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>
	<tool_response> </tool_response> <think> </think>
	<|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> <tts_text_eod> <tts_text_bos_single> <|audio_pad|>`)

// A vocabulary is a byte-level BPE in the form that a GGUF file holds.
type vocabulary struct {
	tokens []string // bytes spelled as GPT-2 does
	types  []int32
	merges []string
	ranked int // tokens before the added ones
}

func (v vocabulary) metadata(pre string) []pair {
	return []pair{
		{"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", pre},
		{"tokenizer.ggml.tokens", v.tokens},
		{"tokenizer.ggml.token_type", v.types},
		{"tokenizer.ggml.merges", v.merges},
		{"tokenizer.ggml.eos_token_id", uint32(v.ranked + 2)}, // <|im_end|>
		{"tokenizer.ggml.padding_token_id", uint32(v.ranked)}, // <|endoftext|>
		{"tokenizer.ggml.add_bos_token", false},
	}
}

// readVocabulary makes a vocabulary of a file of tokens and ranks (tiktoken's format), the first
// added tokens, and padding up to size: unused tokens, which have no text.
func readVocabulary(path string, added, size int) (vocabulary, error) {
	ranked, err := readRanks(path)
	if err != nil {
		return vocabulary{}, err
	}
	ranks := make(map[string]int, len(ranked))
	for rank, token := range ranked {
		ranks[token] = rank
	}
	v := vocabulary{ranked: len(ranked)}
	for _, token := range ranked {
		v.add(spell(token), normal)
		if len(token) == 1 {
			continue
		}
		// 201 of Qwen3.5's tokens are no merge of others, so that text never becomes one.
		if left, right, ok := lastMerge(token, ranks); ok {
			v.merges = append(v.merges, spell(left)+" "+spell(right))
		}
	}
	for _, token := range addedTokens[:added] {
		if strings.HasPrefix(token, "<|") {
			v.add(token, control)
		} else {
			v.add(token, userDefined)
		}
	}
	for len(v.tokens) < size {
		v.add(fmt.Sprintf("[PAD%d]", len(v.tokens)), unused)
	}
	return v, nil
}

func (v *vocabulary) add(token string, kind int32) {
	v.tokens = append(v.tokens, token)
	v.types = append(v.types, kind)
}

// readRanks reads lines of a token in base64 and its rank, which count up from 0.
func readRanks(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var tokens []string
	for lines := bufio.NewScanner(file); ; {
		if !lines.Scan() {
			return tokens, lines.Err()
		}
		encoded, rank, _ := strings.Cut(lines.Text(), " ")
		token, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(tokens)+1, err)
		}
		if rank != strconv.Itoa(len(tokens)) {
			return nil, fmt.Errorf("line %d: rank %q", len(tokens)+1, rank)
		}
		tokens = append(tokens, string(token))
	}
}

// lastMerge finds the two tokens that make up a token: it merges the bytes in the
// order of ranks until two parts are left, if it gets that far.
func lastMerge(token string, ranks map[string]int) (left, right string, ok bool) {
	ends := make([]int, len(token)) // where each part ends
	for i := range ends {
		ends[i] = i + 1
	}
	for len(ends) > 2 {
		best, bestRank, start := -1, len(ranks), 0
		for i := range len(ends) - 1 {
			if rank, ok := ranks[token[start:ends[i+1]]]; ok && rank < bestRank {
				best, bestRank = i, rank
			}
			start = ends[i]
		}
		if best < 0 {
			return "", "", false
		}
		ends = append(ends[:best], ends[best+1:]...)
	}
	return token[:ends[0]], token[ends[0]:], true
}

// spelling is GPT-2's letter for each byte: printable Latin-1 stands for itself, the
// others for U+0100 and up in order.
var spelling = func() (letters [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		switch {
		case b >= 0x21 && b <= 0x7E, b >= 0xA1 && b <= 0xAC, b >= 0xAE:
			letters[b] = b
		default:
			letters[b] = next
			next++
		}
	}
	return letters
}()

func spell(token string) string {
	var s strings.Builder
	for _, b := range []byte(token) {
		s.WriteRune(spelling[b])
	}
	return s.String()
}
