// One of several processes that use an empty key folder at the same moment. It prints the names of the keys.

import { draftLedgerKey, ensureLedgerKey } from './ledger-key.js';

const [how, folder, rounds, start] = process.argv.slice(2);
const ROUND_MS = 15;
for (let round = 0; round < Number(rounds); round += 1) {
  const paths = { privateKey: `${folder}/${round}.key`, publicKey: `${folder}/${round}.vkey` };
  while (Date.now() < Number(start) + round * ROUND_MS);
  if (how === 'ensure') console.log(ensureLedgerKey(paths, null).vkey);
  else {
    const { signer, settle } = draftLedgerKey(paths);
    settle();
    console.log(signer.vkey);
  }
}
