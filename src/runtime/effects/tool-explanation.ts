// What a tool says of its failure to the agent (C94): the message of its error, unless another text was attached to it.
// The message is also logged; an attached text is not, so it may be the text of another party.

const attachedTexts = new WeakMap<Error, string>();

export function attachToolExplanation<E extends Error>(error: E, text: string): E {
  attachedTexts.set(error, text);
  return error;
}

/** The code of a service may have changed the error, so the type of the message is checked. */
export function toolExplanationOf(error: Error): string {
  const text: unknown = attachedTexts.get(error) ?? error.message;
  return typeof text === 'string' ? text : '';
}
