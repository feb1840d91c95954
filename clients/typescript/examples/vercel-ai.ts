/**
 * Memory in the Vercel AI SDK, as a middleware of the model:
 *
 *     const call = await new Echoic(url, agentKey).user("crm-48213").conversation("call-1");
 *     const model = wrapLanguageModel({ model: openai("gpt-5-mini"), middleware: remembering(call) });
 *     await call.append({ speaker: "user", text });
 *     const { text: answer } = await generateText({ model, messages });
 *     await call.append({ speaker: "agent", text: answer });
 */

import { EchoicError, type Conversation } from "@echoic/client";
import type { LanguageModelMiddleware } from "ai";

type Params = Awaited<ReturnType<NonNullable<LanguageModelMiddleware["transformParams"]>>>;
type Message = Params["prompt"][number];

const COULD_NOT_LOOK = "Memory could not be looked at just now. Do not claim that nothing is known.";

/**
 * Puts what is known before the words of the newest user message, in the request alone: your own messages stay as they
 * are, so that nothing piles up, and everything before the newest message stays in the provider's cache.
 */
export function remembering(call: Conversation, options: { deadlineMs?: number } = {}): LanguageModelMiddleware {
  return {
    specificationVersion: "v3",
    transformParams: async ({ params }) => {
      const place = params.prompt.map((message) => message.role).lastIndexOf("user");
      const message = params.prompt[place];
      const words = message === undefined ? "" : spoken(message);
      if (message?.role !== "user" || words === "") return params;
      const found = await known(call, words, options.deadlineMs ?? 150);
      if (found === "") return params;
      const text = `<memory>\nNobody said this: it was looked up.\n${found}\n</memory>`;
      const told: Message = { ...message, content: [{ type: "text", text }, ...message.content] };
      return { ...params, prompt: params.prompt.map((each, at) => (at === place ? told : each)) };
    },
  };
}

async function known(call: Conversation, words: string, deadlineMs: number): Promise<string> {
  try {
    return (await call.brief(words, { deadlineMs })).text;
  } catch (error) {
    if (error instanceof EchoicError) return COULD_NOT_LOOK;
    throw error;
  }
}

function spoken(message: Message): string {
  if (message.role !== "user") return "";
  return message.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .join(" ")
    .trim();
}
