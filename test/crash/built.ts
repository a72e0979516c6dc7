// The victims for the tests. Killed processes are plain Node programs, and an enumeration starts one for each kill
// point. `npm run campaign -- crash` uses programs that are compiled file by file, as the package is.

import { join } from 'node:path';
import { bundled } from '../fixtures/bundled.js';

const PLACE = 'build/test/crash';

/** Builds the victims from the current sources into `folder`. @returns the path of the first one */
export async function builtVictim(folder: string): Promise<string> {
  const names = ['victim', 'effects-victim', 'full-disk'];
  await bundled(folder, Object.fromEntries(names.map((name) => [`${PLACE}/${name}`, `test/crash/${name}.ts`])));
  return join(folder, PLACE, 'victim.js');
}
