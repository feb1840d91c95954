/**
 * Memory for voice agents, over HTTP: a client of Echoic's /v1 routes. Needs nothing but `fetch`.
 *
 *     const ana = new Echoic(url, agentKey).user("crm-48213");
 *     const call = await ana.conversation("call-1");
 *     await call.append({ speaker: "user", text: "I am allergic to penicillin." });
 *     const { text, outcome } = await ana.brief("what am I allergic to?", { deadlineMs: 150 });
 */

import type { components } from "./api.js";
import { EchoicError, Transport, type ClientOptions } from "./transport.js";

export { EchoicError, type ClientOptions } from "./transport.js";

type Schemas = components["schemas"];

export type Block = Schemas["BlockText"];
export type Brief = Schemas["BriefAnswer"];
export type ConversationInfo = Schemas["ConversationView"];
export type Forget = Schemas["Forget"];
export type Hit = Schemas["FoundHit"];
export type Memory = Schemas["MemoryView"];
export type NewTurn = Schemas["NewTurn"];
export type Outcome = Brief["outcome"];
export type Receipt = Schemas["ReceiptView"];
export type Recall = Schemas["RecallAnswer"];
export type Turn = Schemas["TurnView"];

export type RecallOptions = Omit<Schemas["RecallRequest"], "query">;
export type BriefOptions = Omit<Schemas["BriefRequest"], "query">;
export type ContextOptions = Schemas["BlockRequest"];
export type FinalOptions = Omit<Schemas["FinalTranscript"], "text" | "number">;
export type SetOptions = Omit<Schemas["NewValue"], "value">;
export type RememberOptions = Omit<Schemas["NewMemory"], "text">;

/** Gives a user's token: itself, or asked for each time one is needed. */
export type TokenSource = string | (() => string | Promise<string>);

/** How long before its end a token is replaced. */
const RENEW_MS = 60_000;

/** A server, and the key of a backend that acts for its own users. For servers only: a key acts for everybody. */
export class Echoic {
  readonly #url: string;
  readonly #key: string;
  readonly #options: ClientOptions;

  constructor(url: string, key: string, options: ClientOptions = {}) {
    this.#url = url;
    this.#key = key;
    this.#options = options;
  }

