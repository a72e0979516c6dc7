// A page whose blocks need the built package, followed as it is and with a block changed.

import { beforeAll, describe, expect, test } from '@jest/globals';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { textOf } from '../../sources.js';
import { MS_MAX } from '../programs.js';
import { followFile, followPage, installPackage } from './follow-page.js';

describe('a page with the built package', () => {
  const PAGE = 'docs/how-to/inspect-live-runs.md';
  let packageFolder: string;
  beforeAll(async () => {
    packageFolder = await installPackage();
  }, 300_000);

  test('is followed', () => followFile(PAGE, packageFolder), MS_MAX);

  test(
    'fails when a block of it is changed',
    async () => {
      const follow = (name: string, from: string, to: string): Promise<void> => {
        const folder = join(packageFolder, name);
        mkdirSync(folder);
        const page = textOf(PAGE);
        expect(page).toContain(from);
        return followPage(page.replace(from, to), { folder, packageFolder });
      };
      await expect(follow('output', '"RESPOND" done', '"RESPOND" active')).rejects.toThrow('should print');
      await expect(follow('program', "'LIST_FILES'", "'THINK'")).rejects.toThrow('should print');
    },
    MS_MAX,
  );
});
