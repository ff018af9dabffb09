"""OpenAI's Python SDK against a running server: BASE_URL, API_KEY, READ_KEY (without infer:run), LIMITED_KEY
(at its limit), SINGLE_KEY (one request at a time), SMALL_KEY (too few tokens a minute) and MODEL say which. Prints a line for each case and exits 1 if one failed."""
import os
import sys
import threading
import time
from typing import Literal

import openai
import pydantic

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


class City(pydantic.BaseModel):
    city: Literal["Eugene", "Bend"]


@case
def parse():
    options = {"model": MODEL, "messages": ASK, "max_tokens": 64}
    answer = client().chat.completions.parse(response_format=City, **options)
    assert isinstance(answer.choices[0].message.parsed, City), answer
    answer = client().chat.completions.parse(tools=[openai.pydantic_function_tool(City)], tool_choice="required", **options)
    assert isinstance(answer.choices[0].message.tool_calls[0].function.parsed_arguments, City), answer
    try:
        client().chat.completions.parse(response_format=City, **{**options, "max_tokens": 1})
    except openai.LengthFinishReasonError:
        return
    raise AssertionError("a cut answer was parsed")


@case
def cut_call_goes_back():
    tool = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
    call = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Eug'}}
    history = [*ASK, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "tool_call_id": "call_1", "content": "not JSON"}]
    assert chat(messages=history, tools=[tool]).choices


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


@case
def limit_is_waited_for():
    c, patient = client("SINGLE_KEY"), client("SINGLE_KEY").with_options(max_retries=5)
    running = chat(c, stream=True, max_tokens=3000)
    threading.Timer(0.3, running.close).start()
    begun = time.monotonic()
    answer = patient.chat.completions.with_raw_response.create(model=MODEL, messages=ASK, max_tokens=8)
    assert answer.retries_taken >= 1 and time.monotonic() - begun >= 1, (answer.retries_taken, time.monotonic() - begun)
    assert answer.parse().choices


@case
def too_much_is_not_waited_for():
    begun = time.monotonic()
    refused(openai.RateLimitError, 429, "rate_limited", None, lambda: chat(client("SMALL_KEY").with_options(max_retries=2)))
    assert time.monotonic() - begun < 0.4, "it was tried again"


failed = 0
for run in CASES:
    try:
        run()
        print("ok  ", run.__name__)
    except Exception as e:
        failed += 1
        print("FAIL", run.__name__, type(e).__name__, str(e)[:500])
sys.exit(failed > 0)
