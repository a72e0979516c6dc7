import { expect, test } from '@jest/globals';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { copyFolder, copyRegularFile } from '../../../src/system/files/copy-folder.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const folder = tempFolder('copy-folder');
const at = (...path: string[]): string => join(folder, ...path);

test('a link that replaces a file before it is copied is not followed, and nothing is created', async () => {
  writeFileSync(at('secret'), 'secret');
  symlinkSync(at('secret'), at('link'));
  await expect(copyRegularFile(at('link'), at('copy'))).rejects.toMatchObject({ code: 'ELOOP' });
  expect(existsSync(at('copy'))).toBe(false);
  execFileSync('mkfifo', [at('fifo')]);
  await expect(copyRegularFile(at('fifo'), at('copy'))).rejects.toThrow('is not a regular file');
});

test('a file of several pieces keeps its bytes, permissions and times, and replaces nothing', async () => {
  const bytes = Buffer.alloc(700_001, 'abcdefg');
  mkdirSync(at('from'));
  writeFileSync(at('from', 'large'), bytes);
  writeFileSync(at('from', 'empty'), '');
  symlinkSync('nowhere', at('from', 'link'));
  chmodSync(at('from', 'large'), 0o640);
  expect(await copyFolder(at('from'), at('to'))).toBe(3);
  expect(readFileSync(at('to', 'large')).equals(bytes)).toBe(true);
  expect(readFileSync(at('to', 'empty'), 'utf8')).toBe('');
  expect(readlinkSync(at('to', 'link'))).toBe('nowhere');
  const [from, to] = [statSync(at('from', 'large')), statSync(at('to', 'large'))];
  expect([to.mode & 0o777, Math.round(to.mtimeMs)]).toEqual([0o640, Math.round(from.mtimeMs)]);
  await expect(copyRegularFile(at('from', 'empty'), at('to', 'large'))).rejects.toMatchObject({ code: 'EEXIST' });
});
