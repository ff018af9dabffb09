package grammar

import (
	"fmt"
	"testing"
)

// toolSchema is the parameters of a tool as they are commonly written.
const toolSchema = `{"type":"object","properties":{
	"location":{"type":"string","description":"City and country, such as Paris, France"},
	"unit":{"type":"string","enum":["celsius","fahrenheit"]},
	"days":{"type":"integer","minimum":1,"maximum":14},
	"since":{"type":"string","format":"date"},
	"fields":{"type":"array","items":{"type":"string","enum":["temperature","wind","humidity","pressure"]},"maxItems":4},
	"contact":{"type":["string","null"],"pattern":"^[a-z0-9._-]+@[a-z0-9-]+\\.[a-z]{2,}$"},
	"options":{"type":"object","properties":{"verbose":{"type":"boolean"},"limit":{"type":"number","exclusiveMinimum":0}},"additionalProperties":false}
},"required":["location","days"],"additionalProperties":false}`

// largeSchema is 64 KiB of objects inside objects, with texts, enums, ranges,
// choices and references.
func largeSchema() string {
	record := func(i int) string {
		return fmt.Sprintf(`"record%d":{"type":"object","properties":{"id":{"type":"string","format":"uuid"},"name":{"type":"string","minLength":1,"maxLength":200},`+
			`"kind":{"enum":["kind%d","other%d","none"]},"count":{"type":"integer","minimum":%d,"maximum":%d},"code":{"type":"string","pattern":"^[A-Z]{2}-[0-9]{%d}$"},`+
			`"labels":{"type":"object","additionalProperties":{"type":"string"}},"parent":{"$ref":"#/$defs/record%d"},`+
			`"value":{"oneOf":[{"type":"number"},{"type":"string"},{"type":"array","items":{"$ref":"#/$defs/record%d"}}]}},"required":["id","kind"]}`,
			i, i, i, i, i*1000, i%9+1, (i*7+1)%122, (i*5+2)%122)
	}
	return `{"$ref":"#/$defs/record0","$defs":{` + list(122, record) + `}}`
}

// BenchmarkFromSchema measures compiling, also in processor time, which another
// program at work disturbs less, and which counts collecting the garbage:
//
//	go test -run '^$' -bench FromSchema ./grammar
func BenchmarkFromSchema(b *testing.B) {
	schemas := []struct{ name, schema string }{
		{"any JSON", `{}`},
		{"tool", toolSchema},
		{"64 KiB", largeSchema()},
		{"500 optional properties", `{"additionalProperties":false,"properties":{` +
			list(500, func(i int) string { return fmt.Sprintf(`"prop%d":{"type":"string"}`, i) }) + `}}`},
		{"500 open properties", `{"properties":{` +
			list(500, func(i int) string { return fmt.Sprintf(`"prop%d":{"type":"string"}`, i) }) + `}}`},
		{"enum of 1,000 strings", `{"enum":[` + list(1000, func(i int) string { return fmt.Sprintf(`"value %d"`, i*7919%1000) }) + `]}`},
		{"50 kinds of object", `{"oneOf":[` + list(50, func(i int) string {
			return fmt.Sprintf(`{"type":"object","properties":{"kind":{"const":"k%d"},"a":{"type":"string"},"b%d":{"type":"integer"}},"required":["kind"]}`, i, i)
		}) + `]}`},
	}
	for _, s := range schemas {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime()
			for b.Loop() {
				if _, err := FromSchema([]byte(s.schema), Options{Strict: true}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-start)/float64(b.N), "cpu-ns/op")
		})
	}
}
