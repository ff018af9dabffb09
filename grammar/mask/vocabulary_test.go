package mask

import (
	"fmt"
	"strings"
)

// The special tokens of the test vocabulary, behind the bytes.
const (
	endToken     = 256 + iota // </s>
	end2Token                 // <eot>
	callToken                 // <tool_call>
	closeToken                // </tool_call>
	thinkToken                // <think>
	controlToken              // <unk>
	emptyToken
	firstPiece
)

// pieces are tokens of several bytes for the test vocabulary: parts of JSON
// texts, across the borders of rules, and of other texts.
var pieces = strings.Split(`{"|"}|":|":"|","|",|"]|"],|]}|}]|}}|}}}|},{|},{"|":{"|":[|":[{"|":1|[]|{}|[{"|[["|["|"|""|"",|"":|\"|\n|\\|\u|\u0|\u00|\u001|\u000a|\t|"\|\"",|
a|ab|abc|abcd|abcdefghijklmnopqrst|b"|b",|ab"|ab":|abc":"|name|na|me|name":"|"name|"name":|{"name":"|{"na|age|"age":|ge":|type|"type":"|kind":"|items":[|
null|nul|true|tru|false|fal|se|e,|e}|l]|l,"|0|00|000|1|12|123|1234|12345678901234567890|-|-1|-0|.5|1.5|1e|e+|E-1|0,|1,|2,3|3]|4}|0.|.0|.25|-1.|99|10|100|2024|-01-|01-01|T10|:00|Z"|
é|éa|ñ"|日|日本|日本語|語"|😀|😀"|`+"\xe6|\xe6\x97|\x97\xa5|\xa5\xe6|\xc3|\xa9|\xa9\"|\xf0\x9f|\x98\x80|\x80\"|\"\xe6|"+`
 | a| the|the |  |    |. |, |: |: "|, "|", "|": |\n|red|green|blue|red"|"red|"red",|gre|en"|een|blue","|x|xy|xx|xxx|xxxx|xxxxxxxx|yyyy|y;|;|;;|a;|b;a|aa|aaa|aaaa|bb|ba|"x":|"y":|"z"|
<|</|<tool|<tool_call>|_call>|</tool_call>|call>|/tool|think|>|<p|<p>|</p>|</p|p>|text</p>|.</p>|</p|(|)|()|=|==|+|-|*|/|a+b|(a|b)|if|if (|int|int |return|{ |} |1-|1. |e4|e5|Nf3|O-O|+ |# |
","a|","ab|","abc|1,12|1,123|12,|1]|1]]|[1|[1]|[[1|xa|xax|xab]|xaxb|xaxbx|xaxbxa|xx]|ab1|ab12|bb1|aab2|ab1a|ab1ab2|abab1|},{"a|},{"b":|],[1|],[1,|a@|@b|b.c|.com|a@b.com"|12:|:30|10.|.0.|127.|.1"|::|::1|fe80|ffff|-4|-8|deadbeef|0000-|https|https://|://|.org/|/a/b|a=1|?q=|
`, "|")

// smallVocabulary has all bytes, tokens of all kinds, the test's pieces, some of
// them twice, and combinations of two.
func smallVocabulary() *Vocabulary {
	var texts [][]byte
	var kinds []Kind
	add := func(kind Kind, text string) {
		texts, kinds = append(texts, []byte(text)), append(kinds, kind)
	}
	for b := range 256 {
		add(Text, string([]byte{byte(b)}))
	}
	add(End, "</s>")
	add(End, "<eot>")
	add(Marker, "<tool_call>")
	add(Marker, "</tool_call>")
	add(Marker, "<think>")
	add(Control, "<unk>")
	add(Text, "")
	for _, p := range pieces {
		add(Text, strings.ReplaceAll(p, "\n", ""))
	}
	for i := 0; i+7 < len(pieces); i += 3 {
		add(Text, strings.ReplaceAll(pieces[i]+pieces[i+7], "\n", ""))
		add(Text, strings.ReplaceAll(pieces[i+5]+pieces[i], "\n", ""))
	}
	return NewVocabulary(texts, kinds)
}

// spell writes tokens for people.
func spell(v *Vocabulary, tokens []int32) string {
	var out strings.Builder
	for _, t := range tokens {
		fmt.Fprintf(&out, "%q ", v.piece(t))
	}
	return out.String()
}
