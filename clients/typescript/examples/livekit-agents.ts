/**
 * Memory in LiveKit's agents for Node:
 *
 *     const call = await new Echoic(url, agentKey).user(caller.identity).conversation(ctx.room.name);
 *     const session = new voice.AgentSession({ stt, llm, tts }); // preemptive generation may stay on
 *     const agent = new RememberingAgent({ call, instructions: "You are Pip." });
 *     await session.start({ agent: agent.following(session), room: ctx.room });
 *     ctx.addShutdownCallback(() => agent.hungUp());
 */

import { EchoicError, type Conversation, type Listening } from "@echoic/client";
import { llm, voice } from "@livekit/agents";

const COULD_NOT_LOOK = "Memory could not be looked at just now. Do not claim that nothing is known.";

type Options = ConstructorParameters<typeof voice.Agent>[0] & { call: Conversation; deadlineMs?: number };
type Node = Parameters<voice.Agent["llmNode"]>;

/** An agent whose model is told what is known of the caller, in a copy of the context. */
export class RememberingAgent extends voice.Agent {
  readonly #call: Conversation;
  readonly #deadlineMs: number;
  readonly #listening: Listening;
  #written: Promise<unknown> = Promise.resolve();

  constructor({ call, deadlineMs = 150, ...options }: Options) {
    super(options);
    this.#call = call;
    this.#deadlineMs = deadlineMs;
    this.#listening = call.listen();
  }

  /** Search while the caller speaks, and keep what was said and heard: LiveKit cuts an interrupted answer itself. */
  following(session: voice.AgentSession): this {
    session.on(voice.AgentSessionEventTypes.UserInputTranscribed, (event) => {
      if (!event.isFinal) this.#listening.partial(event.transcript);
    });
    session.on(voice.AgentSessionEventTypes.ConversationItemAdded, ({ item }) => {
      const text = item.type === "message" ? (item.textContent ?? "").trim() : "";
      if (item.type !== "message" || text === "" || (item.role !== "user" && item.role !== "assistant")) return;
      const turn = { id: `${this.#call.id}/${item.id}`, speaker: item.role, text };
      this.#written = this.#call.append(turn).catch((error: unknown) => console.error("a turn was not kept:", error));
    });
    return this;
  }

  /** Wait until all is kept, and end the conversation. */
  async hungUp(): Promise<void> {
    await this.#written;
    await this.#call.complete();
  }

  // not onUserTurnCompleted: what changes the context there invalidates preemptive generation
  override async llmNode(context: Node[0], tools: Node[1], settings: Node[2]): ReturnType<voice.Agent["llmNode"]> {
    const copy = context.copy();
    const newest = copy.items.map((item) => item.type === "message" && item.role === "user").lastIndexOf(true);
    const words = newest < 0 ? "" : ((copy.items[newest] as llm.ChatMessage).textContent ?? "").trim();
    const known = words === "" ? "" : await this.#known(words);
    if (known !== "") {
      // in the user's role: what people said must not speak for the operator
      const content = `<memory>\nNobody said this: it was looked up.\n${known}\n</memory>`;
      const told = llm.ChatMessage.create({ role: "user", content });
      copy.items = [...copy.items.slice(0, newest), told, ...copy.items.slice(newest)];
    }
    return voice.Agent.default.llmNode(this, copy, tools, settings);
  }

  async #known(words: string): Promise<string> {
    try {
      return (await this.#listening.final(words, { deadlineMs: this.#deadlineMs })).text;
    } catch (error) {
      if (error instanceof EchoicError) return COULD_NOT_LOOK;
      throw error;
    }
  }
}
