import { describe, expect, test } from '@jest/globals';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { exchangeFolder, type ExchangedContent } from '../../../src/interfaces/restate/index.js';
import { sha256 } from '../../../src/core/contract/hash.js';
import { tempFolder } from '../../fixtures/temp-folder.js';

const content = (text: string): ExchangedContent => ({
  kind: 'payload',
  run_id: 'run_12345678.1',
  input_id: '../../one',
  sha256: sha256(text),
});

describe('an exchange in a folder', () => {
  test('stores content once, for its owner only, and leaves no draft', async () => {
    const folder = join(tempFolder('exchange'), 'new');
    const exchange = exchangeFolder(folder);
    await Promise.all([1, 2, 3].map(() => exchange.write(content('a'), Buffer.from('a'))));
    const [name = '', ...others] = readdirSync(folder);
    expect([name, others]).toEqual([expect.stringMatching(/^[0-9a-f]{64}-[0-9a-f]{64}\.payload$/), []]);
    expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600);
    expect(await exchange.read(content('a'), 1)).toEqual(Buffer.from('a'));
  });

  test('reads at most as many bytes as the caller permits', async () => {
    const exchange = exchangeFolder(tempFolder('exchange'));
    await exchange.write(content('ab'), Buffer.from('ab'));
    expect(await exchange.read(content('ab'), 2)).toEqual(Buffer.from('ab'));
    await expect(exchange.read(content('ab'), 1)).rejects.toThrow('larger than 1 bytes');
  });

  test('has null for missing content, and removes what is missing without an error', async () => {
    const exchange = exchangeFolder(join(tempFolder('exchange'), 'missing'));
    expect(await exchange.read(content('a'), 1)).toBe(null);
    await exchange.remove(content('a'));
    await exchange.write(content('a'), Buffer.from('a'));
    await exchange.remove(content('a'));
    expect(await exchange.read(content('a'), 1)).toBe(null);
  });
});
