// The golden history of everything names an export by its locator, and contains no path of the host.

import { expect, test } from '@jest/globals';
import { readGolden } from '../../fixtures/golden-history.js';

test('S4-76 C85: an export is named by its locator, and by no path of the host', async () => {
  await readGolden('everything', async (reader, store) => {
    const found: string[] = [];
    let text = '';
    for await (const entry of reader.log()) {
      text += entry.text;
      found.push(...(entry.text.match(/"storage_locator":"[^"]*"/g) ?? []));
      for (const artifact of await store.artifactsOf(entry))
        if ('bytes' in artifact) text += Buffer.from(artifact.bytes).toString();
    }
    expect(new Set(found)).toEqual(new Set(['"storage_locator":"bag"']));
    expect(text).toContain('"package_locator":"bag"');
    expect(text).not.toMatch(/"(?:destination|package_locator|storage_locator)":"\//);
  });
});
