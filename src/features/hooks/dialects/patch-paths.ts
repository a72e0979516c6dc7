// The files that a patch names, in the format of apply_patch: `*** Add File: PATH` and so on. Clients read the format
// with different tolerance, so a line that one of them could read in another way makes the patch unreadable.

import type { Json } from '../../../core/contract/json.js';
import { patchCall, type NativeInput } from '../native-calls.js';

const HEADER = /^\*\*\* (?:Add File|Delete File|Update File|Move to):/;
/** A path without a margin and without characters that could end a line for some reader. */
const PATH = /^ (?!\s)[^\p{Cc}\u2028\u2029\ufeff]+(?<!\s)$/u;
const MARKERS: readonly string[] = ['*** Begin Patch', '*** End Patch', '*** End of File'];

/** What some reader of the format strips at the beginning or the end of a line. */
const MARGIN = /^[\s\u0085\ufeff]+|[\s\u0085\ufeff]+$/g;

/** A call that applies a patch; null if the files are uncertain. */
export const patchTextCall = (patch: Json | undefined): NativeInput | null => {
  const paths = typeof patch === 'string' ? pathsOfPatch(patch) : null;
  return paths === null ? null : patchCall(paths, patch);
};

/**
 * The files that a patch adds, deletes, updates or moves, each once, in order.
 * @returns null if a line begins with `***` and is neither a header nor a marker, or a path has an uncertain end
 */
export const pathsOfPatch = (patch: string): string[] | null => {
  const paths = new Set<string>();
  for (const line of patch.split('\n')) {
    const text = line.replace(MARGIN, '');
    const header = HEADER.exec(text)?.[0];
    if (header !== undefined) {
      const path = text.slice(header.length);
      if (!PATH.test(path)) return null;
      paths.add(path.slice(1));
    } else if (text.startsWith('***') && !MARKERS.includes(text) && !line.startsWith(' ')) {
      // An unchanged line of a file begins with a space, and may be any text.
      return null;
    }
  }
  return [...paths];
};
