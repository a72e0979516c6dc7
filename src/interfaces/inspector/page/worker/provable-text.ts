// What a proof still shows of a ledger that is not intact.

import { nameInLedger } from '../../../../core/contract/entry-name.js';
import type { ProofState } from './ledger-proof.js';

/** Whether the signed root confirms the recorded hashes of all entries, so that the other entries are as they were. */
export const isProvable = ({ checkpoint }: Pick<ProofState, 'checkpoint'>): boolean =>
  checkpoint !== null && checkpoint.fits && checkpoint.signature === 'right';

/** In words, for a ledger that is broken anywhere. */
export function provableText(state: ProofState): string {
  const { broken, changed, checkpoint, read } = state;
  const names = changed.map(({ at }) => nameInLedger(at)).join(', ');
  if (isProvable(state) && checkpoint !== null) {
    const others = changed.length === 0 ? 'the entries' : `all entries except ${names}`;
    return `Still provable: ${others}. Their hashes give the root that was signed for ${checkpoint.size.toLocaleString('en-US')} entries.`;
  }
  if (broken?.at != null && broken.at > 0)
    return `Still provable: nothing. Entries before ${nameInLedger(broken.at)} fit together, but no signature covers them alone.`;
  return broken?.at == null && read > 0
    ? 'Still provable: nothing. The entries fit together, but they are not what was signed.'
    : 'Still provable: nothing.';
}
