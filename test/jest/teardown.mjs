// After the suites, once: a run that leaves something in its temporary folders fails.

import { removeTempFolders } from './temp.mjs';

export default function checkTempFolders() {
  const left = removeTempFolders();
  if (left.length > 0) throw new Error(`tests left behind:\n${left.join('\n')}`);
}
