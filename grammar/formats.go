package grammar

import "sync"

// A format is the language of a format name of JSON Schema.
type format struct {
	pattern string // of the whole text
	// exact tells that the pattern is the format. Others leave texts out; loose
	// leaves out none, and is all texts if it is empty.
	exact    bool
	loose    string
	language func() *DFA
	wide     *wide
}

const (
	// Host names of up to six labels of up to 41 characters stay below 253. A
	// double hyphen is left out: it is reserved in places.
	labelFormat    = `[A-Za-z0-9](?:-?[A-Za-z0-9]){0,20}`
	hostnameFormat = `(?:` + labelFormat + `\.){0,5}` + labelFormat
	octetFormat    = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4Format     = `(?:` + octetFormat + `\.){3}` + octetFormat

	leapYears  = `(?:(?:\d\d(?:0[48]|[2468][048]|[13579][26]))|(?:[02468][048]|[13579][26])00)`
	dateFormat = `(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))|` +
		leapYears + `-02-29)`
	hoursFormat = `(?:[01]\d|2[0-3]):[0-5]\d`
	// A second of 60 is left out: it is valid on some days only.
	timeFormat = hoursFormat + `:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-]` + hoursFormat + `)`

	// RFC 5321 with a dot-string of up to 64 characters before the @.
	emailFormat = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-](?:\\.?[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]){0,31}@" + hostnameFormat

	h16Format  = `[0-9A-Fa-f]{1,4}`
	ls32Format = `(?:` + h16Format + `:` + h16Format + `|` + ipv4Format + `)`

	pathChar   = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})`
	pathTail   = `(?:/` + pathChar + `*)*`
	queryTail  = `(?:\?(?:` + pathChar + `|[/?])*)?(?:#(?:` + pathChar + `|[/?])*)?`
	portFormat = `(?:\d{1,4}|[1-5]\d{4}|6(?:[0-4]\d{3}|5(?:[0-4]\d\d|5(?:[0-2]\d|3[0-5]))))`
	userInfo   = `(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})+@)?`
	// Registered names, without what some read as an error: signs in a row.
	hostFormat = `[A-Za-z0-9_](?:[._~-]?[A-Za-z0-9_])*`
	authority  = `//` + userInfo + hostFormat + `(?::` + portFormat + `)?` + pathTail
	uriFormat  = `[A-Za-z][A-Za-z0-9+.-]*:(?:` + authority + `|//(?:/` + pathChar + `+)+|/?` + pathChar + `+` + pathTail + `)` + queryTail
	// A relative reference whose first segment has no colon.
	relativeFormat = `(?:` + authority + `|/(?:` + pathChar + `+` + pathTail + `)?|(?:[A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})+` + pathTail + `|)` + queryTail
	referFormat    = uriFormat + `|` + relativeFormat

	// Patterns without groups: characters, escapes and classes with repetitions.
	regexClass  = `\[\^?(?:a-z|A-Z|0-9|[A-Za-z0-9_ .]|\\[dwsDWS])+\]`
	regexFormat = `\^?(?:(?:[A-Za-z0-9 _/:,;=@#%&'"<>~!-]|\.|\\[dwsDWS.^$*+?()\[\]{}|/\\]|` + regexClass + `)[*+?]?|\|)*\$?`

	pointerFormat = `(?:/(?:[^/~]|~[01])*)*`
)

// ipv6Format is the nine forms of RFC 4291, by how many groups stand before ::.
const ipv6Format = `(?:` + h16Format + `:){6}` + ls32Format +
	`|::(?:` + h16Format + `:){5}` + ls32Format +
	`|(?:` + h16Format + `)?::(?:` + h16Format + `:){4}` + ls32Format +
	`|(?:(?:` + h16Format + `:){0,1}` + h16Format + `)?::(?:` + h16Format + `:){3}` + ls32Format +
	`|(?:(?:` + h16Format + `:){0,2}` + h16Format + `)?::(?:` + h16Format + `:){2}` + ls32Format +
	`|(?:(?:` + h16Format + `:){0,3}` + h16Format + `)?::` + h16Format + `:` + ls32Format +
	`|(?:(?:` + h16Format + `:){0,4}` + h16Format + `)?::` + ls32Format +
	`|(?:(?:` + h16Format + `:){0,5}` + h16Format + `)?::` + h16Format +
	`|(?:(?:` + h16Format + `:){0,6}` + h16Format + `)?::`

// durationFormat is RFC 3339, appendix A: units in order, without gaps.
const durationFormat = `P(?:\d+W|(?:\d+D|\d+M(?:\d+D)?|\d+Y(?:\d+M(?:\d+D)?)?)(?:T` + durationTime + `)?|T` + durationTime + `)`
const durationTime = `(?:\d+S|\d+M(?:\d+S)?|\d+H(?:\d+M(?:\d+S)?)?)`

var formats = func() map[string]*format {
	m := map[string]*format{
		"date":                  {pattern: dateFormat, exact: true},
		"time":                  {pattern: timeFormat, loose: `\d\d:\d\d:\d\d.*`},
		"date-time":             {pattern: dateFormat + "T" + timeFormat, loose: `\d{4}-\d\d-\d\d.\d\d:\d\d:\d\d.*`},
		"duration":              {pattern: durationFormat, exact: true},
		"email":                 {pattern: emailFormat},
		"idn-email":             {pattern: emailFormat},
		"hostname":              {pattern: hostnameFormat},
		"idn-hostname":          {pattern: hostnameFormat},
		"ipv4":                  {pattern: ipv4Format, exact: true},
		"ipv6":                  {pattern: ipv6Format, exact: true},
		"uuid":                  {pattern: `[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`, exact: true},
		"uri":                   {pattern: uriFormat},
		"iri":                   {pattern: uriFormat},
		"uri-reference":         {pattern: referFormat},
		"iri-reference":         {pattern: referFormat},
		"uri-template":          {pattern: `(?:https?://` + hostnameFormat + `)?(?:[A-Za-z0-9._~!$&()*+,;=@/?#-]|\{[A-Za-z0-9_]+(?:,[A-Za-z0-9_]+)*\})*`},
		"json-pointer":          {pattern: pointerFormat, exact: true},
		"relative-json-pointer": {pattern: `(?:0|[1-9]\d*)(?:#|` + pointerFormat + `)`, exact: true},
		"regex":                 {pattern: regexFormat},
		// Base64, in OpenAPI only: elsewhere the format is unknown, and any text valid.
		"byte": {pattern: `(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?`},
	}
	for _, f := range m {
		f.language = sync.OnceValue(func() *DFA { return compileLexeme(f.pattern) })
		if f.exact {
			continue
		}
		loose := sync.OnceValue(func() *DFA {
			if f.loose == "" {
				return allTexts
			}
			return compileLexeme(f.loose)
		})
		f.wide = &wide{make: func() (*DFA, error) { return loose(), nil }}
	}
	return m
}()
