#!/usr/bin/env python3
"""Compares the prompts that our templates render with Jinja2's.

    compare.py RENDERS TEMPLATES

RENDERS is what `go test -run TestWriteRenders ./llama/libllama` wrote, TEMPLATES
the folder of *.jinja files it used. The reference is Jinja2 set up as transformers'
apply_chat_template does. Where we depart from it on purpose, departures.json says so:
each entry names a function below that changes the reference in the same way, and
the templates that it is for. A difference that no entry explains is an error, and so
is an entry that explains nothing.
"""

import collections
import copy
import datetime
import difflib
import functools
import itertools
import json
import pathlib
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

HERE = pathlib.Path(__file__).parent
NOW = datetime.datetime(2026, 3, 5, 14, 7, 9)  # as testNow in chat_renders_test.go
BOS, EOS = "<|test-bos|>", "<|test-eos|>"


# The reference: transformers/utils/chat_template_utils.py.


class AssistantTracker(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_generation")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    @jinja2.pass_eval_context
    def _generation(self, context, caller):
        return caller()


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False, default=None):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys, default=default)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


class Reference:
    """One conversation as transformers would give it to a template."""

    environment = ImmutableSandboxedEnvironment
    undefined = jinja2.Undefined
    markup = True
    json_default = None
    suffix = ""

    def __init__(self, source, conversation, parse=json.loads):
        self.source, self.conversation = source, conversation
        self.messages = copy.deepcopy(conversation["messages"])
        self.tools = copy.deepcopy(conversation.get("tools"))
        for message in self.messages:
            if message.get("content") is None:
                message.pop("content", None)  # transformers 5
            if "reasoning_content" in message:
                message["thinking"] = message["reasoning_content"]  # transformers 5
            for call in message.get("tool_calls", []):
                call["function"]["arguments"] = parse(call["function"]["arguments"])
        self.variables = {
            "documents": None,
            "add_generation_prompt": conversation.get("generation", True),
            "enable_thinking": conversation.get("thinking", False),
            "bos_token": BOS,
            "eos_token": EOS,
        }

    def render(self):
        """The prompt, or None and the reason why the template refuses."""
        try:
            return self.compiled().render(messages=self.messages, **self.with_tools()) + self.suffix, None
        except Exception as error:  # noqa: BLE001 - a template can fail in any way
            return None, f"{type(error).__name__}: {error}"

    def with_tools(self):
        if self.tools is None and "documents" not in self.variables:
            return self.variables  # absent_vars
        return {"tools": self.tools, **self.variables}

    def compiled(self):
        key = (self.source, self.environment, self.undefined, self.markup, self.json_default)
        if key not in COMPILED:
            env = self.environment(
                trim_blocks=True,
                lstrip_blocks=True,
                undefined=self.undefined,
                extensions=[AssistantTracker, jinja2.ext.loopcontrols],
            )
            env.filters["tojson"] = functools.partial(tojson, default=self.json_default)
            env.globals["raise_exception"] = raise_exception
            env.globals["strftime_now"] = NOW.strftime
            if not self.markup:
                env.filters["safe"] = str
            COMPILED[key] = env.from_string(self.source)
        return COMPILED[key]


COMPILED = {}


# The departures, in the order in which they are applied. What the server does is in
# llama/libllama/chat_messages.go and in common/chat.


def args_text(r):
    r.messages = Reference(r.source, r.conversation, parse=str).messages


def developer(r):
    for message in r.messages:
        if message["role"] == "developer":
            message["role"] = "system"


def text_of(content):
    return content if isinstance(content, str) else "\n".join(part["text"] for part in content)


def system_joined(r):
    system = [m for m in r.messages if m["role"] in ("system", "developer")]
    if system:
        text = "\n\n".join(text_of(m["content"]) for m in system)
        rest = [m for m in r.messages if m not in system]
        r.messages = [{**system[0], "content": text}, *rest]


def system_into_next(r):
    if r.messages[0]["role"] != "system":
        return
    if len(r.messages) == 1:
        r.messages[0]["role"] = "user"
        return
    system, message = r.messages[0], r.messages[1]
    message["content"] = text_of(system["content"]) + "\n" + text_of(message["content"])
    del r.messages[0]


def flat_content(r):
    for message in r.messages:
        if isinstance(message.get("content"), list):
            message["content"] = text_of(message["content"])


def null_content(r):
    for message in r.messages:
        message.setdefault("content", "")


def full_tools(r):
    for tool in r.tools or []:
        f = tool["function"]
        parameters = f.pop("parameters", {})
        f["description"] = f.get("description", "")
        f["parameters"] = parameters


def absent_vars(r):
    del r.variables["documents"]


def tool_responses(r):
    """Gemma 4's first templates take results as a field of the turn with the calls."""
    messages, out = r.messages, []
    while messages:
        message = messages.pop(0)
        out.append(message)
        if not message.get("tool_calls"):
            continue
        message.pop("content", None)
        responses = []
        while messages and messages[0]["role"] == "tool":
            content = text_of(messages.pop(0)["content"])
            try:
                content = json.loads(content)
            except ValueError:
                pass
            name = message["tool_calls"][len(responses)]["function"]["name"]
            responses.append({"name": name, "response": content})
        if responses:
            message["tool_responses"] = responses
        if messages and messages[0]["role"] == "assistant" and not messages[0].get("tool_calls"):
            message["content"] = messages.pop(0)["content"]
    r.messages = out


