/** The example with the Vercel AI SDK, its own mock model, and a real server. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";

import { Echoic, User, type Conversation } from "@echoic/client";
import { generateText, streamText, wrapLanguageModel, type ModelMessage } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

import { remembering } from "../examples/vercel-ai.js";

const url = process.env["ECHOIC_URL"] ?? "";
const key = process.env["ECHOIC_AGENT_KEY"] ?? "";
const QUESTION = "What is my dog called?";

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const finishReason = { unified: "stop", raw: "stop" } as const;

function mock(): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doGenerate: { content: [{ type: "text", text: "Biscuit." }], finishReason, usage, warnings: [] },
    doStream: {
      stream: simulateReadableStream({
        chunks: [
          { type: "text-start", id: "1" },
          { type: "text-delta", id: "1", delta: "Biscuit." },
          { type: "text-end", id: "1" },
          { type: "finish", finishReason, usage },
        ],
      }),
    },
  });
}

async function calls(): Promise<Conversation> {
  const ana = new Echoic(url, key).user(randomUUID());
  const before = await ana.conversation("before");
  await before.append({ speaker: "user", text: "My dog is called Biscuit." });
  return ana.conversation("call-1");
}

test("what was said in an earlier call stands in the request, and in none of one's own messages", async () => {
  const call = await calls();
  const inner = mock();
  const model = wrapLanguageModel({ model: inner, middleware: remembering(call, { deadlineMs: 10_000 }) });
  const messages: ModelMessage[] = [
    { role: "user", content: "Hello." },
    { role: "assistant", content: "Hello, how can I help?" },
    { role: "user", content: QUESTION },
  ];
  const untouched = JSON.stringify(messages);
  await call.append({ speaker: "user", text: QUESTION });
  const { text } = await generateText({ model, system: "You are Pip.", messages });
  await call.append({ speaker: "agent", text });

  assert.equal(inner.doGenerateCalls.length, 1, "one request a turn");
  const prompt = inner.doGenerateCalls[0]!.prompt;
  const newest = prompt.at(-1)!;
  assert.match(JSON.stringify(newest), /From memory.*Biscuit.*What is my dog called\?/);
  assert.doesNotMatch(JSON.stringify(prompt.slice(0, -1)), /Biscuit/);
  assert.deepEqual(prompt.map((message) => message.role), ["system", "user", "assistant", "user"]);
  assert.equal(JSON.stringify(messages), untouched);
});

test("likewise where the answer is streamed", async () => {
  const inner = mock();
  const model = wrapLanguageModel({ model: inner, middleware: remembering(await calls(), { deadlineMs: 10_000 }) });
  assert.equal(await streamText({ model, prompt: QUESTION }).text, "Biscuit.");
  assert.equal(inner.doStreamCalls.length, 1);
  assert.match(JSON.stringify(inner.doStreamCalls[0]!.prompt), /From memory.*Biscuit/);
});

test("where memory is away the call goes on, and the model is told", async () => {
  const call = await calls();
  const away: typeof fetch = async (input, init) => {
    if (String(input).endsWith("/brief")) throw new TypeError("away");
    return fetch(input, init);
  };
  const token = await new Echoic(url, key).token("somebody");
  const lost = await User.withToken(url, token, { fetch: away }).conversation("call-1");
  const inner = mock();
  const model = wrapLanguageModel({ model: inner, middleware: remembering(lost) });
  assert.equal((await generateText({ model, prompt: QUESTION })).text, "Biscuit.");
  assert.match(JSON.stringify(inner.doGenerateCalls[0]!.prompt), /could not be looked at/);
  assert.equal(call.id, "call-1");
});
