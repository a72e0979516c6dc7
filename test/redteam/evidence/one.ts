// Verifies one file in its own process, and prints the cost: node one.js KIND PATH VKEY

import { readFileSync } from 'node:fs';
import { openBagFolder } from '../../../src/features/exports/bag/bag-folder.js';
import { openLineFile } from '../../../src/system/files/open-line-file.js';
import { noteVerifier } from '../../../src/core/ledger/proof/signed-note.js';
import { REAL, refusedOr } from './verifiers.js';

/** The peak memory of this process, in KiB; the kernel's value for its parent does not count. */
const peak = (): number => Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);

const [kind = '', path = '', vkey = ''] = process.argv.slice(2);
const key = noteVerifier(vkey);
if (key === null) throw new Error('no key');
const begun = performance.now();
const verdict = await refusedOr(async () => {
  if (kind === 'bundle') {
    const file = await openLineFile(path);
    return REAL.bundle(file, key).finally(() => file.close());
  }
  const tree = kind === 'zip' ? await REAL.zip(path, Buffer.alloc(0)) : openBagFolder(path);
  return REAL.bag(tree, key).finally(() => tree.close());
});
const ms = Math.round(performance.now() - begun);
process.stdout.write(`${JSON.stringify({ verdict, ms, kib: peak() })}\n`);
