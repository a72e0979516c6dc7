// What a tool says of its failure, while a step composes its response (C94). The machines carry the reference only. The
// text is attached to the reference for one macrostep, so that no snapshot of a tree holds content of a case.

import type { ArtifactRef } from '../../contract/artifact-ref.js';
import { InvariantError } from '../../errors.js';

const attachedTexts = new WeakMap<ArtifactRef, string>();

/** @param ref the reference in the input that brings the text */
export function attachText(ref: ArtifactRef, text: string): ArtifactRef {
  attachedTexts.set(ref, text);
  return ref;
}

/** @throws InvariantError after the macrostep of the input that brought the text */
export function attachedText(ref: ArtifactRef): string {
  const text = attachedTexts.get(ref);
  if (text === undefined)
    throw new InvariantError('the explanation of a tool is needed after the input that brought it');
  return text;
}
