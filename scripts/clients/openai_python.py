"""OpenAI's Python SDK against a running server: BASE_URL, API_KEY, READ_KEY (without infer:run), LIMITED_KEY
(at its limit) and MODEL say which. Prints a line for each case and exits 1 if one failed."""
import os
import sys

import openai

MODEL = os.environ["MODEL"]
ASK = [{"role": "user", "content": "Name one river in Oregon."}]
CASES = []


def client(key="API_KEY", **options):
    return openai.OpenAI(base_url=os.environ["BASE_URL"], api_key=os.environ[key], max_retries=0, **options)


def case(f):
    CASES.append(f)


def chat(c=None, **options):
    return (c or client()).chat.completions.create(**{"model": MODEL, "messages": ASK, "max_tokens": 8, **options})


def refused(kind, status, code, param, call):
    try:
        call()
    except kind as e:
        assert (e.status_code, e.code, e.param) == (status, code, param), (e.status_code, e.code, e.param)
        assert e.request_id.startswith("req_"), e.request_id
        return e
    raise AssertionError(f"no {kind.__name__}")


@case
def models():
    c = client()
    assert [m.id for m in c.models.list()] == [MODEL]
    assert c.models.retrieve(MODEL).id == MODEL


@case
def text():
    answer = chat()
    assert answer.choices[0].finish_reason in ("stop", "length") and answer.usage.total_tokens > 0
    assert answer.model_extra["b3os"]["route"] == "local"


@case
def stream():
    chunks = list(chat(stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].usage.completion_tokens > 0 and not chunks[-1].choices


@case
def stream_helper():
    with client().chat.completions.stream(model=MODEL, messages=ASK, max_tokens=8) as s:
        try:
            for _ in s:
                pass
        except openai.LengthFinishReasonError:
            pass  # so short an answer is cut


@case
def tool_loop():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Eugene"]}}, "required": ["city"], "additionalProperties": False}}}
    options = {"tools": [tool], "max_tokens": 64}
    first = chat(tool_choice="required", parallel_tool_calls=False, **options).choices[0].message
    assert first.tool_calls[0].function.name == "weather", first
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "52F"}
    assert chat(messages=[*ASK, first, result], **options).choices


@case
def errors():
    refused(openai.BadRequestError, 400, "invalid_request", "temperature", lambda: chat(temperature=3))
    refused(openai.BadRequestError, 400, "context_length_exceeded", "messages",
            lambda: chat(messages=[{"role": "user", "content": "river " * 20000}]))
    refused(openai.NotFoundError, 404, "model_not_available", "model", lambda: chat(model="gpt-5"))
    refused(openai.PermissionDeniedError, 403, "forbidden", None, lambda: chat(client("READ_KEY")))
    c = openai.OpenAI(base_url=os.environ["BASE_URL"], api_key="b3os_sk_nonsense", max_retries=0)
    refused(openai.AuthenticationError, 401, "unauthorized", None, lambda: chat(c))


@case
def limited():
    e = refused(openai.RateLimitError, 429, "rate_limited", None, lambda: chat(client("LIMITED_KEY")))
    assert int(e.response.headers["retry-after"]) > 0 and e.response.headers["ratelimit-limit"] == "1", e.response.headers


failed = 0
for run in CASES:
    try:
        run()
        print("ok  ", run.__name__)
    except Exception as e:
        failed += 1
        print("FAIL", run.__name__, type(e).__name__, str(e)[:500])
sys.exit(failed > 0)
