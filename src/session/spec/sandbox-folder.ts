// The folder in which a command of a spec runs, judged as text. What stands there is the executor's business, which
// judges the path again, by the policy of the run, at the moment of use.

import { SEGMENT_BYTES_MAX } from '../../contract/policy/actions.js';

const ROOT = '/sandbox/';
/** Names that begin like this, in either case, belong to the executor (C30). */
const RESERVED = /^\.turnpike-/i;
// C0, DEL, C1 and the backslash (C28).
const ILLEGAL = /[\u0000-\u001f\u007f-\u009f\\]/;

/** Whether a path is spelt as that of a folder inside `/sandbox/`: canonical, with or without a slash at its end. */
export function isSandboxFolder(path: string): boolean {
  if (path === ROOT) return true;
  if (!path.startsWith(ROOT) || ILLEGAL.test(path) || !path.isWellFormed() || path !== path.normalize('NFC'))
    return false;
  return path.slice(ROOT.length).replace(/\/$/, '').split('/').every(isName);
}

const isName = (name: string): boolean =>
  name !== '' && name !== '.' && name !== '..' && Buffer.byteLength(name) <= SEGMENT_BYTES_MAX && !RESERVED.test(name);