def content_blocks(r):
    for message in r.messages:
        if message["role"] in ("system", "assistant"):
            blocks = []
            if message.get("reasoning_content"):
                blocks.append({"type": "thinking", "thinking": message.pop("reasoning_content")})
            content = message.get("content", "")
            if isinstance(content, str):
                content = [{"type": "text", "text": content}]
            message["content"] = blocks + content


def results_sorted(r):
    order = {}
    for start, message in enumerate(r.messages):
        for i, call in enumerate(message.get("tool_calls", [])):
            order[call["id"]] = i
        end = start
        while end < len(r.messages) and r.messages[end]["role"] == "tool":
            end += 1
        r.messages[start:end] = sorted(r.messages[start:end], key=lambda m: order[m["tool_call_id"]])


def content_dropped(r):
    for message in r.messages:
        if message.get("thinking") and message.get("tool_calls"):
            message.pop("content", None)


def patched(r):
    check = '''{%- if "<|channel|>analysis<|message|>" in message.content or "<|channel|>final<|message|>" in message.content %}'''
    r.source = r.source.replace(check, "{%- if false %}")


def trimmed(r):
    for message in r.messages:
        for key in ("content", "reasoning_content"):
            if isinstance(message.get(key), str):
                message[key] = message[key].strip(" \t\n\v\f\r")


def next_turn(r):
    prompt, _ = r.render()
    if prompt is not None and prompt.endswith("<turn|>\n") and r.variables["add_generation_prompt"]:
        r.suffix = "<|turn>model\n"


def keep_reasoning(r):
    r.variables.update(preserve_thinking=True, clear_thinking=False, truncate_history_thinking=False, drop_thinking=False)


def date_vars(r):
    r.variables.update(date_string=NOW.strftime("%d %b %Y"), datetime=NOW.strftime("%b %d %Y"))


def list_append(r):
    r.environment = SandboxedEnvironment


class Blank(jinja2.Undefined):
    """Undefined that adds and compares as nothing does."""

    __add__ = __radd__ = lambda self, other: other
    __iter__ = lambda self: iter(())
    __getattr__ = lambda self, name: self if name[:2] != "__" else jinja2.Undefined.__getattr__(self, name)
    __getitem__ = lambda self, key: self
    __call__ = lambda self, *args: self


def undefined_blank(r):
    r.undefined = Blank


def tojson_lists(r):
    r.json_default = list


def no_escape(r):
    r.markup = False


def departures():
    entries = json.loads((HERE / "departures.json").read_text())
    order = list(globals())
    return sorted(entries, key=lambda e: order.index(e["departure"]))


def depart(source, conversation, entries):
    reference = Reference(source, conversation)
    for entry in entries:
        globals()[entry["departure"]](reference)
    return reference.render()


def explain(source, conversation, prompt, entries):
    """The fewest entries with which the reference renders this prompt, or None."""
    for size in range(1, len(entries) + 1):
        for some in itertools.combinations(entries, size):
            if depart(source, conversation, some)[0] == prompt:
                return some
    return None


def difference(want, got):
    lines = difflib.unified_diff(want.split("\n"), got.split("\n"), "Jinja2", "ours", lineterm="", n=1)
    return "\n".join(lines)[:2000]


def report(source, conversation, render, entries):
    want, reason = depart(source, conversation, entries)
    print(f"--- {render['template']}, {render['conversation']}")
    if want is None or "prompt" not in render:
        print(f"Jinja2: {reason or 'a prompt'}\nours: {render.get('error', 'a prompt')}")
    else:
        print(difference(want, render["prompt"]))


def main(renders, templates):
    conversations = {c["name"]: c for c in json.loads((HERE / "conversations.json").read_text())}
    entries = departures()
    counts, used = collections.Counter(), collections.defaultdict(set)
    for line in open(renders, encoding="utf-8"):
        render = json.loads(line)
        source = (pathlib.Path(templates) / (render["template"] + ".jinja")).read_text()
        conversation = conversations[render["conversation"]]
        want, _ = depart(source, conversation, [])
        if want == render.get("prompt"):
            counts["equal" if want is not None else "both refuse"] += 1
            continue
        own = [e for e in entries if e["templates"] == "*" or render["template"] in e["templates"]]
        needed = explain(source, conversation, render["prompt"], own) if "prompt" in render else None
        if needed is None:
            counts["unexplained"] += 1
            report(source, conversation, render, own)
            continue
        counts["departures"] += 1
        for entry in needed:
            used[entry["departure"]].add(render["template"])
            counts[entry["departure"]] += 1
    failed = counts["unexplained"] > 0 or not counts["equal"]
    for entry in entries:
        listed = {"*"} if entry["templates"] == "*" else set(entry["templates"])
        idle = listed - used[entry["departure"]] - ({"*"} if used[entry["departure"]] else set())
        if idle:
            failed = True
            print(f"departures.json: {entry['departure']} is not needed for {sorted(idle)}")
    print(", ".join(f"{n} {name}" for name, n in counts.items()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