  /** The memory of one of your users. Asks the server for a token when it is first used, and again before it ends. */
  user(id: string): User {
    let held: Promise<string> | undefined;
    let endsAt = 0;
    const source = (isRefused: boolean): Promise<string> => {
      if (held === undefined || isRefused || Date.now() > endsAt - RENEW_MS) {
        const lifetimeS = 3600;
        endsAt = Date.now() + lifetimeS * 1000;
        const asked = this.token(id, { expiresInS: lifetimeS });
        held = asked;
        asked.catch(() => {
          if (held === asked) held = undefined;
        });
      }
      return held;
    };
    return new User(new Transport(this.#url, source, this.#options));
  }

  /** A token to hand to the user's own browser, for `User.withToken`. It cannot be renewed. */
  async token(user: string, options: { expiresInS?: number } = {}): Promise<string> {
    const transport = new Transport(this.#url, () => Promise.resolve(this.#key), this.#options);
    const given = await transport.read<Schemas["UserToken"]>("POST", "/tokens", { user, ...options });
    return given.token;
  }
}

/** The memory of one user. */
export class User {
  readonly #transport: Transport;

  /** Made by `Echoic.user` or `User.withToken`. */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Whoever holds `token`, such as the user in their own browser. */
  static withToken(url: string, token: TokenSource, options: ClientOptions = {}): User {
    const source = async (): Promise<string> => (typeof token === "string" ? token : await token());
    return new User(new Transport(url, source, options));
  }

  /** Begin a conversation without a greeting, or continue the one with that id. */
  async conversation(id?: string, options: { agent?: string } = {}): Promise<Conversation> {
    const name = id ?? crypto.randomUUID();
    const info = await this.#transport.write<ConversationInfo>("POST", "/conversations", { id: name, ...options });
    return new Conversation(this.#transport, this, info);
  }

  /**
   * Memories and turns for a question, best first.
   *
   * No hits and the outcome "complete" mean that nothing is known. Where memory could not be looked at this throws.
   */
  recall(query: string, options: RecallOptions = {}): Promise<Recall> {
    return this.#transport.read("POST", "/recall", { ...options, query }, options.deadlineMs);
  }

  /** The answer from memory as text for a prompt, with its outcome. Throws where memory could not be looked at. */
  brief(query: string, options: BriefOptions = {}): Promise<Brief> {
    return this.#transport.read("POST", "/brief", { ...options, query }, options.deadlineMs);
  }

  /** The memory that a session starts with, as text for a prompt: the same bytes while nothing changed. */
  context(options: ContextOptions = {}): Promise<Block> {
    return this.#transport.read("POST", "/block", options, options.deadlineMs);
  }

  /** Keep `value` under `key`, private to the user unless `visibility` says otherwise. */
  set(key: string, value: string, options: SetOptions = {}): Promise<Memory> {
    return this.#transport.write("PUT", `/keys/${encodeURIComponent(key)}`, { ...options, value });
  }

  /** What is kept under `key`; null: nothing is known. */
  async get(key: string): Promise<Memory | null> {
    return (await this.#transport.read<Schemas["KeyValue"]>("GET", `/keys/${encodeURIComponent(key)}`)).memory;
  }

  /** Keep a sentence about the user. The same sentence again changes nothing. */
  remember(text: string, options: RememberOptions = {}): Promise<Memory> {
    return this.#transport.write("POST", "/memories", { ...options, text });
  }

  /** Every current memory of the user. */
  async memories(): Promise<Memory[]> {
    return (await this.#transport.read<Schemas["Memories"]>("GET", "/memories")).memories;
  }

  /**
   * Retract what is kept under a key, or a memory or turn by its id; whether there was anything. Throws where the answer
   * was lost: it may be retracted, and may be asked for again.
   */
  async delete(what: { key: string } | { id: string }): Promise<boolean> {
    const path = "key" in what ? `/keys/${encodeURIComponent(what.key)}` : `/memories/${encodeURIComponent(what.id)}`;
    return (await this.#transport.write<Schemas["Deleted"]>("DELETE", path, undefined, true)).deleted;
  }

  /**
   * Destroy what `what` names: exactly one of its fields. Cannot be undone. May take up to a minute, and is sent once.
   * Where it throws, some or all of it may be destroyed: ask again, and the receipt names what was left.
   */
  forget(what: Forget): Promise<Receipt> {
    return this.#transport.erase("/forget", what);
  }

  /** Memories, conversations, directives and items of the user, as `echoic import` takes them. */
  export(): Promise<Record<string, unknown>> {
    return this.#transport.read("GET", "/export");
  }
}

/** A running conversation. Its writes reach the server in the order in which they were asked for. */
export class Conversation {
  readonly id: string;
  readonly info: ConversationInfo;
  readonly #transport: Transport;
  readonly #user: User;
  readonly #path: string;
  #last: Promise<unknown> = Promise.resolve();

  /** Made by `User.conversation`. */
  constructor(transport: Transport, user: User, info: ConversationInfo) {
    this.#transport = transport;
    this.#user = user;
    this.info = info;
    this.id = info.id;
    this.#path = `/conversations/${encodeURIComponent(info.id)}`;
  }

  /**
   * Keep what was said; durable when it resolves. Delivering a turn with the same id again changes nothing.
   *
   * Turns without an id get one, so that a request that is tried again keeps nothing twice.
   */
  append(...turns: NewTurn[]): Promise<Turn[]> {
    const now = new Date().toISOString();
    const named = turns.map((turn) => ({
      ...turn,
      id: turn.id ?? crypto.randomUUID(),
      saidAt: turn.saidAt ?? now,
    }));
    return this.#inOrder(async () => {
      const kept = await this.#transport.write<Schemas["TurnList"]>("POST", `${this.#path}/turns`, { turns: named });
      return kept.turns;
    });
  }

  /**
   * The caller cut in: of the agent's answer to the turn `after`, only a part reached them. The words of it, as they are
   * written or as speech output reads them; or the fraction, or the number of words, that was played.
   */
  truncate(
    heard: string | { fraction: number } | { words: number },
    options: { after?: string } = {},
  ): Promise<Turn[]> {
    return this.#inOrder(async () => {
      const cut = await this.#transport.write<Schemas["Truncated"]>("POST", `${this.#path}/truncate`, {
        ...(typeof heard === "string" ? { heard } : heard),
        ...options,
      });
      return cut.turns;
    });
  }

  /** The call is over; it is learned from in the background. */
  complete(): Promise<ConversationInfo> {
    return this.#inOrder(() => this.#transport.write("POST", `${this.#path}/complete`));
  }

  /** Everything said so far. */
  async turns(): Promise<Turn[]> {
    return (await this.#transport.read<Schemas["TurnList"]>("GET", `${this.#path}/turns`)).turns;
  }

  /** `User.recall` without this conversation, which the model has before it anyway. */
  recall(query: string, options: RecallOptions = {}): Promise<Recall> {
    return this.#user.recall(query, { ...options, besides: [...(options.besides ?? []), this.id] });
  }

  /** `User.brief` without this conversation. */
  brief(query: string, options: BriefOptions = {}): Promise<Brief> {
    return this.#user.brief(query, { ...options, besides: [...(options.besides ?? []), this.id] });
  }

  /** `User.context` with what holds for this conversation and its agent. */
  context(options: ContextOptions = {}): Promise<Block> {
    return this.#user.context({ agent: this.info.agent, ...options, conversation: this.id });
  }

  /** Search while the user speaks, so that the answer is ready when they stop. */
  listen(): Listening {
    return new Listening(this.#transport, this.#path);
  }

  #inOrder<T>(write: () => Promise<T>): Promise<T> {
    const written = this.#last.then(write, write);
    this.#last = written;
    // whoever asked is told; those behind go on
    written.catch(() => undefined);
    return written;
  }
}

/** Follows the interim transcripts of one conversation, utterance by utterance. */
export class Listening {
  readonly #transport: Transport;
  readonly #path: string;
  #number = 0;
  #waiting: { text: string; alternatives: string[]; number: number } | undefined;
  #isSending = false;

  /** Made by `Conversation.listen`. */
  constructor(transport: Transport, path: string) {
    this.#transport = transport;
    this.#path = path;
  }

  /**
   * All of the utterance so far. Returns at once and never fails: losing one costs time, never an answer.
   *
   * One request is under way at a time; of the transcripts that come meanwhile the newest is sent.
   */
  partial(text: string, alternatives: string[] = []): void {
    if (text.trim() === "") return;
    this.#waiting = { text, alternatives, number: this.#next() };
    if (!this.#isSending) void this.#send();
  }

  /** The brief for the whole utterance. Ask before you append it. Throws where memory could not be looked at. */
  final(text: string, options: FinalOptions = {}): Promise<Brief> {
    this.#waiting = undefined;
    const body = { ...options, text, number: this.#next() };
    return this.#transport.read("POST", `${this.#path}/final`, body, options.deadlineMs);
  }

  async #send(): Promise<void> {
    this.#isSending = true;
    try {
      while (this.#waiting !== undefined) {
        const body = this.#waiting;
        this.#waiting = undefined;
        await this.#transport.read("POST", `${this.#path}/partial`, body);
      }
    } catch (error) {
      if (!(error instanceof EchoicError)) throw error;
    } finally {
      this.#isSending = false;
    }
  }

  /** Rises over a restart of this process, too: the server ignores what was overtaken. */
  #next(): number {
    this.#number = Math.max(this.#number + 1, Date.now());
    return this.#number;
  }
}
