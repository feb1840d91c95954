import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";

import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js";
import { sign, verify as verifyAsRetell } from "retell-sdk";

import { verifyElevenLabs, verifyRetell, verifyVapi, type HeadersLike } from "../src/webhooks.js";

const SECRET = "a secret of these tests, ключ";
const BODY = JSON.stringify({ event: "call_ended", said: "Grüße, 你好" });
const NOW = 1_764_000_000_000;
const TAMPERED = BODY.replace("ended", "begun");

function hmac(text: string, secret = SECRET): string {
  return createHmac("sha256", secret).update(text).digest("hex");
}

interface Vendor {
  name: string;
  verify: (body: string | Uint8Array, headers: HeadersLike, secret: string, now?: number) => Promise<boolean>;
  headers: (body: string, at: number, secret?: string) => Record<string, string>;
  withinMs: number | undefined;
}

const VENDORS: Vendor[] = [
  {
    name: "Vapi",
    verify: (body, headers, secret) => verifyVapi(body, headers, secret),
    headers: (body, _, secret) => ({ "x-vapi-signature": `sha256=${hmac(body, secret)}` }),
    withinMs: undefined,
  },
  {
    name: "Retell",
    verify: (body, headers, secret, now = NOW) => verifyRetell(body, headers, secret, { now }),
    headers: (body, at, secret) => ({ "x-retell-signature": `v=${at},d=${hmac(`${body}${at}`, secret)}` }),
    withinMs: 5 * 60_000,
  },
  {
    name: "ElevenLabs",
    verify: (body, headers, secret, now = NOW) => verifyElevenLabs(body, headers, secret, { now }),
    headers: (body, at, secret) => {
      const seconds = Math.floor(at / 1000);
      return { "elevenlabs-signature": `t=${seconds},v0=${hmac(`${seconds}.${body}`, secret)}` };
    },
    withinMs: 30 * 60_000,
  },
];

for (const { name, verify, headers, withinMs } of VENDORS) {
  describe(name, () => {
    const signed = headers(BODY, NOW);
    const [header, signature] = Object.entries(signed)[0]!;

    test("what it signed is let in, however headers and body are given", async () => {
      assert.equal(await verify(BODY, signed, SECRET), true);
      assert.equal(await verify(BODY, new Headers(signed), SECRET), true);
      assert.equal(await verify(BODY, { [header.toUpperCase()]: signature }, SECRET), true);
      assert.equal(await verify(new TextEncoder().encode(BODY), signed, SECRET), true);
    });

    test("anything else is not", async () => {
      const flipped = signature.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
      assert.equal(await verify(TAMPERED, signed, SECRET), false);
      assert.equal(await verify("", signed, SECRET), false);
      assert.equal(await verify(BODY, signed, "another secret"), false);
      assert.equal(await verify(BODY, headers(BODY, NOW, ""), ""), false, "no secret opens nothing");
      for (const wrong of ["", flipped, signature.slice(0, -2), `${signature}00`, signature.replace(/[0-9a-f]{64}/, ""), "v=1,d=2", "===,,,"]) {
        assert.equal(await verify(BODY, { [header]: wrong }, SECRET), false, wrong);
      }
      assert.equal(await verify(BODY, {}, SECRET), false);
      assert.equal(await verify(BODY, { [header]: [signature, signature] }, SECRET), false);
    });

    if (withinMs !== undefined) {
      test("what is old, or of the future, is not", async () => {
        for (const [apart, expected] of [[-withinMs, true], [withinMs, true], [-withinMs - 1000, false], [withinMs + 1000, false]] as const) {
          assert.equal(await verify(BODY, headers(BODY, NOW + apart), SECRET), expected, String(apart));
        }
        assert.equal(await verify(BODY, signed, SECRET, NOW + withinMs + 1), false);
        for (const time of ["", "NaN", "-1", "1e99", "0x1", "1".repeat(400)]) {
          const moved = signature.replace(/=[0-9]+,/, `=${time},`);
          assert.equal(await verify(BODY, { [header]: moved }, SECRET), false, time);
        }
      });
    }
  });
}

describe("Vapi's plain secret", () => {
  test("is taken from its header or as a bearer token, and only where nothing was signed", async () => {
    assert.equal(await verifyVapi(BODY, { "x-vapi-secret": SECRET }, SECRET), true);
    assert.equal(await verifyVapi(BODY, { Authorization: `Bearer ${SECRET}` }, SECRET), true);
    for (const wrong of ["", "x", `${SECRET}\0`, SECRET.slice(1), SECRET.toUpperCase()]) {
      assert.equal(await verifyVapi(BODY, { "x-vapi-secret": wrong }, SECRET), false);
      assert.equal(await verifyVapi(BODY, { authorization: `Bearer ${wrong}` }, SECRET), false);
    }
    assert.equal(await verifyVapi(BODY, { authorization: SECRET }, SECRET), false);
    assert.equal(await verifyVapi(BODY, { "x-vapi-secret": SECRET, "x-vapi-signature": "sha256=00" }, SECRET), false);
    assert.equal(await verifyVapi(BODY, { "x-vapi-secret": "" }, ""), false);
  });
});

describe("the vendors' own libraries", () => {
  test("Retell's signs what is let in here, and lets in what is signed here", async () => {
    const signature = await sign(BODY, SECRET);
    assert.equal(await verifyRetell(BODY, { "x-retell-signature": signature }, SECRET), true);
    assert.equal(await verifyRetell(TAMPERED, { "x-retell-signature": signature }, SECRET), false);
    const now = Date.now();
    assert.equal(await verifyAsRetell(BODY, SECRET, `v=${now},d=${hmac(`${BODY}${now}`)}`), true);
  });

  test("ElevenLabs' lets in what is let in here", async () => {
    const time = Math.floor(Date.now() / 1000);
    const signature = `t=${time},v0=${hmac(`${time}.${BODY}`)}`;
    const { webhooks } = new ElevenLabsClient({ apiKey: "none" });
    assert.deepEqual(await webhooks.constructEvent(BODY, signature, SECRET), JSON.parse(BODY));
    assert.equal(await verifyElevenLabs(BODY, { "elevenlabs-signature": signature }, SECRET), true);
    await assert.rejects(webhooks.constructEvent(TAMPERED, signature, SECRET));
    assert.equal(await verifyElevenLabs(TAMPERED, { "elevenlabs-signature": signature }, SECRET), false);
  });
});
