/**
 * Who sent a webhook: the signatures of Vapi, Retell and ElevenLabs, checked with WebCrypto.
 *
 *     const body = await request.text();
 *     if (!(await verifyRetell(body, request.headers, key))) return new Response(null, { status: 401 });
 *
 * Give the body exactly as it came, before it is parsed.
 */

/** A `Headers`, or the headers of a Node request. */
export type HeadersLike =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** Instead of the present, in milliseconds since 1970. */
  now?: number;
}

const RETELL_MS = 5 * 60_000;
const ELEVENLABS_MS = 30 * 60_000;
const encoder = new TextEncoder();

/**
 * Whether Vapi sent it: `x-vapi-signature` with an HMAC of the body, else the secret itself in `x-vapi-secret` or as a
 * bearer token. Vapi sends no time, so a request can be replayed: write with ids that follow from the call.
 */
export async function verifyVapi(body: string | Uint8Array, headers: HeadersLike, secret: string): Promise<boolean> {
  if (secret === "") return false;
  const signature = header(headers, "x-vapi-signature");
  if (signature !== "") {
    return signature.startsWith("sha256=") && isSigned(secret, bytes(body), signature.slice(7));
  }
  const bearer = /^Bearer (.+)$/.exec(header(headers, "authorization"))?.[1] ?? "";
  return isSame(header(headers, "x-vapi-secret") || bearer, secret);
}

/** Whether Retell sent it, at most five minutes ago: `x-retell-signature` with the account's API key. */
export async function verifyRetell(
  body: string | Uint8Array,
  headers: HeadersLike,
  apiKey: string,
  options: VerifyOptions = {},
): Promise<boolean> {
  const { v: time = "", d: digest = "" } = parts(header(headers, "x-retell-signature"));
  if (apiKey === "" || !isNear(time, 1, RETELL_MS, options)) return false;
  return isSigned(apiKey, joined(bytes(body), bytes(time)), digest);
}

/** Whether ElevenLabs sent it, at most thirty minutes ago: `elevenlabs-signature` with the webhook's secret. */
export async function verifyElevenLabs(
  body: string | Uint8Array,
  headers: HeadersLike,
  secret: string,
  options: VerifyOptions = {},
): Promise<boolean> {
  const { t: time = "", v0: digest = "" } = parts(header(headers, "elevenlabs-signature"));
  if (secret === "" || !isNear(time, 1000, ELEVENLABS_MS, options)) return false;
  return isSigned(secret, joined(bytes(`${time}.`), bytes(body)), digest);
}

function header(headers: HeadersLike, name: string): string {
  if (typeof headers.get === "function") return headers.get(name) ?? "";
  for (const [key, value] of Object.entries(headers)) {
    if (key.toLowerCase() === name && typeof value === "string") return value;
  }
  return "";
}

/** "a=1,b=2" as an object; of a name that comes twice, the first. */
function parts(signature: string): Record<string, string> {
  const found: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const part of signature.split(",")) {
    const [name, value] = [part.slice(0, part.indexOf("=")).trim(), part.slice(part.indexOf("=") + 1).trim()];
    if (part.includes("=") && !(name in found)) found[name] = value;
  }
  return found;
}

/** Whether `time`, in units of `unitMs`, is at most `withinMs` from now, in the past or the future. */
function isNear(time: string, unitMs: number, withinMs: number, options: VerifyOptions): boolean {
  return /^[0-9]{1,15}$/.test(time) && Math.abs((options.now ?? Date.now()) - Number(time) * unitMs) <= withinMs;
}

async function isSigned(secret: string, message: Uint8Array<ArrayBuffer>, hex: string): Promise<boolean> {
  if (!/^[0-9a-fA-F]{64}$/.test(hex)) return false;
  const signature = Uint8Array.from({ length: 32 }, (_, place) => parseInt(hex.slice(2 * place, 2 * place + 2), 16));
  return crypto.subtle.verify("HMAC", await hmacKey(secret), signature, message);
}

/** Compared by their digests, whole, so that the time tells nothing of the secret. */
async function isSame(given: string, secret: string): Promise<boolean> {
  const [one, other] = await Promise.all([given, secret].map((text) => crypto.subtle.digest("SHA-256", bytes(text))));
  const theirs = new Uint8Array(other as ArrayBuffer);
  return new Uint8Array(one as ArrayBuffer).reduce((difference, byte, place) => difference | (byte ^ (theirs[place] ?? 0)), 0) === 0;
}

function hmacKey(secret: string): Promise<CryptoKey> {
  return crypto.subtle.importKey("raw", bytes(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

function bytes(text: string | Uint8Array): Uint8Array<ArrayBuffer> {
  return typeof text === "string" ? encoder.encode(text) : Uint8Array.from(text);
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
