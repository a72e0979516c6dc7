// The victims for the tests: processes that are killed are plain Node programs, and an enumeration starts one for each
// moment. What the campaign runs (`npm run crash`) is compiled file by file, as the package is.

import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';

const PLACE = 'build/test/crash';

/** Puts the victims of the present sources into `folder`. @returns the path of the first of them in it */
export async function builtVictim(folder: string): Promise<string> {
  const names = ['victim', 'effects-victim', 'full-disk'];
  await bundled(folder, Object.fromEntries(names.map((name) => [`${PLACE}/${name}`, `test/crash/${name}.ts`])));
  return join(folder, PLACE, 'victim.js');
}
