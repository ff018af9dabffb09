// OpenAI's Node SDK against a running server: BASE_URL, API_KEY, READ_KEY (without infer:run), LIMITED_KEY (at
// its limit), SINGLE_KEY (one request at a time), SMALL_KEY (too few tokens a minute) and MODEL say which. Prints a line for each case and exits 1 if one failed.
import assert from "node:assert/strict";
import OpenAI from "openai";
import { zodResponseFormat } from "openai/helpers/zod";
import { z } from "zod";

const { BASE_URL, API_KEY, READ_KEY, LIMITED_KEY, SINGLE_KEY, SMALL_KEY, MODEL } = process.env;
const client = (apiKey = API_KEY, maxRetries = 0) => new OpenAI({ baseURL: BASE_URL, apiKey, maxRetries });
const messages = [{ role: "user", content: "Name one river in Oregon." }];
const chat = (options = {}, c = client()) => c.chat.completions.create({ model: MODEL, messages, max_tokens: 8, ...options });

async function refused(kind, status, code, param, call) {
  const e = await call().then(() => assert.fail(`no ${kind.name}`), (e) => e);
  assert.ok(e instanceof kind, String(e));
  assert.deepEqual([e.status, e.code, e.param], [status, code, param]);
  assert.match(e.requestID, /^req_/);
  return e;
}

const cases = {
  async models() {
    assert.deepEqual((await client().models.list()).data.map((m) => m.id), [MODEL]);
    assert.equal((await client().models.retrieve(MODEL)).id, MODEL);
  },
  async text() {
    const answer = await chat();
    assert.ok(answer.usage.total_tokens > 0);
    assert.equal(answer.b3os.route, "local");
  },
  async stream() {
    let last;
    for await (last of await chat({ stream: true, stream_options: { include_usage: true } }));
    assert.ok(last.usage.completion_tokens > 0 && last.choices.length === 0);
  },
  async stream_helper() {
    const runner = client().chat.completions.stream({ model: MODEL, messages, max_tokens: 8 });
    assert.ok((await runner.finalChatCompletion()).choices.length === 1);
  },
  async tool_loop() {
    const parameters = { type: "object", properties: { city: { enum: ["Eugene"] } }, required: ["city"], additionalProperties: false };
    const options = { tools: [{ type: "function", function: { name: "weather", parameters } }], max_tokens: 64 };
    const first = (await chat({ ...options, tool_choice: "required", parallel_tool_calls: false })).choices[0].message;
    assert.equal(first.tool_calls[0].function.name, "weather");
    const result = { role: "tool", tool_call_id: first.tool_calls[0].id, content: "52F" };
    assert.ok((await chat({ ...options, messages: [...messages, first, result] })).choices.length === 1);
  },
  async parse() {
    const response_format = zodResponseFormat(z.object({ city: z.enum(["Eugene", "Bend"]) }), "city");
    const answer = await client().chat.completions.parse({ model: MODEL, messages, max_tokens: 64, response_format });
    assert.ok(["Eugene", "Bend"].includes(answer.choices[0].message.parsed.city), JSON.stringify(answer));
    await assert.rejects(client().chat.completions.parse({ model: MODEL, messages, max_tokens: 1, response_format }), /length/i);
  },
  async errors() {
    await refused(OpenAI.BadRequestError, 400, "invalid_request", "temperature", () => chat({ temperature: 3 }));
    await refused(OpenAI.NotFoundError, 404, "model_not_available", "model", () => chat({ model: "gpt-5" }));
    await refused(OpenAI.PermissionDeniedError, 403, "forbidden", null, () => chat({}, client(READ_KEY)));
    await refused(OpenAI.AuthenticationError, 401, "unauthorized", null, () => chat({}, client("b3os_sk_nonsense")));
  },
  async limited() {
    const e = await refused(OpenAI.RateLimitError, 429, "rate_limited", null, () => chat({}, client(LIMITED_KEY)));
    assert.ok(Number(e.headers.get("retry-after")) > 0);
  },
  async limit_is_waited_for() {
    const running = await chat({ stream: true, max_tokens: 3000 }, client(SINGLE_KEY));
    setTimeout(() => running.controller.abort(), 300);
    const begun = performance.now();
    assert.ok((await chat({}, client(SINGLE_KEY, 5))).choices.length === 1);
    assert.ok(performance.now() - begun >= 1000, "it was let in at once");
  },
  async too_much_is_not_waited_for() {
    const begun = performance.now();
    await refused(OpenAI.RateLimitError, 429, "rate_limited", null, () => chat({}, client(SMALL_KEY, 2)));
    assert.ok(performance.now() - begun < 400, "it was tried again");
  },
};

let failed = 0;
for (const [name, run] of Object.entries(cases)) {
  try {
    await run();
    console.log("ok  ", name);
  } catch (e) {
    failed++;
    console.log("FAIL", name, String(e).slice(0, 500));
  }
}
process.exit(failed > 0 ? 1 : 0);
