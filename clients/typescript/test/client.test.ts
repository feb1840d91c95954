/** Against a real server: ECHOIC_URL says where, ECHOIC_AGENT_KEY is its key. `make integrations ONLY=typescript` sets both. */

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test } from "node:test";

import { Echoic, EchoicError, User, type ClientOptions } from "../src/index.js";

const url = required("ECHOIC_URL");
const key = required("ECHOIC_AGENT_KEY");

function required(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set: run make integrations ONLY=typescript`);
  return value;
}

/** Somebody nobody has met. */
function somebody(options?: ClientOptions): User {
  return new Echoic(url, key, options).user(randomUUID());
}

/** A fetch that counts, and may spoil an exchange before or after it. */
function spoiled(spoil: (path: string, count: number) => Response | "lost" | undefined): [typeof fetch, string[]] {
  const paths: string[] = [];
  const fetched: typeof fetch = async (input, init) => {
    const path = new URL(String(input)).pathname;
    paths.push(path);
    const instead = spoil(path, paths.filter((each) => each === path).length);
    if (instead instanceof Response) return instead;
    const answer = await fetch(input, init);
    if (instead === "lost") throw new TypeError("the connection was lost");
    return answer;
  };
  return [fetched, paths];
}

function refused(code: string): (error: unknown) => boolean {
  return (error) => error instanceof EchoicError && error.code === code;
}

const DOG = "My dog is called Biscuit.";
const QUESTION = "What is my dog called?";

describe("memory of a user", () => {
  test("what was said in one call is known in the next, and to nobody else", async () => {
    const ana = somebody();
    const first = await ana.conversation("call-1", { agent: "support" });
    assert.equal(first.info.status, "active");
    const [kept] = await first.append({ speaker: "user", text: DOG, confidence: 0.9 });
    assert.equal(kept?.confidence, 0.9);
    assert.equal((await first.complete()).status, "completed");

    const second = await ana.conversation("call-2");
    const known = await second.brief(QUESTION, { deadlineMs: 10_000 });
    assert.match(known.text, /Biscuit/);
    assert.equal(known.outcome, "complete");
    assert.match((await ana.recall(QUESTION, { limit: 3 })).hits[0]?.text ?? "", /Biscuit/);

    const nobody = await somebody().brief(QUESTION);
    assert.deepEqual([nobody.text, nobody.outcome, nobody.hits], ["Nothing about this is in memory.", "complete", []]);
  });

  test("the running conversation is no answer from memory", async () => {
    const call = await somebody().conversation();
    await call.append({ speaker: "user", text: QUESTION });
    assert.deepEqual((await call.recall(QUESTION)).hits, []);
  });

  test("a value is set, got, corrected and retracted", async () => {
    const ana = somebody();
    assert.equal(await ana.get("home/address"), null);
    await ana.set("home/address", "Oslo", { category: "fact" });
    const kept = await ana.set("home/address", "Kyoto");
    assert.equal(kept.visibility, "private");
    assert.equal((await ana.get("home/address"))?.text, "Kyoto");
    assert.equal(await ana.delete({ key: "home/address" }), true);
    assert.equal(await ana.get("home/address"), null);
  });

  test("a sentence is remembered once, and forgotten with a receipt", async () => {
    const ana = somebody();
    const kept = await ana.remember("Ana prefers the morning.", { category: "preference" });
    assert.deepEqual(await ana.remember("Ana prefers the morning.", { category: "preference" }), kept);
    assert.equal((await ana.memories()).length, 1);
    assert.match(JSON.stringify(await ana.export()), /prefers the morning/);
    const receipt = await ana.forget({ id: kept.id });
    assert.deepEqual([receipt.memories, receipt.verified], [1, true]);
    assert.doesNotMatch(JSON.stringify(await ana.export()), /prefers the morning/);
  });

  test("the context of a session is the same bytes until something changes", async () => {
    const ana = somebody();
    await ana.set("user_name", "Ana");
    const call = await ana.conversation("call-1", { agent: "support" });
    const block = await call.context();
    assert.match(block.text, /Ana/);
    assert.equal((await call.context()).text, block.text);
  });
});

describe("a conversation", () => {
  test("keeps its turns in the order in which they were appended, without waiting for each", async () => {
    const call = await somebody().conversation();
    const texts = Array.from({ length: 12 }, (_, place) => `This is sentence ${place}.`);
    await Promise.all(texts.map((text) => call.append({ speaker: "user", text })));
    assert.deepEqual((await call.turns()).map((turn) => turn.text), texts);
  });

  test("keeps a turn once that is delivered twice", async () => {
    const call = await somebody().conversation();
    const turn = { id: "t1", speaker: "user", text: DOG };
    assert.deepEqual(await call.append(turn), await call.append(turn));
    assert.equal((await call.turns()).length, 1);
  });

  test("keeps what was said and what was heard", async () => {
    const call = await somebody().conversation();
    const [asked] = await call.append({ speaker: "user", text: "What do I owe you?" });
    await call.append({ speaker: "agent", text: "Nothing at all, your account is settled." });
    const [cut] = await call.truncate("Nothing at all,", { after: asked!.id });
    assert.equal(cut?.heard, "Nothing at all,");
    assert.match(cut?.text ?? "", /settled/);
    await call.append({ speaker: "agent", text: "Your account is settled.", heard: "" });
    assert.deepEqual((await call.turns()).map((turn) => turn.heard), [null, "Nothing at all,", ""]);
  });

  test("is not brought back by what comes after it was forgotten", async () => {
    const ana = somebody();
    const call = await ana.conversation("call-1");
    await ana.forget({ conversation: "call-1" });
    await assert.rejects(call.append({ speaker: "user", text: DOG }), refused("not_found"));
  });

  test("goes on after a turn that was refused", async () => {
    const call = await somebody().conversation();
    const bad = call.append({ speaker: "user", text: " " });
    const good = call.append({ speaker: "user", text: DOG });
    await assert.rejects(bad, refused("invalid_input"));
    assert.equal((await good).length, 1);
  });
});

describe("listening", () => {
  test("gives the answer to what was said while the user spoke", async () => {
    const ana = somebody();
    const before = await ana.conversation("before");
    await before.append({ speaker: "user", text: DOG });
    const listening = (await ana.conversation("call-1")).listen();
    for (const text of ["what", "what is my", "what is my dog", "what is my dog called"]) listening.partial(text);
    const found = await listening.final(QUESTION, { deadlineMs: 10_000, budgetTokens: 100 });
    assert.match(found.text, /Biscuit/);
    assert.ok(found.tokens <= 100);
    assert.match((await listening.final("and what is my dog called again?")).text, /Biscuit/);
  });

  test("sends one partial at a time, and the newest of those that came meanwhile", async () => {
    const [fetched, paths] = spoiled(() => undefined);
    const call = await somebody({ fetch: fetched }).conversation("call-1");
    const listening = call.listen();
    for (const text of ["a", "a dog", "a dog is", "a dog is here", "  "]) listening.partial(text);
    await listening.final("a dog is here now");
    assert.ok(paths.filter((path) => path.endsWith("/partial")).length <= 2);
  });

  test("never fails on a partial", async () => {
    const [fetched] = spoiled((path) => (path.endsWith("/partial") ? new Response("no", { status: 500 }) : undefined));
    const listening = (await somebody({ fetch: fetched }).conversation("call-1")).listen();
    listening.partial("what is");
    assert.equal((await listening.final(QUESTION)).outcome, "complete");
  });
});

describe("faults", () => {
  test("a write whose answer was lost is sent again and kept once", async () => {
    const [fetched, paths] = spoiled((path, count) => (path.endsWith("/turns") && count === 1 ? "lost" : undefined));
    const call = await somebody({ fetch: fetched }).conversation("call-1");
    const kept = await call.append({ speaker: "user", text: DOG });
    assert.equal(paths.filter((path) => path.endsWith("/turns")).length, 2);
    assert.deepEqual(await call.turns(), kept);
  });

  test("what was retracted or destroyed is never answered as nothing, where the first answer was lost", async () => {
    const loses = (path: string, count: number) =>
      count === 1 && (path === "/v1/forget" || path === "/v1/keys/pet") ? "lost" : undefined;
    const [fetched, paths] = spoiled(loses);
    const ana = somebody({ fetch: fetched });
    const kept = await ana.remember(DOG);
    await assert.rejects(ana.delete({ key: "pet" }), refused("unreachable"));
    await assert.rejects(ana.forget({ id: kept.id }), refused("unreachable"));
    assert.deepEqual(paths.slice(-2), ["/v1/keys/pet", "/v1/forget"]);
    assert.deepEqual(await ana.memories(), []);
  });

  test("a retraction that the server put off is sent again, and an erasure may take longer than a write", async () => {
    const busy = () => Response.json({ error: "busy", code: "busy" }, { status: 503, headers: { "Retry-After": "0" } });
    const [fetched] = spoiled((path, count) => (path === "/v1/keys/pet" && count === 2 ? busy() : undefined));
    const late: typeof fetch = async (input, init) => {
      if (String(input).endsWith("/forget")) await new Promise((resolve) => setTimeout(resolve, 2_500));
      init?.signal?.throwIfAborted();
      return fetched(input, init);
    };
    const ana = somebody({ fetch: late, timeoutMs: 2_000 });
    await ana.set("pet", "a dog");
    assert.equal(await ana.delete({ key: "pet" }), true);
    assert.equal((await ana.forget({ everything: true })).verified, true);
  });

  test("a conversation without an id is begun once, too", async () => {
    const [fetched] = spoiled((path, count) => (path === "/v1/conversations" && count === 1 ? "lost" : undefined));
    const ana = somebody({ fetch: fetched });
    await ana.conversation();
    const { conversations } = await ana.export();
    assert.equal((conversations as unknown[]).length, 1);
  });

  test("where memory cannot be looked at, nothing is said to be unknown", async () => {
    const away = new Response(JSON.stringify({ success: false, error: "away", code: "store_unavailable" }), { status: 503 });
    const [fetched, paths] = spoiled((path) => (path === "/v1/brief" ? away : undefined));
    await assert.rejects(somebody({ fetch: fetched }).brief(QUESTION), refused("store_unavailable"));
    assert.equal(paths.filter((path) => path === "/v1/brief").length, 1, "a search is not sent again");
    await assert.rejects(User.withToken("http://127.0.0.1:9", "token").brief(QUESTION), refused("unreachable"));
    const page: typeof fetch = async () => new Response("<html>");
    await assert.rejects(User.withToken(url, "token", { fetch: page }).brief(QUESTION), refused("unreachable"));
  });

  test("a server that hangs delays nobody by more than their deadline", async () => {
    const hangs: typeof fetch = (_, init) =>
      new Promise((_resolve, reject) => {
        const socket = setInterval(() => undefined, 1000); // keeps the process, as a connection does
        init?.signal?.addEventListener("abort", () => {
          clearInterval(socket);
          reject(init.signal?.reason);
        });
      });
    const ana = User.withToken(url, "token", { fetch: hangs, networkMs: 10 });
    await assert.rejects(ana.brief(QUESTION, { deadlineMs: 20 }), refused("timeout"));
    await assert.rejects(ana.recall(QUESTION, { deadlineMs: 20 }), refused("timeout"));
    await assert.rejects(ana.context({ deadlineMs: 20 }), refused("timeout"));
  });

  test("what is no URL is refused at once, and a path or a slash at its end is kept", async () => {
    assert.throws(() => User.withToken("memory.example", "token"), TypeError);
    const asked: string[] = [];
    const seen: typeof fetch = async (input) => {
      asked.push(String(input));
      return Response.json({ memory: null });
    };
    for (const base of ["https://memory.example", "https://memory.example/", "https://memory.example/echoic/"]) {
      await User.withToken(base, "token", { fetch: seen }).get("a/b?c#d");
    }
    const path = "/v1/keys/a%2Fb%3Fc%23d";
    assert.deepEqual(asked, [`https://memory.example${path}`, `https://memory.example${path}`, `https://memory.example/echoic${path}`]);
  });

  test("what will never succeed is not tried again", async () => {
    const [fetched, paths] = spoiled(() => undefined);
    await assert.rejects(somebody({ fetch: fetched }).set("", "x"), EchoicError);
    await assert.rejects(somebody({ fetch: fetched }).set("pet", " "), (error: EchoicError) => error.status === 422);
    assert.equal(paths.filter((path) => path === "/v1/keys/pet").length, 1);
  });
});

