// What a tool says of its failure to the agent (C94): the message of its error, unless other words were attached to it.
// The message is also logged; attached words are not, so they may be the text of another party.

const attachedWords = new WeakMap<Error, string>();

export function attachToolWords<E extends Error>(error: E, words: string): E {
  attachedWords.set(error, words);
  return error;
}

/** The code of a service may have changed the error, so the type of the message is checked. */
export function toolWordsOf(error: Error): string {
  const words: unknown = attachedWords.get(error) ?? error.message;
  return typeof words === 'string' ? words : '';
}
