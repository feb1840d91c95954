/** The example with LiveKit's agents: a real session with its own fake model, and a real server. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";

import { Echoic, User, type Conversation } from "@echoic/client";
import { initializeLogger, voice } from "@livekit/agents";

import { RememberingAgent } from "../examples/livekit-agents.js";

const url = process.env["ECHOIC_URL"] ?? "";
const key = process.env["ECHOIC_AGENT_KEY"] ?? "";
const QUESTION = "What is my dog called?";

initializeLogger({ pretty: false, level: "error" });
// LiveKit's worker threads would keep the process
after(() => setTimeout(() => process.exit(), 500).unref());

/** LiveKit's fake model, which keeps what it was asked. */
class Model extends voice.testing.FakeLLM {
  readonly asked: string[][] = [];

  override chat(options: Parameters<voice.testing.FakeLLM["chat"]>[0]): ReturnType<voice.testing.FakeLLM["chat"]> {
    this.asked.push(
      options.chatCtx.items.map((item) => (item.type === "message" ? `${item.role}: ${item.textContent ?? ""}` : item.type)),
    );
    return super.chat(options);
  }
}

async function called(call: Conversation, say: string[]): Promise<{ model: Model; agent: RememberingAgent }> {
  const model = new Model(say.map((input) => ({ input, content: `Noted: ${input}` })));
  const session = new voice.AgentSession({ llm: model });
  const agent = new RememberingAgent({ call, deadlineMs: 10_000, instructions: "You are Pip." });
  await session.start({ agent: agent.following(session) });
  for (const userInput of say) await session.run({ userInput }).wait();
  await session.close();
  return { model, agent };
}

test("what was said in one call is told to the model in the next, once a turn, and stays out of its history", async () => {
  const ana = new Echoic(url, key).user(randomUUID());
  const first = await ana.conversation("call-1");
  const said = "My dog is called Biscuit.";
  await (await called(first, [said])).agent.hungUp();
  assert.deepEqual((await first.turns()).map((turn) => `${turn.speaker}: ${turn.text}`), [`user: ${said}`, `agent: Noted: ${said}`]);

  const { model, agent } = await called(await ana.conversation("call-2"), ["Hello there.", QUESTION]);
  await agent.hungUp();
  assert.equal(model.asked.length, 2, "one request a turn");
  const request = model.asked[1]!;
  assert.equal(request.at(-1), `user: ${QUESTION}`);
  assert.match(request.at(-2) ?? "", /^user: <memory>[\s\S]*Biscuit/);
  assert.equal(request.filter((item) => item.includes("<memory>")).length, 1, "nothing piles up");
  const history = agent.chatCtx.items.map((item) => (item.type === "message" ? item.textContent : ""));
  assert.ok(!history.some((text) => /memory|Biscuit/.test(text ?? "")));
});

test("where memory is away the call goes on, and the model is told", async () => {
  const token = await new Echoic(url, key).token(randomUUID());
  const away: typeof fetch = async (input, init) => {
    if (String(input).endsWith("/final")) throw new TypeError("away");
    return fetch(input, init);
  };
  const lost = await User.withToken(url, token, { fetch: away }).conversation("call-1");
  const { model } = await called(lost, [QUESTION]);
  assert.match(model.asked[0]!.at(-2) ?? "", /could not be looked at/);
  assert.equal((await lost.turns()).length, 2);
});