describe("who may", () => {
  test("a token is one user's, in a browser as well, and asks for no other", async () => {
    const echoic = new Echoic(url, key);
    const id = randomUUID();
    await echoic.user(id).set("pet", "Biscuit");
    const token = await echoic.token(id, { expiresInS: 60 });
    assert.equal((await User.withToken(url, token).get("pet"))?.text, "Biscuit");
    assert.equal((await User.withToken(url, async () => token).get("pet"))?.text, "Biscuit");
    await assert.rejects(new Echoic(url, token).token("somebody else"), refused("unauthorised"));
  });

  test("one token serves many requests, and one that was refused is replaced", async () => {
    const revoked = new Response(JSON.stringify({ error: "revoked", code: "unauthorised" }), { status: 401 });
    const [fetched, paths] = spoiled((path, count) => (path === "/v1/keys/pet" && count === 3 ? revoked : undefined));
    const ana = somebody({ fetch: fetched });
    await Promise.all([ana.get("pet"), ana.get("pet")]);
    assert.equal(paths.filter((path) => path === "/v1/tokens").length, 1);
    assert.equal(await ana.get("pet"), null);
    assert.equal(paths.filter((path) => path === "/v1/tokens").length, 2);
  });

  test("a key that is none gets nothing, and says so", async () => {
    const [fetched, paths] = spoiled(() => undefined);
    const ana = new Echoic(url, "not a key", { fetch: fetched }).user("ana");
    for (const ask of [() => ana.brief(QUESTION), () => ana.set("pet", "Rex"), () => ana.conversation()]) {
      await assert.rejects(ask, (error: EchoicError) => error.status === 401 && !error.isTemporary);
    }
    assert.deepEqual(paths, ["/v1/tokens", "/v1/tokens", "/v1/tokens"]);
  });

  test("neither key nor token leaves for where a server points to", async () => {
    const asked: (string | undefined)[] = [];
    const elsewhere = createServer((request, response) => {
      asked.push(request.url);
      response.writeHead(307, { Location: "/elsewhere" }).end();
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
    const { port } = elsewhere.address() as AddressInfo;
    await assert.rejects(new Echoic(`http://127.0.0.1:${port}`, key).token("ana"), refused("unreachable"));
    elsewhere.close();
    assert.deepEqual(asked, ["/v1/tokens"]);
  });
});
