import { canonicalJson } from '../../core/contract/json.js';

/** A call, as messages of a conversation have it. */
interface CallOfMessages {
  readonly toolCallId: string;
  readonly input: unknown;
}

/**
 * How many equal calls with the same id have a result in the messages before this call: its place among them. It is the
 * same in another process that has the same messages.
 */
export function countAnsweredCalls(messages: readonly unknown[], { toolCallId, input }: CallOfMessages): number {
  const given = textOf(input);
  let [count, isEqual] = [0, false];
  for (const part of messages.flatMap(partsOf)) {
    if (part.toolCallId !== toolCallId) continue;
    if (part.type === 'tool-call') isEqual = textOf(part.input) === given;
    else if (part.type === 'tool-result' && isEqual) [count, isEqual] = [count + 1, false];
  }
  return count;
}

interface MessagePart {
  readonly type?: unknown;
  readonly toolCallId?: unknown;
  readonly input?: unknown;
}

const partsOf = (message: unknown): readonly MessagePart[] => {
  const { content } = (message ?? {}) as { readonly content?: unknown };
  return Array.isArray(content) ? (content as unknown[]).filter(isPart) : [];
};

const isPart = (part: unknown): part is MessagePart => typeof part === 'object' && part !== null;

/** Input of a model is JSON, but may have lone surrogates or be too deep to be canonical. */
function textOf(input: unknown): string {
  try {
    return canonicalJson(input);
  } catch {
    return JSON.stringify(input);
  }
}
